// Element types: the facts about each, and lookups by them. The table is table.inc.
//
// All functions are thread-safe and allocate nothing unless they return a string; the facts are
// constants.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "opserve/v1/tensor.pb.h"

namespace opserve {

using Dtype = v1::DataType;

// An element type in DLPack.
struct DlpackType {
  int code;  // DLDataTypeCode
  int bits;

  friend bool operator==(const DlpackType& a, const DlpackType& b) = default;
};

// One row of the table. The strings are literals.
struct DtypeFacts {
  Dtype dtype;
  absl::string_view name;                // "FLOAT16"
  int64_t bytes;                         // of one element
  int acl;                               // aclDataType
  absl::string_view inference;           // Open Inference Protocol: "FP16"
  std::array<absl::string_view, 2> npy;  // descriptors, the one to write first; then "" if there is
                                         // no other
  absl::string_view safetensors;         // "F16"
  DlpackType dlpack;
  absl::string_view torch;  // also NumPy's and ml_dtypes' name: "float16"
  double tolerance;         // relative error that conforming operators keep in results
};

// All dtypes, in the order of their numbers on the wire.
absl::Span<const DtypeFacts> AllDtypes();

// The facts of a dtype. Null: a number that is none, which a client may send.
const DtypeFacts* FindDtype(Dtype dtype);

// The dtype with `value` in a column, or null: FindDtypeBy(&DtypeFacts::safetensors, "BF16").
template <typename T>
const DtypeFacts* FindDtypeBy(T DtypeFacts::*column, const std::type_identity_t<T>& value) {
  for (const DtypeFacts& facts : AllDtypes()) {
    if (facts.*column == value) return &facts;
  }
  return nullptr;
}

// The dtype with this descriptor in .npy files, or null.
const DtypeFacts* FindDtypeByNpy(absl::string_view descriptor);

// "FLOAT16". A number that is no dtype: "UNSPECIFIED".
absl::string_view DtypeName(Dtype dtype);

// Bytes of one element. A number that is no dtype: 0.
int64_t DtypeBytes(Dtype dtype);

// All names, for messages: "FLOAT, FLOAT16, BF16 or DOUBLE".
std::string DtypeNames();

// All names that a file format or library has for the dtypes, narrow ones first, for messages:
// DtypeNamesIn(&DtypeFacts::safetensors) is "F16, BF16, F32 or F64".
std::string DtypeNamesIn(absl::string_view DtypeFacts::*column);

}  // namespace opserve
