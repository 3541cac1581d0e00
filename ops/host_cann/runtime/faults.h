// Faults on request: which calls, kernels and copies are to misbehave. Lost devices are the
// devices' own state (device.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {

// Which of the matching calls or launches a fault hits.
struct FaultWindow {
  static constexpr uint64_t kAll = UINT64_MAX;
  uint64_t nth = 1;    // first one hit, counted from when the fault was added
  uint64_t count = 1;  // how many, or kAll
};

struct KernelFault {
  aclError code = ACL_SUCCESS;  // not 0: fail instead of running
  bool sticky = false;          // and so does all else on the device, until it is reset
  bool hang = false;
  uint64_t slow_us = 0;
  bool wrong = false;
};

// One fault as described in opserve/host_cann.h.
struct Fault {
  enum class Kind { kCall, kKernel, kCopies, kDevice };
  Kind kind = Kind::kCall;
  std::string name;  // function or operator ("*": all)
  FaultWindow window;
  KernelFault kernel;
  int32_t on = -1;              // kKernel: only on this device; -1: on any
  aclError code = ACL_SUCCESS;  // kCall, kDevice
  uint64_t slow_us = 0;         // kCall
  uint64_t bytes_per_second = 0;
  int32_t device = 0;
  int resets = 1;
};

// Reads the text of opserveHostInjectFaults. False: malformed, and `error` says where and how.
bool ParseFaults(std::string_view text, std::vector<Fault>* faults, std::string* error);

// The active faults of the process. Thread-safe.
class Faults {
 public:
  static Faults& Get();

  // Adds faults of any kind but kDevice.
  void Add(const Fault& fault);
  void Clear();

  // The code that this call is to fail with, or 0, after the time that it is to take longer. Counts
  // the call against the faults.
  aclError TakeCallFault(const char* function) {
    if (!any_calls_.load(std::memory_order_relaxed)) return ACL_SUCCESS;
    return FindCallFault(function);
  }
  // The fault that this launch is to have. Counts it.
  KernelFault TakeKernelFault(std::string_view name, int32_t device);
  // Whether a launch may have one.
  bool AnyOfKernels() const { return any_kernels_.load(std::memory_order_relaxed); }
  // How fast copies may be; 0: as fast as they are.
  uint64_t bytes_per_second() const { return bytes_per_second_.load(std::memory_order_relaxed); }

 private:
  struct Active {
    Fault fault;
    uint64_t seen = 0;
  };
  // Whether this one is hit; counts it.
  static bool Hits(Active& active, std::string_view name);
  aclError FindCallFault(std::string_view function) ABSL_LOCKS_EXCLUDED(mutex_);

  // Spares the lock where there is nothing to find.
  std::atomic<bool> any_calls_{false};
  std::atomic<bool> any_kernels_{false};
  std::atomic<uint64_t> bytes_per_second_{0};

  Mutex mutex_;
  std::vector<Active> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<Active> kernels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::host_cann
