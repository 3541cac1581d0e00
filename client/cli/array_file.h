// Arrays named on the command line: in .npy, .npz and .safetensors files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

// Reads FILE[:ARRAY][:bf16]. Files that end in .npz or .safetensors hold several arrays; which one,
// if it is not said: the only one, or the one that is called `usual_name`. Any other file is a .npy
// file, and has one. With :bf16, elements of two bytes are BF16, whatever a NumPy file calls them.
//
// kInvalidArgument: the file cannot be used, or has several arrays and none is meant. kNotFound: no
// such file or array. kPermissionDenied, ...: it cannot be read.
absl::StatusOr<Tensor> ReadArrayArgument(absl::string_view argument,
                                         const std::string& usual_name = "");

}  // namespace opserve::cli
