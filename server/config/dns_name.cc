#include "server/config/dns_name.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace opserve::server {
namespace {

bool IsLabel(absl::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
         });
}

}  // namespace

bool IsDnsName(absl::string_view text, bool allows_wildcard) {
  if (text.size() > 253) return false;
  std::vector<absl::string_view> labels = absl::StrSplit(text, '.');
  // A wildcard stands for one whole label, and not for a top-level name.
  if (allows_wildcard && labels.size() > 1 && labels[0] == "*") labels.erase(labels.begin());
  return std::all_of(labels.begin(), labels.end(), IsLabel);
}

}  // namespace opserve::server
