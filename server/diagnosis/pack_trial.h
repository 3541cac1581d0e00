// Trials of operator packs. A wrong kind of argument makes a library read wild addresses, so a pack
// is first tried in a process of its own: opserved --check_operator_pack.
#pragma once

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/config/config.h"
#include "server/program/operator_pack.h"

namespace opserve::server {

// Longest trial of one --check_operator_pack, from loading the libraries to the last golden case.
inline constexpr absl::Duration kPackTrialTime = absl::Seconds(10);

// Tries the packs in this process: loads the ACL libraries and the packs' own, and runs all golden
// cases of the packs on the first device of `config`. Writes a line to `out` before each step, and
// ends the process with exit code 2 if it takes longer than kPackTrialTime. Call it once.
//
// kInvalidArgument: a pack cannot be served; "refused (REASON): PATH:LINE: OPERATOR: PROBLEM".
// Another code: the packs could not be tried.
absl::Status TryPacks(const Config& config, std::vector<OperatorPack> packs, std::FILE* out);

// Tries a pack in a child process, and refuses it if the trial fails. `program`: opserved's own.
// Waits for at most `time` and a little more than it takes to end a process.
void TryPackInChild(const std::string& program, const Config& config, absl::Duration time,
                    OperatorPack* pack);

}  // namespace opserve::server
