// opserved --self_test: tries this machine's equipment for a daemon, and gives advice on each
// fault.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "server/config/config.h"
#include "server/diagnosis/report.h"
#include "server/program/operator_pack.h"

namespace opserve::server {

// Looks at the machine, loads the ACL libraries and tries every device that `config` names, beside
// whatever else uses them; the daemon takes `streams` of each. Writes the findings to `out` as they
// come; whether nothing is wrong. `packs` have been tried.
//
// Ends the process with exit code 1, the report written, if a call of a driver does not return.
bool RunSelfTest(const Config& config, std::vector<OperatorPack> packs, uint32_t streams,
                 Report::Format format, std::FILE* out);

}  // namespace opserve::server
