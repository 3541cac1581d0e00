// What the text of an error must not tell whoever caused it.
#pragma once

#include <regex>
#include <string>
#include <vector>

namespace opserve {

// The parts of `text` that are an address, an absolute path, an id of the process's own, or one of
// `names` (of other tenants). None: the text may go out.
inline std::vector<std::string> GivenAway(const std::string& text,
                                          const std::vector<std::string>& names = {}) {
  static const auto* const forbidden = new std::vector<std::regex>{
      std::regex("0x[0-9a-fA-F]{6,}"), std::regex("(^|[^A-Za-z0-9_.])/[A-Za-z0-9_.-]{2,}"),
      std::regex("\\b(pid|tid|uid|fd|tenant id|generation)\\b[ :=#]*[0-9]+", std::regex::icase)};
  std::vector<std::string> found;
  for (const std::regex& pattern : *forbidden) {
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
      found.push_back(at->str());
    }
  }
  for (const std::string& name : names) {
    if (text.find(name) != std::string::npos) found.push_back(name);
  }
  return found;
}

}  // namespace opserve
