#include "ops/host_cann/runtime/faults.h"

#include <chrono>
#include <thread>

namespace opserve::host_cann {

Faults& Faults::Get() {
  static Faults* const faults = new Faults;  // leaked: threads may outlive static destruction
  return *faults;
}

void Faults::Add(const Fault& fault) {
  MutexLock lock(mutex_);
  switch (fault.kind) {
    case Fault::Kind::kCall:
      calls_.push_back({fault});
      // Behind the list: a call that sees the flag finds the fault once it has the lock.
      any_calls_ = true;
      break;
    case Fault::Kind::kKernel:
      kernels_.push_back({fault});
      any_kernels_ = true;
      break;
    case Fault::Kind::kCopies:
      bytes_per_second_ = fault.bytes_per_second;
      break;
    // The device's own state, which Device::Lose sets.
    case Fault::Kind::kDevice:
      break;
  }
}

void Faults::Clear() {
  MutexLock lock(mutex_);
  calls_.clear();
  kernels_.clear();
  any_calls_ = false;
  any_kernels_ = false;
  bytes_per_second_ = 0;
}

bool Faults::Hits(Active& active, std::string_view name) {
  const Fault& fault = active.fault;
  if (fault.name != "*" && fault.name != name) return false;
  // Counted before the window, so that `nth` means calls since the fault was added.
  ++active.seen;
  return active.seen >= fault.window.nth && active.seen - fault.window.nth < fault.window.count;
}

aclError Faults::FindCallFault(std::string_view function) {
  aclError code = ACL_SUCCESS;
  uint64_t slow_us = 0;
  // Slept outside the lock: other calls go on meanwhile.
  {
    MutexLock lock(mutex_);
    for (Active& active : calls_) {
      if (!Hits(active, function)) continue;
      // Several faults may hit one call: the first code counts, and all delays.
      if (code == ACL_SUCCESS) code = active.fault.code;
      slow_us += active.fault.slow_us;
    }
  }
  if (slow_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(slow_us));
  return code;
}

KernelFault Faults::TakeKernelFault(std::string_view name, int32_t device) {
  KernelFault combined;
  // Launches take no lock while there are no faults.
  if (!any_kernels_.load(std::memory_order_relaxed)) return combined;
  MutexLock lock(mutex_);
  for (Active& active : kernels_) {
    const bool is_meant = active.fault.on < 0 || active.fault.on == device;
    if (!is_meant || !Hits(active, name)) continue;
    const KernelFault& fault = active.fault.kernel;
    if (combined.code == ACL_SUCCESS) combined.code = fault.code;
    combined.sticky |= fault.sticky;
    combined.hang |= fault.hang;
    combined.slow_us += fault.slow_us;
    combined.wrong |= fault.wrong;
  }
  return combined;
}

}  // namespace opserve::host_cann
