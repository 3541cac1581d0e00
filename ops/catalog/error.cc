#include "ops/catalog/error.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace opserve::catalog {
namespace {

constexpr absl::string_view kDetailUrl = "type.googleapis.com/opserve.v1.ErrorDetail";

std::string Prefix(absl::string_view part) { return part.empty() ? "" : absl::StrCat(part, ": "); }

}  // namespace

std::string Shortened(absl::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return absl::StrCat(text.substr(0, limit), "...");
}

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
  const std::string shown_operator = Shortened(operator_name, kMaxErrorNameBytes);
  const std::string shown_argument = Shortened(argument, kMaxErrorNameBytes);
  absl::Status status = absl::InvalidArgumentError(
      Shortened(absl::StrCat(Prefix(shown_operator), Prefix(shown_argument),
                             Shortened(problem, kMaxErrorBytes)),
                kMaxErrorBytes));
  v1::ErrorDetail detail;
  detail.set_reason("invalid");
  detail.set_operator_(shown_operator);
  detail.set_argument(shown_argument);
  detail.set_aclnn_status(aclnn_status);
  SetErrorDetail(detail, &status);
  return status;
}

absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message) {
  absl::Status status(code, Shortened(message, kMaxErrorBytes));
  v1::ErrorDetail detail;
  detail.set_reason(std::string(reason));
  SetErrorDetail(detail, &status);
  return status;
}

absl::Status ErrorWithPushback(absl::StatusCode code, absl::string_view reason,
                               absl::string_view message, int64_t pushback_ms) {
  absl::Status status(code, Shortened(message, kMaxErrorBytes));
  v1::ErrorDetail detail;
  detail.set_reason(std::string(reason));
  detail.set_retry_pushback_ms(pushback_ms);
  SetErrorDetail(detail, &status);
  return status;
}

}  // namespace opserve::catalog
