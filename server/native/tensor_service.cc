#include "server/native/tensor_service.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/request/tensor_effects.h"

namespace opserve::server {
namespace {

using Handles = google::protobuf::RepeatedPtrField<std::string>;

// So that the registry's lock is not held for long.
constexpr int kMaxHandles = 1024;

absl::Status CheckCount(const Handles& handles) {
  if (handles.size() <= kMaxHandles) return absl::OkStatus();
  return InvalidField("handles",
                      absl::StrCat(handles.size(), " given, at most ", kMaxHandles, " allowed"));
}

std::vector<std::string> ToVector(const Handles& handles) {
  return {handles.begin(), handles.end()};
}

}  // namespace

absl::Status InvalidField(absl::string_view field, absl::string_view problem, Reason reason) {
  return CallError(reason, {.argument = field}, problem);
}

absl::StatusOr<TensorSpec> ReadSpec(v1::DataType dtype, absl::Span<const int64_t> shape) {
  if (DtypeBytes(dtype) == 0) {
    return InvalidField(
        "dtype", absl::StrCat(static_cast<int>(dtype), " is not an element type of the protocol"));
  }
  if (absl::Status status = CheckShape(dtype, shape); !status.ok()) {
    return InvalidField("shape", status.message());
  }
  return TensorSpec{.dtype = dtype, .shape = {shape.begin(), shape.end()}};
}

absl::Status CheckChunkBytes(const TensorContext& context, uint64_t chunk_bytes) {
  if (chunk_bytes > 0 && chunk_bytes <= context.max_chunk_bytes) return absl::OkStatus();
  return InvalidField("chunk_bytes",
                      absl::StrCat("is ", chunk_bytes, ", must be 1 to ", context.max_chunk_bytes));
}

absl::StatusOr<absl::Duration> ReadLease(const google::protobuf::Duration& lease,
                                         absl::Duration longest) {
  const absl::Duration asked = absl::Seconds(lease.seconds()) + absl::Nanoseconds(lease.nanos());
  if (asked < absl::ZeroDuration()) {
    return InvalidField("lease",
                        absl::StrCat("is ", absl::FormatDuration(asked), ", must not be negative"));
  }
  OPSERVE_RETURN_IF_ERROR(CheckLease(asked, longest));
  return asked;
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(absl::ToUnixNanos(time));
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration result;
  result.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  result.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return result;
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

absl::Status Renew(const TensorContext& context, const Tenant& tenant,
                   const v1::RenewRequest& request, v1::RenewResponse* response) {
  OPSERVE_RETURN_IF_ERROR(CheckCount(request.handles()));
  OPSERVE_ASSIGN_OR_RETURN(const absl::Duration lease,
                           ReadLease(request.lease(), context.residents->limits().max_lease));
  OPSERVE_ASSIGN_OR_RETURN(
      const std::vector<absl::Time> lease_ends,
      context.residents->Renew(tenant.id(), ToVector(request.handles()), lease, absl::Now()));
  for (absl::Time lease_end : lease_ends) *response->add_lease_ends() = ToTimestamp(lease_end);
  return absl::OkStatus();
}

absl::Status Release(const TensorContext& context, const Tenant& tenant,
                     const v1::ReleaseRequest& request, v1::ReleaseResponse* response) {
  OPSERVE_RETURN_IF_ERROR(CheckCount(request.handles()));
  response->set_released(context.residents->Release(tenant.id(), ToVector(request.handles())));
  return absl::OkStatus();
}

void ToProto(const ResidentTensors::Listed& tensor, v1::TensorSummary* to) {
  to->set_handle(tensor.handle);
  to->set_dtype(tensor.spec.dtype);
  to->mutable_shape()->Add(tensor.spec.shape.begin(), tensor.spec.shape.end());
  to->set_bytes(tensor.bytes);
  to->set_device(static_cast<uint32_t>(tensor.device));
  *to->mutable_creation_time() = ToTimestamp(tensor.creation);
  *to->mutable_lease_end() = ToTimestamp(tensor.lease_end);
}

absl::Status List(const TensorContext& context, const Tenant& tenant,
                  const v1::ListRequest& request, v1::ListResponse* response) {
  const absl::Time now = absl::Now();
  std::vector<ResidentTensors::Listed> tensors =
      context.residents->List(tenant.id(), request.after(), kMaxListedTensors + 1, now);
  response->set_has_more(tensors.size() > kMaxListedTensors);
  if (response->has_more()) tensors.pop_back();
  for (const ResidentTensors::Listed& tensor : tensors) ToProto(tensor, response->add_tensors());
  *response->mutable_time() = ToTimestamp(now);
  return absl::OkStatus();
}

}  // namespace opserve::server
