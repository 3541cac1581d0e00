#include "ops/host_cann/runtime/compute_thread.h"

#include <pthread.h>
#include <sched.h>

namespace opserve::host_cann {

void BeginComputeThread(const char* name) {
  pthread_setname_np(pthread_self(), name);
  // Inherited from the thread that made this one. A real-time policy stays: its owner wants
  // deadlines, which a batch thread does not have.
  if (sched_getscheduler(0) != SCHED_OTHER) return;
  const sched_param none = {};
  sched_setscheduler(0, SCHED_BATCH, &none);  // without effect where a sandbox forbids it
}

}  // namespace opserve::host_cann
