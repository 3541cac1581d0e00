// Arrays named on the command line: read from .npy, .npz and .safetensors files, written to .npy
// files.
#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

// The name of an output that goes to standard output.
inline constexpr absl::string_view kStandardOutput = "-";

// Reads FILE[:ARRAY][:bf16]. Files that end in .npz or .safetensors hold several arrays; which one,
// if it is not said: the only one, or the one that is called `usual_name`. Any other file is a .npy
// file, and has one; "-" is the .npy file that `input` has, up to its end. With :bf16, elements of
// two bytes are BF16, whatever a NumPy file calls them. `input` may be null: there is none.
//
// kInvalidArgument: the file cannot be used, or has several arrays and none is meant. kNotFound: no
// such file or array. kPermissionDenied, ...: it cannot be read.
absl::StatusOr<Tensor> ReadArrayArgument(absl::string_view argument,
                                         const std::string& usual_name = "",
                                         std::istream* input = nullptr);

// Whether ReadArrayArgument would read its `input`.
bool IsStandardInput(absl::string_view argument);

// kInvalidArgument: an array cannot be written under this name, which says that the file is of
// another kind than .npy.
absl::Status CheckOutputName(absl::string_view path);

// Writes the result as .npy to the file, or to `standard_output` if `path` is "-". Any error: it
// cannot be written.
absl::Status WriteArray(const std::string& path, const Result& result,
                        std::ostream& standard_output);

}  // namespace opserve::cli
