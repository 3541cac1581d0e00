#include "server/grpc/status_conversion.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {
namespace {

void AddTrailers(const v1::ErrorDetail& detail, grpc::ServerContext* context) {
  if (!detail.reason().empty()) context->AddTrailingMetadata("opserve-reason", detail.reason());
  // 0 is the absence of a hint; -1 is one, and means never.
  if (detail.retry_pushback_ms() != 0) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms",
                                 absl::StrCat(detail.retry_pushback_ms()));
  }
  if (detail.limit_bytes() != 0) {
    context->AddTrailingMetadata("opserve-limit-bytes", absl::StrCat(detail.limit_bytes()));
  }
  if (detail.acl_error() != 0) {
    context->AddTrailingMetadata("opserve-device-error", absl::StrCat(detail.acl_error()));
  }
}

}  // namespace

v1::StatusDetails ToStatusDetails(const absl::Status& status) {
  v1::StatusDetails details;
  details.set_code(static_cast<int>(status.code()));
  // Some clients take an error without a message for success.
  details.set_message(status.message().empty() ? absl::StatusCodeToString(status.code())
                                               : Shortened(status.message(), kMaxErrorBytes));
  if (std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status)) {
    // Names came from a client, and trailers together must stay below gRPC's 8 KiB.
    detail->set_operator_(Shortened(detail->operator_(), kMaxErrorNameBytes));
    detail->set_argument(Shortened(detail->argument(), kMaxErrorNameBytes));
    detail->set_runtime_message(Shortened(detail->runtime_message(), kMaxErrorBytes));
    details.add_details()->PackFrom(*detail);
  }
  return details;
}

grpc::Status ToGrpcStatus(const absl::Status& status, grpc::ServerContext* context) {
  if (status.ok()) return grpc::Status::OK;
  const v1::StatusDetails details = ToStatusDetails(status);
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  // An error of a library has no detail, and needs no trailers.
  if (!detail) return grpc::Status(code, details.message());
  AddTrailers(*detail, context);
  return grpc::Status(code, details.message(), details.SerializeAsString());
}

}  // namespace opserve::server
