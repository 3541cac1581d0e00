// Stage one of every operator: the checks, in the vendor's order and with its codes, and the
// executor, all from the operator's description (ops/catalog).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "aclnn/aclnn_base.h"

namespace opserve::host_cann {

// An argument as the exported function got it. Which member counts, the description tells.
struct StageOneArgument {
  StageOneArgument(const void* value) : pointer(value) {}  // NOLINT: made of C arguments
  StageOneArgument(int64_t value) : integer(value) {}      // NOLINT
  StageOneArgument(uint64_t value) : integer(static_cast<int64_t>(value)) {}  // NOLINT
  StageOneArgument(int32_t value) : integer(value) {}                         // NOLINT
  StageOneArgument(int8_t value) : integer(value) {}                          // NOLINT
  StageOneArgument(bool value) : integer(value) {}                            // NOLINT
  StageOneArgument(double value) : real(value) {}                             // NOLINT
  StageOneArgument(float value) : real(value) {}                              // NOLINT

  const void* pointer = nullptr;
  int64_t integer = 0;
  double real = 0;
};

// Stage one of `function`, the exported name of stage two ("aclnnAdd"; a literal); `name` is that
// of stage one. `arguments`: in the order of the declaration. Thread-safe.
//   161001  a null pointer that must not be null
//   161002  a handle that is not alive; a dtype, rank, shape, storage format or attribute that the
//           operator refuses
aclnnStatus RunStageOne(const char* function, const char* name,
                        absl::Span<const StageOneArgument> arguments, uint64_t* workspace_size,
                        aclOpExecutor** executor);

}  // namespace opserve::host_cann
