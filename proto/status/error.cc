#include "proto/status/error.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace opserve {
namespace {

constexpr absl::string_view kDetailUrl = "type.googleapis.com/opserve.v1.ErrorDetail";

std::string Prefix(absl::string_view name) {
  return name.empty() ? "" : absl::StrCat(Shortened(name, kMaxErrorNameBytes), ": ");
}

v1::ErrorDetail DetailAt(const ErrorPlace& place) {
  v1::ErrorDetail detail;
  if (!place.operator_name.empty()) {
    detail.set_operator_(Shortened(place.operator_name, kMaxErrorNameBytes));
  }
  if (!place.argument.empty()) detail.set_argument(Shortened(place.argument, kMaxErrorNameBytes));
  if (place.invocation) detail.set_invocation(*place.invocation);
  return detail;
}

// Adds the fields of `more` to the detail of an error, replacing older ones. Encoded messages that
// follow each other are the encoding of their merge, so the detail need not be decoded.
absl::Status MergeDetail(const v1::ErrorDetail& more, absl::Status error) {
  absl::Cord detail = error.GetPayload(kDetailUrl).value_or(absl::Cord());
  detail.Append(more.SerializeAsString());
  error.SetPayload(kDetailUrl, std::move(detail));
  return error;
}

}  // namespace

std::string Shortened(absl::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  // Bytes 10xxxxxx are inside a character.
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return absl::StrCat(text.substr(0, limit), "...");
}

absl::Status MakeError(Reason reason, absl::string_view message, int64_t pushback_ms) {
  return MakeError(reason, FactsOf(reason).code, message, pushback_ms);
}

absl::Status MakeError(Reason reason, absl::StatusCode code, absl::string_view message,
                       int64_t pushback_ms) {
  absl::Status error(code, Shortened(message, kMaxErrorBytes));
  v1::ErrorDetail detail;
  detail.set_reason(std::string(ReasonText(reason)));
  detail.set_retry_pushback_ms(pushback_ms);
  SetErrorDetail(detail, &error);
  return error;
}

absl::Status NeverFits(Reason reason, absl::string_view message) {
  // The contract's answer to a request that no waiting can help.
  return MakeError(reason, absl::StatusCode::kFailedPrecondition, message, kNeverRetry);
}

absl::Status WithLimit(uint64_t limit_bytes, absl::Status error) {
  v1::ErrorDetail detail;
  detail.set_limit_bytes(limit_bytes);
  return MergeDetail(detail, std::move(error));
}

absl::Status WithMovedTo(absl::string_view address, absl::Status error) {
  v1::ErrorDetail detail;
  detail.set_moved_to(std::string(address));
  return MergeDetail(detail, std::move(error));
}

absl::Status CallError(Reason reason, const ErrorPlace& place, absl::string_view problem,
                       int aclnn_status) {
  absl::Status error(FactsOf(reason).code,
                     Shortened(absl::StrCat(Prefix(place.operator_name), Prefix(place.argument),
                                            Shortened(problem, kMaxErrorBytes)),
                               kMaxErrorBytes));
  v1::ErrorDetail detail = DetailAt(place);
  detail.set_reason(std::string(ReasonText(reason)));
  detail.set_aclnn_status(aclnn_status);
  SetErrorDetail(detail, &error);
  // Replaces nothing, as the error is new.
  return error;
}

absl::Status InvalidCall(absl::string_view operator_name, absl::string_view argument,
                         absl::string_view problem, int aclnn_status) {
  return CallError(Reason::kInvalid, {.operator_name = operator_name, .argument = argument},
                   problem, aclnn_status);
}

absl::Status AtPlace(const ErrorPlace& place, absl::Status error) {
  if (error.ok()) return error;
  // An invocation of 0 is not encoded, and does not replace another: it is the first that any place
  // adds.
  return MergeDetail(DetailAt(place), std::move(error));
}

absl::Status WithMessage(absl::string_view message, const absl::Status& error) {
  // All payloads, also those of libraries.
  absl::Status result(error.code(), message);
  error.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

void SetErrorDetail(const v1::ErrorDetail& detail, absl::Status* error) {
  error->SetPayload(kDetailUrl, absl::Cord(detail.SerializeAsString()));
}

std::optional<v1::ErrorDetail> ErrorDetailOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kDetailUrl);
  v1::ErrorDetail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) return std::nullopt;
  return detail;
}

Reason ErrorReasonOf(const absl::Status& status) {
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  return detail ? ReasonFromText(detail->reason()) : Reason::kNone;
}

}  // namespace opserve
