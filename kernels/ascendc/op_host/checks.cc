#include "checks.h"

#include <algorithm>

namespace opserve::ascendc {
namespace {

// Formats whose storage is cut into blocks: NC1HWC0, FRACTAL_Z, NC1HWC0_C04, FRACTAL_NZ, NDC1HWC0,
// FRACTAL_Z_3D, FRACTAL_NZ_C0_16 and on.
constexpr int32_t kPrivateFormats[] = {3, 4, 12, 29, 32, 33, 50, 51, 52, 53, 54};

struct Named {
  const char* name;
  const Argument* argument;
};

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (const int64_t extent : shape) text += (text.size() > 1 ? "," : "") + std::to_string(extent);
  return text + "]";
}

Checked Invalid(std::string message) { return {Verdict::kInvalid, std::move(message)}; }

bool IsSupported(int32_t dtype) { return dtype == kFloat || dtype == kFloat16 || dtype == kBf16; }

}  // namespace

Checked CheckCall(const Call& call) {
  const Named tensors[] = {{"gradOutput", call.grad_output},
                           {"self", call.self},
                           {"target", call.target},
                           {"gradTarget", call.grad_target}};
  if (!call.has_workspace_size) return {Verdict::kNullPointer, "workspaceSize is null"};
  if (!call.has_executor) return {Verdict::kNullPointer, "executor is null"};
  for (const Named& tensor : tensors) {
    if (tensor.argument == nullptr)
      return {Verdict::kNullPointer, std::string(tensor.name) + " is null"};
  }
  // That self's dtype can be cast to gradTarget's follows: all of these can.
  for (const Named& tensor : tensors) {
    if (!IsSupported(tensor.argument->dtype)) {
      return Invalid(std::string(tensor.name) + " has dtype " +
                     std::to_string(tensor.argument->dtype) +
                     ", expected FLOAT (0), FLOAT16 (1) or BF16 (27)");
    }
  }
  if (call.grad_target->dtype != call.target->dtype) {
    return Invalid("gradTarget has dtype " + std::to_string(call.grad_target->dtype) +
                   ", expected target's, " + std::to_string(call.target->dtype));
  }
  for (const Named& tensor : tensors) {
    if (tensor.argument->shape.size() > kMaxRank) {
      return Invalid(std::string(tensor.name) + " has rank " +
                     std::to_string(tensor.argument->shape.size()) + ", expected at most 8");
    }
  }
  const std::optional<Shape> common = Broadcast(call.self->shape, call.target->shape);
  if (!common) {
    return Invalid("self " + ToString(call.self->shape) + " and target " +
                   ToString(call.target->shape) + " do not broadcast");
  }
  if (Broadcast(call.grad_output->shape, *common) != common) {
    return Invalid("gradOutput " + ToString(call.grad_output->shape) + " does not broadcast to " +
                   ToString(*common));
  }
  if (call.grad_target->shape != call.target->shape) {
    return Invalid("gradTarget has shape " + ToString(call.grad_target->shape) +
                   ", expected target's, " + ToString(call.target->shape));
  }
  for (const Named& tensor : tensors) {
    if (std::count(std::begin(kPrivateFormats), std::end(kPrivateFormats),
                   tensor.argument->format) != 0) {
      return Invalid(std::string(tensor.name) + " has the private format " +
                     std::to_string(tensor.argument->format));
    }
  }
  return {NumElements(call.self->shape) == 0 ? Verdict::kNothingToDo : Verdict::kCompute, ""};
}

}  // namespace opserve::ascendc
