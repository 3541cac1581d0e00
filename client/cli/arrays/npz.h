// Arrays from NumPy's .npz files: ZIP archives of .npy files.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/arrays/npy.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

// The names of the arrays, without ".npy". kInvalidArgument: no such archive. kNotFound: no such
// file.
absl::StatusOr<std::vector<std::string>> ListNpz(const std::string& path);

// The array of that name, compressed or not. Errors are as ListNpz's and ReadNpy's, and kNotFound:
// no such array.
absl::StatusOr<Tensor> ReadNpz(const std::string& path, const std::string& name,
                               NpyReading reading);

}  // namespace opserve::cli
