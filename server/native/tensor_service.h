// Shared state of the tensor service's calls.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "opserve/v1/tensor_service.grpc.pb.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/grpc/authenticator.h"
#include "server/grpc/call_counter.h"
#include "server/native/transfer_metrics.h"
#include "server/observability/request_metrics.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// Chunks travel as raw slices, as Execute's payloads do, and the messages of small calls as theirs.
using AsyncTensorService =
    v1::TensorService::WithRawMethod_Upload<v1::TensorService::WithRawMethod_Download<
        v1::TensorService::WithRawMethod_Renew<v1::TensorService::WithRawMethod_Release<
            v1::TensorService::WithRawMethod_List<v1::TensorService::Service>>>>>;

// All pointers outlive the calls.
struct TensorContext {
  AsyncTensorService* service = nullptr;
  ServerCalls* calls = nullptr;
  Scheduler* scheduler = nullptr;
  ResidentTensors* residents = nullptr;
  RequestMetrics* metrics = nullptr;
  TransferMetrics* transfers = nullptr;
  const Authenticator* authenticator = nullptr;
  uint64_t max_tensor_bytes = 0;
  uint64_t max_chunk_bytes = 0;
  // Also that of calls without a deadline: how long a transfer takes is up to the other side.
  absl::Duration max_deadline;
  // UploadPace's, for uploads.
  absl::Duration upload_stall_timeout;
  uint64_t upload_min_bytes_per_second = 1;
  // Of all the server's calls, as in CallContext.
  const std::atomic<bool>* is_draining = nullptr;
  const std::atomic<const std::string*>* moved_to = nullptr;
  CallCounter* in_flight = nullptr;
};

// kInvalidArgument, naming the field, with `reason`: a mistake in a message of this service.
absl::Status InvalidField(absl::string_view field, absl::string_view problem,
                          Reason reason = Reason::kInvalid);

// kInvalidArgument, naming the field: no element type of the protocol, or no shape of a tensor.
absl::StatusOr<TensorSpec> ReadSpec(v1::DataType dtype, absl::Span<const int64_t> shape);

// kInvalidArgument unless it is 1 to the context's limit.
absl::Status CheckChunkBytes(const TensorContext& context, uint64_t chunk_bytes);

// Zero: none is asked for. kInvalidArgument: negative, or refused by CheckLease.
absl::StatusOr<absl::Duration> ReadLease(const google::protobuf::Duration& lease,
                                         absl::Duration longest);

google::protobuf::Timestamp ToTimestamp(absl::Time time);
google::protobuf::Duration ToProto(absl::Duration duration);
// Any value has a meaning; beyond the range of one it is an infinite duration.
absl::Duration ToDuration(const google::protobuf::Duration& duration);

// Of a handle, for administrators and the log: enough to talk about a tensor, not to use it.
inline constexpr size_t kShownHandleBytes = 4;

// Of a list of tensors in one answer.
inline constexpr size_t kMaxListedTensors = 1024;

void ToProto(const ResidentTensors::Listed& tensor, v1::TensorSummary* to);

// The small calls; thread-safe, do not block. Errors: ResidentTensors::Renew's, and
// kInvalidArgument.
absl::Status Renew(const TensorContext& context, const Tenant& tenant,
                   const v1::RenewRequest& request, v1::RenewResponse* response);
absl::Status Release(const TensorContext& context, const Tenant& tenant,
                     const v1::ReleaseRequest& request, v1::ReleaseResponse* response);
absl::Status List(const TensorContext& context, const Tenant& tenant,
                  const v1::ListRequest& request, v1::ListResponse* response);

}  // namespace opserve::server
