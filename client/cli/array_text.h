// A result's values for people and programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/cpp/tensor.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

// What the values look like as a whole; computed in double.
struct ValueSummary {
  int64_t num_elements = 0;
  int64_t num_finite = 0;
  int64_t num_nan = 0;
  // Over the finite values; 0 if there are none.
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
};

ValueSummary Summarize(const Result& result);

// Element `index` in row-major order, widened. Requires: index < result.num_elements().
double ElementAt(const Result& result, int64_t index);

// In as many digits as the dtype holds: "0.33325", "nan", "-inf".
std::string FormatValue(DataType dtype, double value);

// Nested brackets as NumPy prints them, in lines of at most `width` columns. Of more than 1000
// elements, the first and last three along each axis; of none, "[]".
std::string FormatValues(const Result& result, size_t width);

// The first 1000 elements in row-major order; those JSON has no number for as strings.
nlohmann::ordered_json ValuesToJson(const Result& result);

}  // namespace opserve::cli
