#include "ops/host_cann/runtime/launch_charge.h"

#include <atomic>

#include "ops/host_cann/runtime/runtime.h"

namespace opserve::host_cann {
namespace {

std::atomic<int64_t> charged_launches{0};

}  // namespace

void ChargeLaunch() {
  charged_launches.fetch_add(1, std::memory_order_relaxed);
  const uint64_t time_us = Runtime::Get().settings().launch_us;
  if (time_us == 0) return;
  // A sleep takes longer than most launches, and would leave the thread free for others.
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(time_us);
  while (Clock::now() < end) {
  }
}

int64_t ChargedLaunches() { return charged_launches.load(std::memory_order_relaxed); }

}  // namespace opserve::host_cann
