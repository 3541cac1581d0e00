#include "client/cli/commands/handle_lookup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve::cli {
namespace {

constexpr size_t kWholeDigits = 60;  // of a daemon's handle, which is not looked up
constexpr size_t kLeastDigits = 8;   // that are shown
constexpr size_t kHandlesShown = 4;  // of those that begin alike
constexpr char kTensor[] = "=tensor:";
constexpr char kLookupHint[] = "see \"opserve tensor list\"";

bool IsHexadecimal(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

// The handles, as digits, that begin with `text`; only `text` itself if it is one of them.
std::vector<std::string> Matches(const std::string& text, const std::vector<std::string>& known) {
  std::vector<std::string> matches;
  for (const std::string& handle : known) {
    // A whole handle is meant even if another begins with it.
    if (handle == text) return {handle};
    if (absl::StartsWith(handle, text)) matches.push_back(handle);
  }
  return matches;
}

absl::StatusOr<std::string> Resolve(const std::string& text,
                                    const std::vector<std::string>& known) {
  std::vector<std::string> matches = Matches(absl::AsciiStrToLower(text), known);
  if (matches.size() == 1) return ParseHandle(matches.front());
  if (matches.size() > 1) {
    const size_t count = matches.size();
    // As many as fit a message.
    matches.resize(std::min(count, kHandlesShown));
    return absl::InvalidArgumentError(
        absl::StrCat(count, " handles begin with \"", text, "\": ", absl::StrJoin(matches, ", "),
                     count > matches.size() ? ", ..." : "", "; more digits are needed"));
  }
  // Half a byte: it can only have been the beginning of a handle.
  if (IsHexadecimal(text) && text.size() % 2 != 0) {
    return absl::NotFoundError(
        absl::StrCat("none of your resident tensors has a handle that begins with \"", text, "\""));
  }
  return ParseHandle(text);
}

}  // namespace

std::variant<std::vector<std::string>, Failure> FindHandles(const std::vector<std::string>& texts,
                                                            Client& client,
                                                            const Session& session) {
  std::vector<std::string> known;
  // Whole handles need no list, which may be long.
  const bool is_to_be_looked_up = std::any_of(
      texts.begin(), texts.end(),
      [](const std::string& text) { return text.size() < kWholeDigits && IsHexadecimal(text); });
  if (is_to_be_looked_up) {
    const absl::StatusOr<std::vector<TensorInfo>> tensors = client.ListTensors(session.timeout);
    // A daemon of before knows whole handles only.
    if (!tensors.ok() && !absl::IsUnimplemented(tensors.status())) {
      return CallFailure(session, client, tensors.status());
    }
    if (tensors.ok()) {
      for (const TensorInfo& tensor : *tensors) {
        known.push_back(FormatHandle(tensor.tensor.handle));
      }
    }
  }
  std::vector<std::string> handles;
  for (const std::string& text : texts) {
    absl::StatusOr<std::string> handle = Resolve(text, known);
    if (!handle.ok()) return UsageFailure(handle.status(), kLookupHint);
    handles.push_back(*std::move(handle));
  }
  return handles;
}

std::optional<Failure> CompleteHandles(std::vector<std::string>* inputs, Client& client,
                                       const Session& session) {
  std::vector<size_t> positions;
  std::vector<std::string> texts;
  for (size_t i = 0; i < inputs->size(); ++i) {
    const size_t start = (*inputs)[i].find(kTensor);
    // Only where the value begins with it: the name of a file may have the same letters.
    if (start != (*inputs)[i].find('=')) continue;
    if (start == std::string::npos) continue;
    const std::string text = (*inputs)[i].substr(start + sizeof(kTensor) - 1);
    if (!IsHexadecimal(text)) continue;  // BuildInvocation refuses it, with the reason
    positions.push_back(i);
    texts.push_back(text);
  }
  auto found = FindHandles(texts, client, session);
  if (auto* failure = std::get_if<Failure>(&found)) return std::move(*failure);
  const auto& handles = std::get<std::vector<std::string>>(found);
  for (size_t i = 0; i < positions.size(); ++i) {
    std::string& input = (*inputs)[positions[i]];
    input.resize(input.size() - texts[i].size());
    absl::StrAppend(&input, FormatHandle(handles[i]));
  }
  return std::nullopt;
}

size_t DistinctDigits(const std::vector<TensorInfo>& sorted) {
  // The handles are sorted, so only neighbours are compared.
  size_t digits = kLeastDigits;
  for (size_t i = 1; i < sorted.size(); ++i) {
    const std::string before = FormatHandle(sorted[i - 1].tensor.handle);
    const std::string after = FormatHandle(sorted[i].tensor.handle);
    const size_t shorter = std::min(before.size(), after.size());
    const size_t common =
        std::mismatch(before.begin(), before.begin() + shorter, after.begin()).first -
        before.begin();
    digits = std::max(digits, common + 1);
  }
  return digits;
}

}  // namespace opserve::cli
