#include "kernels/cpu/registry.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/call.h"

namespace opserve::kernels {
namespace {

using Table = std::span<const KernelEntry> (*)();

// A line for every source file with kernels.
// clang-format off
constexpr Table kTables[] = {
    ActivationKernels,
    ArangeKernels,
    ArithmeticKernels,
    BatchNormKernels,
    ComparisonKernels,
    ConvolutionKernels,
    CrossEntropyKernels,
    DropoutKernels,
    ForeachKernels,
    GatedKernels,
    GroupNormKernels,
    IndexKernels,
    KlDivBackwardKernels,
    KlDivTargetBackwardKernels,
    L1LossBackwardKernels,
    LogSoftmaxBackwardKernels,
    LossKernels,
    MatrixKernels,
    MaxPoolingKernels,
    MemoryKernels,
    MseLossBackwardKernels,
    NllLossKernels,
    NormalizationKernels,
    OptimizerKernels,
    PlacementKernels,
    PoolingKernels,
    ReductionKernels,
    SoftmaxKernels,
    SortKernels,
    UpsamplingKernels,
};
// clang-format on

std::vector<KernelEntry> JoinTables() {
  std::vector<KernelEntry> joined;
  for (const Table table : kTables) {
    const std::span<const KernelEntry> entries = table();
    joined.insert(joined.end(), entries.begin(), entries.end());
  }
  std::sort(joined.begin(), joined.end(),
            [](const KernelEntry& a, const KernelEntry& b) { return a.function < b.function; });
  return joined;
}

const KernelEntry* Find(std::string_view function) {
  static const std::vector<KernelEntry>& entries = *new std::vector<KernelEntry>(JoinTables());
  const auto found = std::lower_bound(
      entries.begin(), entries.end(), function,
      [](const KernelEntry& entry, std::string_view name) { return entry.function < name; });
  return found != entries.end() && found->function == function ? &*found : nullptr;
}

}  // namespace

bool HasKernel(std::string_view function) { return Find(function) != nullptr; }

std::unique_ptr<Kernel> MakeKernel(std::string_view function, const Call& call) {
  const KernelEntry* entry = Find(function);
  bool is_empty = true;
  for (const Tensors& tensors : call.outputs) {
    for (const Layout& layout : tensors) is_empty &= NumElements(layout) == 0;
  }
  return entry == nullptr || is_empty ? nullptr : entry->make(call);
}

}  // namespace opserve::kernels
