#include "ops/host_cann/runtime/calls.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Counters by the address of the name literal: a call costs a probe and an increment, no lock.
// Several literals may spell one name (one per library); their counters are added up when read.
class CallCounters {
 public:
  void Count(const char* function) {
    // String literals lie some bytes apart, so the lowest bits of the address say little.
    const size_t start = reinterpret_cast<uintptr_t>(function) / 8 % kSlots;
    for (size_t i = 0; i < kSlots; ++i) {
      Slot& slot = slots_[(start + i) % kSlots];
      const char* owner = slot.function.load(std::memory_order_acquire);
      // A free slot. Another thread may take it first: `owner` is then that one's name, which may
      // be the same.
      if (owner == nullptr && slot.function.compare_exchange_strong(owner, function)) {
        owner = function;
      }
      // A foreign slot: the next one. Slots are never given up, so a name stays where it was first
      // found.
      if (owner != function) continue;
      slot.calls.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }

  uint64_t Sum(std::string_view function) const {
    uint64_t sum = 0;
    for (const Slot& slot : slots_) {
      const char* owner = slot.function.load(std::memory_order_acquire);
      if (owner != nullptr && function == owner) sum += slot.calls.load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  static constexpr size_t kSlots = 2048;  // the ABI has a few hundred names
  struct Slot {
    std::atomic<const char*> function{nullptr};
    std::atomic<uint64_t> calls{0};
  };
  std::array<Slot, kSlots> slots_;
};

CallCounters& Counters() {
  static CallCounters* const counters = new CallCounters;
  return *counters;
}

}  // namespace

aclError EnterErrorQuery(const char* function) {
  // Counted even if a fault fails it: tests count calls, not successes.
  Counters().Count(function);
  const aclError code = Faults::Get().TakeCallFault(function);
  if (code == ACL_SUCCESS) return ACL_SUCCESS;
  return Fail(code, kInternal, Concat("injected fault: ", function, " fails with ", code));
}

int32_t EnterCall(const char* function) {
  // First, so that faults of the environment hit the very first call, too.
  const std::string& settings_error = Runtime::Get().settings_error();
  RETURN_IF_FAILED(EnterErrorQuery(function));
  // A malformed environment fails every call but those that read errors.
  if (settings_error.empty()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, settings_error);
}

uint64_t CountOfCalls(std::string_view function) { return Counters().Sum(function); }

}  // namespace opserve::host_cann
