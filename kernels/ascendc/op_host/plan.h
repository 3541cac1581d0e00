// How a call of the kernel is cut into tiles and shared out to cores: the host's half of the
// kernel. Plain C++, without the vendor's types; op_host/tiling.cc has the vendor's framework call
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "../op_kernel/kl_div_target_backward_tiling.h"
#include "shape.h"

namespace opserve::ascendc {

struct Problem {
  Shape shape[kNumInputs];  // of the contiguous inputs; the output has target's
  int32_t element_bytes[kNumInputs] = {4, 4, 4};
  int64_t reduction = 0;  // 0 none, 1 mean, 2 sum, 3 batchmean; any other value acts as none
  bool log_target = false;
};

struct Device {
  int64_t num_cores = 1;
  size_t unified_buffer_bytes = 192 * 1024;  // of one core
};

struct Plan {
  int64_t num_cores = 0;  // to launch; 0: the output is empty
  KlDivTargetBackwardTiling tiling = {};
};

// The result's sums do not depend on `device.num_cores`; they do on its unified buffer. False, with
// a message, where the shapes do not fit each other, a rank is above 8, or the unified buffer does
// not hold the smallest tiles.
bool MakePlan(const Problem& problem, const Device& device, Plan* plan, std::string* error);

}  // namespace opserve::ascendc
