// Launching a kernel on emulated cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core.h"

namespace opserve::ascendc::emulation {

struct Launch {
  int64_t num_cores = 1;
  size_t unified_buffer_bytes = kUnifiedBufferBytes;  // a multiple of 32
  bool last_core_first = false;
  std::vector<GlobalRange> global;  // what the kernel may touch
};

// Runs `kernel` once for each core, one after the other, on this thread. Throws Violation where it
// breaks a rule.
void Run(const Launch& launch, const std::function<void()>& kernel);

// The arguments of the entry in op_kernel/kl_div_target_backward.cpp.
using KlDivTargetBackwardEntry = void (*)(uint8_t* grad_output, uint8_t* self, uint8_t* target,
                                          uint8_t* grad_target, uint8_t* workspace,
                                          uint8_t* tiling);

// The entry as compiled for these dtypes, by their ACL numbers: 0 FLOAT, 1 FLOAT16, 27 BF16. Null
// for others.
KlDivTargetBackwardEntry EntryFor(int32_t grad_output, int32_t self, int32_t target);

}  // namespace opserve::ascendc::emulation
