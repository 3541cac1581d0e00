#include "client/cli/arrays/closest_name.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve::cli {
namespace {

// Letters to insert, delete or replace to turn one name into the other.
size_t EditDistance(absl::string_view from, absl::string_view to) {
  // One row of the table of distances at a time; `diagonal` is the entry above and to the left.
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const bool differs = absl::ascii_tolower(from[i]) != absl::ascii_tolower(to[j]);
      const size_t replaced = diagonal + (differs ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string ClosestName(absl::string_view wanted, const std::vector<std::string>& names) {
  const std::string* closest = nullptr;
  size_t distance = wanted.size() / 2 + 1;  // as far as this, a name is another word
  for (const std::string& name : names) {
    const size_t candidate = EditDistance(wanted, name);
    if (candidate < distance) {
      distance = candidate;
      closest = &name;
    }
  }
  return closest == nullptr ? "" : *closest;
}

std::string UnknownName(absl::string_view kind, absl::string_view wanted,
                        const std::vector<std::string>& names) {
  const std::string closest = ClosestName(wanted, names);
  return absl::StrCat("unknown ", kind, " \"", wanted, "\"; ",
                      closest.empty() ? absl::StrCat("known: ", absl::StrJoin(names, ", "))
                                      : absl::StrCat("did you mean ", closest, "?"));
}

}  // namespace opserve::cli
