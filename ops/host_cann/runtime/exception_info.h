// Telling registered callbacks about failed tasks.
#pragma once

#include <cstdint>

#include "acl/acl.h"

// The ABI's opaque structure.
struct aclrtExceptionInfo {
  int32_t device_id;
  int32_t stream_id;
  uint64_t task_id;
  uint32_t thread_id;  // of the thread that queued the task
  aclError code;
};

namespace opserve::host_cann {

// Calls every registered callback with `info`, on this thread.
void ReportException(aclrtExceptionInfo info);

// Sets the id that aclrtGetThreadLastTaskId returns on this thread.
void SetThreadLastTaskId(uint32_t task_id);

}  // namespace opserve::host_cann
