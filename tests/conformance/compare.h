// Whether what an operator left behind is what a conformance case expects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/case.h"

namespace opserve::conformance {

// What an output's storage is filled with before the call.
inline constexpr char kGuardByte = '\xA5';

// The bytes of the view's elements in row-major order, taken out of `storage`, which holds all of
// the tensor's storage.
std::string GatherView(const Tensor& tensor, std::string_view storage);

// Contiguous elements of `dtype` (FLOAT, FLOAT16, BF16 or DOUBLE) as float64.
std::vector<double> Widen(const std::string& dtype, std::string_view bytes);

// Compares contiguous output elements with the case's expected values. Empty: acceptable. Otherwise
// the first difference, as text.
std::string CompareElements(const Case& value_case, std::string_view elements);

// The same for an output's storage that was filled with kGuardByte before; what the view does not
// address must still be that.
std::string CompareStorage(const Case& value_case, std::string_view storage);

}  // namespace opserve::conformance
