// Tensors from .safetensors files: eight bytes with the length of a JSON header that says of each
// tensor its dtype, shape and place, and the elements behind it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

// The names of the tensors, in the header's order.
// kInvalidArgument: not such a file, or a header over 100 MB. kNotFound, kPermissionDenied, ...: it
// cannot be read.
absl::StatusOr<std::vector<std::string>> ListSafetensors(const std::string& path);

// The tensor of that name: F16, BF16, F32 or F64, of rank 0 to 8. Reads no other.
// Errors are as ListSafetensors', and kNotFound: no such tensor. kInvalidArgument: another dtype,
// or a place that does not fit the shape or is not in the file.
absl::StatusOr<Tensor> ReadSafetensors(const std::string& path, const std::string& name);

}  // namespace opserve::cli
