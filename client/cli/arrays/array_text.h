// A result's values for people and programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "client/cpp/tensor.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

// Summary of all values of a tensor.
struct ValueSummary {
  int64_t num_elements = 0;
  int64_t num_finite = 0;
  int64_t num_nan = 0;
  // Over the finite values, in double; 0 if there are none. false is 0, true is 1.
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  // Where the first smallest and largest ones are.
  int64_t minimum_at = 0;
  int64_t maximum_at = 0;
};

ValueSummary Summarize(const Result& result);

// Whether the elements are integers or BOOL: there is nothing between them, no NaN and no infinity.
bool IsInteger(DataType dtype);

// Element `index` in row-major order, widened. Requires: index < result.num_elements().
double ElementAt(const Result& result, int64_t index);

// Likewise of a result that IsInteger, exactly.
int64_t IntegerAt(const Result& result, int64_t index);

// The shortest text that the dtype reads as the same number, of DOUBLE in 8 digits at most:
// "-0.05", "nan", "-inf". A number between two of the dtype is rounded to one of them.
std::string FormatValue(DataType dtype, double value);

// Element `index`, as FormatValue writes it; integers exactly, "true" and "false".
std::string FormatElement(const Result& result, int64_t index);

// Likewise, DOUBLE in all of its digits; as a string if JSON has no number for it.
nlohmann::ordered_json ElementToJson(const Result& result, int64_t index);

// Nested brackets as NumPy prints them, in lines of at most `width` columns. Of more than 1000
// elements, the first and last three along each axis; of none, "[]".
std::string FormatValues(const Result& result, size_t width);

// The first 1000 elements in row-major order; those JSON has no number for as strings.
nlohmann::ordered_json ValuesToJson(const Result& result);

}  // namespace opserve::cli
