// A stretch of memory that a task touches.
#pragma once

#include <cstddef>

namespace opserve::host_cann {

// Bytes of device memory, or of host memory that is page-locked or registered.
struct MemoryRange {
  const void* address = nullptr;
  size_t bytes = 0;
  const char* name = "";  // argument, for messages; a literal
};

}  // namespace opserve::host_cann
