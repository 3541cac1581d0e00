// The scheduling of threads that do nothing but compute.
#pragma once

namespace opserve::host_cann {

// Called by a thread of the host CANN as it begins: names it for top and perf (`name`: at most 15
// characters), and asks the system not to take a core from a running thread when this one wakes
// (SCHED_BATCH). A kernel gains nothing by beginning some microseconds earlier; the thread that it
// would interrupt may be the caller's own, or one that answers requests. A thread with a policy of
// the caller's choice, or on a system that forbids it, keeps the policy.
void BeginComputeThread(const char* name);

}  // namespace opserve::host_cann
