#include "client/cli/text/tensor_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/arrays/handle_text.h"
#include "client/cli/text/output.h"
#include "client/cli/text/time_text.h"
#include "client/cpp/tensor_layout.h"

namespace opserve::cli {

std::string TensorText(DataType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(DataTypeName(dtype), " [", absl::StrJoin(shape, ", "), "]");
}

std::string SizedTensorText(DataType dtype, const std::vector<int64_t>& shape, uint64_t num_bytes) {
  return absl::StrCat(TensorText(dtype, shape), "  ", FormatBytes(num_bytes));
}

uint64_t BytesOf(const ResidentTensor& tensor) {
  return ContiguousBytes(tensor.dtype, tensor.shape).value_or(0);
}

nlohmann::ordered_json ResidentTensorToJson(const ResidentTensor& tensor, uint64_t num_bytes) {
  return {{"handle", FormatHandle(tensor.handle)},
          {"dtype", std::string(DataTypeName(tensor.dtype))},
          {"shape", tensor.shape},
          {"bytes", num_bytes},
          {"device", tensor.device},
          {"lease_end", TimeToJson(tensor.lease_end)}};
}

void WriteResidentTensor(const ResidentTensor& tensor, uint64_t num_bytes, std::ostream& out) {
  out << "handle     " << FormatHandle(tensor.handle) << "\n"
      << "tensor     " << SizedTensorText(tensor.dtype, tensor.shape, num_bytes) << "\n"
      << "device     " << tensor.device << "\n"
      << "lease end  " << TimeText(tensor.lease_end) << "\n";
}

std::string LeaseText(absl::Duration left) {
  // Rounded up: a lease with half a second left is not over.
  return left > absl::ZeroDuration() ? absl::FormatDuration(absl::Ceil(left, absl::Seconds(1)))
                                     : "over";
}

// The daemon's clock may have been set back since, so an age can be negative.
std::string AgeText(absl::Duration age) {
  const absl::Duration whole = absl::Floor(std::max(age, absl::ZeroDuration()), absl::Seconds(1));
  return whole == absl::ZeroDuration() ? "0s" : absl::FormatDuration(whole);
}

}  // namespace opserve::cli
