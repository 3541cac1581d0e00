// The machine a daemon is to run on, as seen without loading any library.
#pragma once

#include <string>

#include "server/diagnosis/report.h"

namespace opserve::server {

struct MachineView {
  std::string root = "/";     // where /dev, /proc and /usr are
  bool needs_npu = false;     // devices are NPUs, not the host CANN's
  uint64_t pinned_bytes = 0;  // page-locked memory that the daemon will take
  uint32_t connections = 0;   // that it will accept
};

// Kernel, memory and limits of this process; the NPU's driver and device files; variables of CANN's
// in the environment.
void CheckMachine(const MachineView& view, Report* report);

}  // namespace opserve::server
