#include "launch.h"

namespace opserve::ascendc::emulation {

void Run(const Launch& launch, const std::function<void()>& kernel) {
  for (int64_t i = 0; i < launch.num_cores; ++i) {
    Core core(launch.last_core_first ? launch.num_cores - 1 - i : i, launch.num_cores,
              launch.unified_buffer_bytes, launch.global);
    const CurrentCore current(&core);
    kernel();
    core.CheckFinished();
  }
}

}  // namespace opserve::ascendc::emulation
