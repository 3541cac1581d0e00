// .npy files and results as text. A file that is accepted can be written and read again with the
// same elements; a header likewise; text never leaves its width nor loses a bracket.
//
// Input: a byte for how to read, the file.
#include "client/cli/arrays/npy.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/cli/arrays/array_text.h"
#include "client/cli/arrays/npy_header.h"
#include "client/cpp/tensor_layout.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/memory_file.h"

namespace opserve::fuzz {
namespace {

constexpr size_t kWidth = 80;

void CheckHeader(absl::string_view text) {
  const auto header = cli::ParseNpyHeader(text);
  if (!header.ok()) {
    Check(absl::StartsWith(header.status().message(), "bad .npy header: "), "a refusal says why");
    return;
  }
  for (int64_t extent : header->shape) Check(extent >= 0, "extents are not negative");
  if (absl::StrContains(header->descr, '\'')) return;  // no name of a dtype
  const auto again = cli::ParseNpyHeader(cli::FormatNpyHeader(*header));
  Check(again.ok() && again->descr == header->descr && again->shape == header->shape &&
            again->fortran_order == header->fortran_order,
        "a header can be written and read again");
}

// Of the values that fill a result with `rank` brackets.
void CheckText(const Result& result) {
  const std::string text = cli::FormatValues(result, kWidth);
  Check(!text.empty(), "there is a text");
  Check(std::count(text.begin(), text.end(), '[') == std::count(text.begin(), text.end(), ']'),
        "brackets are closed");
  if (result.num_elements() > 0) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      // Brackets at both ends of a line do not count.
      Check(line.size() <= kWidth + 2 * result.shape().size() + 6, "lines keep to their width");
    }
  }
  const cli::ValueSummary summary = cli::Summarize(result);
  Check(summary.num_finite + summary.num_nan <= summary.num_elements, "elements are counted once");
  Check(cli::ValuesToJson(result).size() <= 1000, "JSON is bounded");
}

void CheckRoundTrip(const Tensor& tensor) {
  const absl::StatusOr<Tensor> plain = MakeContiguous(tensor);
  Check(plain.ok(), "what a file holds is a tensor");
  const absl::string_view bytes(reinterpret_cast<const char*>(plain->storage().data()),
                                plain->storage().size());
  const Result result(OutputOf{}, plain->dtype(), plain->shape(), {&bytes, 1}, plain->owner());
  const MemoryFile file;
  Check(cli::WriteNpy(file.path(), result).ok(), "it can be written");
  const absl::StatusOr<Tensor> again = cli::ReadNpy(file.path());
  Check(again.ok(), "and read");
  Check(again->dtype() == plain->dtype() && again->shape() == plain->shape(), "with its shape");
  Check(std::equal(again->storage().begin(), again->storage().end(), plain->storage().begin(),
                   plain->storage().end()),
        "and its elements");
  CheckText(result);
}

}  // namespace
}  // namespace opserve::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opserve;        // NOLINT: the function stands for a namespace of its own
  using namespace opserve::fuzz;  // NOLINT
  Input input(data, size);
  const uint8_t reading = input.Byte();
  if (reading % 4 == 3) {
    CheckHeader(input.Rest());
    return 0;
  }
  const MemoryFile file(input.Rest());
  const auto tensor = cli::ReadNpy(
      file.path(), reading % 4 == 2 ? cli::NpyReading::kAsBf16 : cli::NpyReading::kAsNamed);
  if (tensor.ok()) CheckRoundTrip(*tensor);
  return 0;
}
