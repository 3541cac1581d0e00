#include "client/cpp/error.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cpp/grpc_status.h"

namespace opserve {
namespace {

// Key of the payload that carries the trailer's pushback inside an absl::Status.
constexpr absl::string_view kPushbackUrl = "opserve/retry-pushback-ms";

constexpr char kPushbackTrailer[] = "grpc-retry-pushback-ms";

// Puts the error detail in `details` into `status`, where ErrorDetailOf finds it.
void AddDetail(const v1::StatusDetails& details, absl::Status* status) {
  v1::ErrorDetail detail;
  for (const google::protobuf::Any& any : details.details()) {
    if (!any.UnpackTo(&detail)) continue;
    SetErrorDetail(detail, status);
    // The first of this type. Other details are for other readers.
    return;
  }
}

// gRPC's messages for a call cut off between the beginning of the answer and its status, as by a
// proxy when the daemon behind it dies; earlier breaks are kUnavailable.
constexpr absl::string_view kLostStreams[] = {"Stream removed", "No status received"};

absl::StatusCode CodeOf(const grpc::Status& status) {
  const bool is_lost =
      status.error_code() == grpc::StatusCode::UNKNOWN && status.error_details().empty() &&
      std::find(std::begin(kLostStreams), std::end(kLostStreams), status.error_message()) !=
          std::end(kLostStreams);
  return is_lost ? absl::StatusCode::kUnavailable
                 : static_cast<absl::StatusCode>(status.error_code());
}

struct Sizes {
  uint64_t bytes = 0;
  uint64_t limit = 0;
};

// Where gRPC refuses a message for its size, as in a proxy, it says "Received message larger than
// max (BYTES vs. LIMIT)". Nothing: another text.
std::optional<Sizes> SizesOfRefusedMessage(absl::string_view text) {
  constexpr absl::string_view kBeginning = "Received message larger than max (";
  const size_t begin = text.find(kBeginning);
  if (begin == absl::string_view::npos) return std::nullopt;
  const std::string numbers(text.substr(begin + kBeginning.size()));
  const std::vector<std::string> parts =
      absl::StrSplit(numbers.substr(0, numbers.find(')')), " vs. ");
  Sizes sizes;
  const bool is_understood = parts.size() == 2 && absl::SimpleAtoi(parts[0], &sizes.bytes) &&
                             absl::SimpleAtoi(parts[1], &sizes.limit);
  return is_understood ? std::optional(sizes) : std::nullopt;
}

}  // namespace

absl::Status TooLargeToSend(uint64_t bytes, uint64_t limit, absl::string_view rule) {
  return MakeError(
      Reason::kTooLarge,
      absl::StrCat("the message has ", bytes, " bytes, at most ", limit, " allowed (", rule,
                   "); upload large inputs as resident tensors, or put them into "
                   "shared memory"));
}

absl::Status FromGrpcStatus(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(CodeOf(status), status.error_message());
  v1::StatusDetails details;
  if (details.ParseFromString(status.error_details())) AddDetail(details, &result);
  // Sizes are gRPC's refusal, before a daemon could explain it.
  if (absl::IsResourceExhausted(result) && !ErrorDetailOf(result)) {
    if (const std::optional<Sizes> sizes = SizesOfRefusedMessage(status.error_message())) {
      return TooLargeToSend(sizes->bytes, sizes->limit, "--max_message_bytes");
    }
  }
  const auto& trailers = context.GetServerTrailingMetadata();
  if (const auto pushback = trailers.find(kPushbackTrailer); pushback != trailers.end()) {
    // Kept as text and read when it is asked for, as most errors are not repeated.
    result.SetPayload(kPushbackUrl, absl::Cord(absl::string_view(pushback->second.data(),
                                                                 pushback->second.size())));
  }
  return result;
}

absl::Status FromStatusDetails(const v1::StatusDetails& details) {
  // The number is the daemon's: others would make a status that no code tests for.
  const bool is_error_code = details.code() > static_cast<int>(absl::StatusCode::kOk) &&
                             details.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  absl::Status result(
      is_error_code ? static_cast<absl::StatusCode>(details.code()) : absl::StatusCode::kUnknown,
      details.message());
  AddDetail(details, &result);
  return result;
}

std::optional<absl::Duration> RetryPushbackOf(const absl::Status& status) {
  int64_t milliseconds = 0;
  if (const auto trailer = status.GetPayload(kPushbackUrl)) {
    // gRPC's rule: a value that is not a number means "never", as -1 does.
    if (!absl::SimpleAtoi(std::string(*trailer), &milliseconds)) milliseconds = -1;
  } else if (const auto detail = ErrorDetailOf(status);
             detail && detail->retry_pushback_ms() != 0) {
    // 0 is the wire's way to say nothing.
    milliseconds = detail->retry_pushback_ms();
  } else {
    return std::nullopt;
  }
  return milliseconds < 0 ? absl::InfiniteDuration() : absl::Milliseconds(milliseconds);
}

}  // namespace opserve
