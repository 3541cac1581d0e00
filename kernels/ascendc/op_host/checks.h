// What the first stage of aclnnKlDivTargetBackward refuses, without the vendor's types: op_api has
// it decided here, so that the conformance set's status cases run against it on any machine.
#pragma once

#include <cstdint>
#include <string>

#include "shape.h"

namespace opserve::ascendc {

// ACL's numbers (aclDataType) of the dtypes that the kernel takes.
inline constexpr int32_t kFloat = 0;
inline constexpr int32_t kFloat16 = 1;
inline constexpr int32_t kBf16 = 27;

struct Argument {
  int32_t dtype = 0;   // aclDataType
  int32_t format = 2;  // aclFormat of the storage
  Shape shape;         // of the view
};

// What the first stage was called with; null where the caller passed null.
struct Call {
  bool has_workspace_size = true;
  bool has_executor = true;
  const Argument* grad_output = nullptr;
  const Argument* self = nullptr;
  const Argument* target = nullptr;
  const Argument* grad_target = nullptr;
};

enum class Verdict {
  kCompute,
  kNothingToDo,  // success, workspace 0: self is empty
  kNullPointer,  // 161001
  kInvalid,      // 161002
};

struct Checked {
  Verdict verdict = Verdict::kCompute;
  std::string message;  // which argument, expected and actual: where it is refused
};

// In the operator's order: null pointers, dtypes, ranks, broadcasting, the output's shape, formats,
// emptiness.
Checked CheckCall(const Call& call);

}  // namespace opserve::ascendc
