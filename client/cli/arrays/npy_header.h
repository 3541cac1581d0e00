// The header of NumPy's .npy files: a Python literal that describes the array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opserve::cli {

struct NpyHeader {
  std::string descr;  // NumPy's name of the dtype, e.g. "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }": each key once, in any
// order, with any spacing. kInvalidArgument: anything else; the message says where.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text);

// The reverse, as NumPy writes it.
std::string FormatNpyHeader(const NpyHeader& header);

}  // namespace opserve::cli
