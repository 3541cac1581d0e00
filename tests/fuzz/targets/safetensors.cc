// .safetensors files of strangers: what is read has the size that its shape says, and is no more
// than the file has.
//
// Input: the file.
#include "client/cli/arrays/safetensors.h"

#include "absl/strings/match.h"
#include "client/cpp/tensor_layout.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opserve;        // NOLINT: the function stands for a namespace of its own
  using namespace opserve::fuzz;  // NOLINT
  Input input(data, size);
  const MemoryFile memory_file(input.Rest());
  const auto file = cli::SafetensorsFile::Open(memory_file.path());
  if (!file.ok()) {
    Check(!file.status().message().empty(), "a refusal says why");
    return 0;
  }
  for (const std::string& name : file->names()) {
    const auto tensor = file->Read(name);
    if (!tensor.ok()) {
      Check(absl::StartsWith(tensor.status().message(), memory_file.path()),
            "a refusal names the file");
      continue;
    }
    Check(tensor->storage().size() <= size, "no more is read than there is");
    const auto bytes = ContiguousBytes(tensor->dtype(), tensor->shape());
    Check(bytes == tensor->storage().size(), "the shape has as many elements");
  }
  Check(absl::IsNotFound(file->Read("__metadata__").status()), "the file's metadata is no tensor");
  return 0;
}
