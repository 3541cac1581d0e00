// A result for people and programs: dtype, shape, a summary, and its values or their file.
#pragma once

#include <string>

#include "client/cli/output.h"
#include "client/cpp/tensor.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

// `path`: the file that has the values; null: they are part of the report.
nlohmann::ordered_json ResultToJson(const Result& result, const std::string* path);
void WriteResult(const Result& result, const std::string* path, Terminal& terminal);

}  // namespace opserve::cli
