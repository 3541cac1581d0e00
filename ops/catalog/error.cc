#include "ops/catalog/error.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kDetailUrl = "type.googleapis.com/opserve.v1.ErrorDetail";

std::string Prefix(absl::string_view part) { return part.empty() ? "" : absl::StrCat(part, ": "); }

}  // namespace

void SetErrorDetail(const v1::ErrorDetail& detail, absl::Status* status) {
  status->SetPayload(kDetailUrl, absl::Cord(detail.SerializeAsString()));
}

std::optional<v1::ErrorDetail> GetErrorDetail(const absl::Status& status) {
  const auto payload = status.GetPayload(kDetailUrl);
  v1::ErrorDetail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

absl::Status InvalidCall(absl::string_view operator_name, absl::string_view argument,
                         absl::string_view problem, int aclnn_status) {
  absl::Status status =
      absl::InvalidArgumentError(absl::StrCat(Prefix(operator_name), Prefix(argument), problem));
  v1::ErrorDetail detail;
  detail.set_reason("invalid");
  detail.set_operator_(std::string(operator_name));
  detail.set_argument(std::string(argument));
  detail.set_aclnn_status(aclnn_status);
  SetErrorDetail(detail, &status);
  return status;
}

absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message) {
  absl::Status status(code, message);
  v1::ErrorDetail detail;
  detail.set_reason(std::string(reason));
  SetErrorDetail(detail, &status);
  return status;
}

absl::Status ErrorWithPushback(absl::StatusCode code, absl::string_view reason,
                               absl::string_view message, int64_t pushback_ms) {
  absl::Status status(code, message);
  v1::ErrorDetail detail;
  detail.set_reason(std::string(reason));
  detail.set_retry_pushback_ms(pushback_ms);
  SetErrorDetail(detail, &status);
  return status;
}

}  // namespace opserve::catalog
