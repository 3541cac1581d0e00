// Tensors from and to NumPy's .npy files, half types included.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/arrays/file_bytes.h"
#include "client/cpp/tensor.h"

namespace opserve::cli {

enum class NpyReading {
  kAsNamed,  // the dtype that the file names
  kAsBf16,   // elements of two bytes are BF16, whatever the file calls them (uint16, void)
};

// Reads a whole file. Accepts little-endian float16, float32 and
// float64, and bfloat16 as the ml_dtypes package writes it ("<V2"), in C or Fortran order, of rank
// 0 to 8.
//
// kInvalidArgument: something else; a header over 64 KiB; more or fewer bytes than the shape needs.
// kNotFound, kPermissionDenied, ...: the file cannot be read.
absl::StatusOr<Tensor> ReadNpy(const std::string& path, NpyReading reading = NpyReading::kAsNamed);

// The same of such a file's bytes, which the tensor shares. kInvalidArgument as above.
absl::StatusOr<Tensor> ParseNpy(const OwnedBytes& file, NpyReading reading);

// Writes `result` in C order; BF16 as ml_dtypes does. An existing file is replaced.
// Any error: the file cannot be written.
absl::Status WriteNpy(const std::string& path, const Result& result);

// The same to a stream, which tells by its state whether it was written.
void WriteNpy(std::ostream& stream, const Result& result);

}  // namespace opserve::cli
