// What runs of programs probably cost, and what they did.
#pragma once

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/program/program.h"
#include "server/schedule/policy/cost_model.h"

namespace opserve::server {

// The lane time that the call will probably take. Sets ProgramCall::slice_ends also: no wait is for
// more than 50 ms of work that is known, or one invocation. The execution timeout holds for each
// wait, so an invocation that never ran, which may take any time, has one of its own.
CostModel::Estimate EstimateCost(const CostModel& costs, ProgramCall* bound);

// Learns from a run of the call that went well, from `start` to now; `waits`: as
// ProgramRun::slice_waits.
void RecordRun(const ProgramCall& bound, absl::Time start, absl::Span<const absl::Time> waits,
               CostModel* costs);

// Whether a thread with other duties may start a run of this cost itself: there is little to copy,
// windows of shared memory aside, and executions like it were short.
bool IsPrompt(const Program& program, const CostModel::Estimate& cost);

}  // namespace opserve::server
