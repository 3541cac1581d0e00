// A program as a drawing for Graphviz.
#pragma once

#include <string>

#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

// In the language DOT: a box for each input and constant, an oval for each invocation, and where
// the results go. Draw it with "dot -Tsvg".
std::string DrawProgram(const v1::PrepareRequest& program);

}  // namespace opserve::cli
