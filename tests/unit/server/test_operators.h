// The catalogue with the functions of the host CANN, loaded once for all tests of a program.
#pragma once

#include "server/program/operator_table.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {

inline const OperatorTable& TestOperators() {
  static const auto* const table = new OperatorTable(TestAcl());
  return *table;
}

}  // namespace opserve::server
