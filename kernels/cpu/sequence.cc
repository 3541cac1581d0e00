#include "kernels/cpu/sequence.h"

#include <algorithm>
#include <utility>

#include "kernels/cpu/map.h"

namespace opserve::kernels {
namespace {

constexpr int64_t kAlignment = 64;

constexpr int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

class SequenceKernel final : public Kernel {
 public:
  // `first_addresses`: of each argument of the call, among the addresses of all.
  SequenceKernel(std::vector<Sequence::Step> steps, int64_t scratch_bytes,
                 std::vector<size_t> first_addresses)
      : steps_(std::move(steps)),
        scratch_bytes_(scratch_bytes),
        first_addresses_(std::move(first_addresses)) {}

  size_t workspace_bytes() const override {
    size_t most = 0;
    for (const Sequence::Step& step : steps_) most = std::max(most, step.kernel->workspace_bytes());
    return static_cast<size_t>(scratch_bytes_) + most;
  }

  int64_t num_elements() const override {
    int64_t count = 0;
    for (const Sequence::Step& step : steps_) count += step.kernel->num_elements();
    return count;
  }

  bool ReadsInput(size_t argument) const override {
    for (const Sequence::Step& step : steps_) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const Place& place = step.inputs[i];
        if (place.in == Place::In::kInputs && step.kernel->ReadsInput(i) &&
            place.address >= first_addresses_[argument] &&
            place.address < first_addresses_[argument + 1]) {
          return true;
        }
      }
    }
    return false;
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           TaskRunner& runner) const override {
    char* scratch = static_cast<char*>(workspace);
    std::vector<const void*> step_inputs;
    std::vector<void*> step_outputs;
    for (const Sequence::Step& step : steps_) {
      if (runner.MustStop()) return;
      step_inputs.clear();
      step_outputs.clear();
      for (const Place& place : step.inputs) {
        const void* base = place.in == Place::In::kInputs    ? inputs[place.address]
                           : place.in == Place::In::kOutputs ? outputs[place.address]
                                                             : scratch;
        step_inputs.push_back(static_cast<const char*>(base) + place.byte_offset);
      }
      for (const Place& place : step.outputs) {
        void* base = place.in == Place::In::kOutputs ? outputs[place.address] : scratch;
        step_outputs.push_back(static_cast<char*>(base) + place.byte_offset);
      }
      step.kernel->Run(step_inputs.data(), step_outputs.data(),
                       step.kernel->workspace_bytes() == 0 ? nullptr : scratch + scratch_bytes_,
                       runner);
    }
  }

 private:
  const std::vector<Sequence::Step> steps_;
  const int64_t scratch_bytes_;
  const std::vector<size_t> first_addresses_;
};

}  // namespace

Place Sequence::Input(size_t argument, size_t index) const {
  return {Place::In::kInputs, FirstAddress(call_.inputs, argument) + index, 0};
}

Place Sequence::Output(size_t argument, size_t index) const {
  return {Place::In::kOutputs, FirstAddress(call_.outputs, argument) + index, 0};
}

Place Sequence::Scratch(const Layout& layout) {
  const Place place{Place::In::kWorkspace, 0, scratch_bytes_};
  scratch_bytes_ += Aligned(NumElements(layout) * ElementBytes(layout.dtype));
  return place;
}

void Sequence::Add(std::unique_ptr<Kernel> kernel, std::vector<Place> inputs,
                   std::vector<Place> outputs) {
  if (kernel == nullptr) return;
  steps_.push_back({std::move(kernel), std::move(inputs), std::move(outputs)});
}

std::unique_ptr<Kernel> Sequence::Finish() {
  if (steps_.empty()) return nullptr;
  std::vector<size_t> first_addresses;
  for (size_t i = 0; i <= call_.inputs.size(); ++i) {
    first_addresses.push_back(FirstAddress(call_.inputs, i));
  }
  return std::make_unique<SequenceKernel>(std::move(steps_), scratch_bytes_,
                                          std::move(first_addresses));
}

Layout Contiguous(const Layout& like, Dtype dtype) {
  Layout layout = like;
  layout.dtype = dtype;
  int64_t stride = 1;
  for (int d = like.rank - 1; d >= 0; --d) {
    layout.strides[d] = stride;
    stride *= like.shape[d];
  }
  return layout;
}

}  // namespace opserve::kernels
