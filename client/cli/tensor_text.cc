#include "client/cli/tensor_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve::cli {

std::string TensorText(DataType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(DataTypeName(dtype), " [", absl::StrJoin(shape, ", "), "]");
}

std::string LeaseText(absl::Duration left) {
  return left > absl::ZeroDuration() ? absl::FormatDuration(absl::Ceil(left, absl::Seconds(1)))
                                     : "over";
}

// The daemon's clock may have been set back since, so an age can be negative.
std::string AgeText(absl::Duration age) {
  const absl::Duration whole = absl::Floor(std::max(age, absl::ZeroDuration()), absl::Seconds(1));
  return whole == absl::ZeroDuration() ? "0s" : absl::FormatDuration(whole);
}

}  // namespace opserve::cli
