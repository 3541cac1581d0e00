// Kernels that run others one after the other, on tensors of the call and on their own in the
// workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

// Where a step finds a tensor: at an address that Run is given, or in the workspace.
struct Place {
  enum class In : uint8_t { kInputs, kOutputs, kWorkspace };
  In in = In::kInputs;
  size_t address = 0;  // among those of the inputs or outputs
  int64_t byte_offset = 0;
};

class Sequence {
 public:
  explicit Sequence(const Call& call) : call_(call) {}

  // A tensor of the call.
  Place Input(size_t argument, size_t index = 0) const;
  Place Output(size_t argument, size_t index = 0) const;
  // Room in the workspace for a contiguous tensor.
  Place Scratch(const Layout& layout);

  // Adds a step: a kernel, which may be null, and a place for each tensor of its own call.
  void Add(std::unique_ptr<Kernel> kernel, std::vector<Place> inputs, std::vector<Place> outputs);

  // Null if there is no step.
  std::unique_ptr<Kernel> Finish();

  struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<Place> inputs;
    std::vector<Place> outputs;
  };

 private:
  const Call& call_;
  std::vector<Step> steps_;
  int64_t scratch_bytes_ = 0;
};

// A contiguous layout of that shape.
Layout Contiguous(const Layout& like, Dtype dtype);

// What sums of `dtype` are kept in between steps.
constexpr Dtype ScratchDtype(Dtype dtype) {
  return dtype == Dtype::kDouble ? Dtype::kDouble : Dtype::kFloat;
}

}  // namespace opserve::kernels
