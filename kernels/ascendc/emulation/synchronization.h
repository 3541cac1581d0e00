// Cores, and the order between instructions, as far as our kernel says it.
// Signatures, units and limits are those of the API reference for Atlas A2; a call outside of them
// ends the run with a Violation.
#pragma once

#include <cstdint>

#include "core.h"
#include "tensor.h"

enum pipe_t { PIPE_V };

namespace AscendC {

inline int64_t GetBlockIdx() { return emulated::Core::Current().block(); }
inline int64_t GetBlockNum() { return emulated::Core::Current().num_blocks(); }

template <pipe_t kPipe>
void PipeBarrier() {
  static_assert(kPipe == PIPE_V, "the only one that is emulated");
  emulated::Core::Current().SettleVector();
}

template <HardEvent kEvent>
void SetFlag(int32_t event) {
  emulated::Core::Current().SetEvent(static_cast<int>(kEvent), event);
}

template <HardEvent kEvent>
void WaitFlag(int32_t event) {
  emulated::Core& core = emulated::Core::Current();
  core.WaitEvent(static_cast<int>(kEvent), event);
  kEvent == HardEvent::V_S ? core.SettleVectorForScalar() : core.SettleScalarForVector();
}

}  // namespace AscendC
