// Tensors of .safetensors files: eight bytes with the length of a JSON header that says of each
// tensor its dtype, shape and place, and the elements behind it. Nothing of a file is trusted: its
// lengths are checked before memory is taken, and its names are only ever names of tensors.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/tensor.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

// A file that is read tensor by tensor. A value type.
class SafetensorsFile {
 public:
  // Reads the header.
  // kInvalidArgument: not such a file, or a header over 100 MB. kNotFound, kPermissionDenied, ...:
  // it cannot be read.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // The names of the tensors, in the header's order. Any UTF-8 text, control characters included.
  std::vector<std::string> names() const;

  // The tensor of that name, of rank 0 to 8. Reads no other.
  // Errors are as Open's, and kNotFound: no such tensor. kInvalidArgument: a dtype that opserve
  // lacks, or a place that does not fit the shape or is not in the file.
  absl::StatusOr<Tensor> Read(const std::string& name) const;

 private:
  SafetensorsFile() = default;

  std::string path_;
  nlohmann::ordered_json tensors_;  // an object
  uint64_t data_offset_ = 0;        // of the elements in the file
};

// Writes tensors under their names, which are distinct. A file that is there stays until the new
// one is complete. kInvalidArgument: a name is not UTF-8, or is "__metadata__". Any other error: it
// cannot be written.
absl::Status WriteSafetensors(const std::string& path,
                              absl::Span<const std::pair<std::string, Result>> tensors);

}  // namespace opserve::cli
