// Runs a case of aclnnKlDivTargetBackward as the custom operator package on an NPU does, with
// emulated cores: the first stage's checks, contiguous copies of the inputs, the plan, the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/conformance/case.h"

namespace opserve::conformance {

struct AscendcDevice {
  int64_t num_cores = 1;
  size_t unified_buffer_bytes = 192 * 1024;
  bool last_core_first = false;
};

// The status of the first stage.
int32_t AscendcStageOne(const Case& of);

// The output's elements, contiguous. Throws std::exception where the kernel breaks a rule of the
// device or the plan refuses the case.
std::string AscendcRun(const Case& value_case, const AscendcDevice& device);

}  // namespace opserve::conformance
