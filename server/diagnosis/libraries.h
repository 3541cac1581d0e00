// The loaded ACL libraries: their paths and versions, and the functions they lack.
#pragma once

#include "server/device/acl/acl_library.h"
#include "server/diagnosis/report.h"
#include "server/program/operator_table.h"

namespace opserve::server {

void CheckLibraries(const AclLibrary& acl, const OperatorTable& operators, Report* report);

}  // namespace opserve::server
