// The kernels by the vendor's functions. Every source file has a table of what it makes.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

struct KernelEntry {
  std::string_view function;
  // Requires a call with elements in some output.
  std::unique_ptr<Kernel> (*make)(const Call& call);
};

std::span<const KernelEntry> ActivationKernels();
std::span<const KernelEntry> ArangeKernels();
std::span<const KernelEntry> ArithmeticKernels();
std::span<const KernelEntry> BatchNormKernels();
std::span<const KernelEntry> ComparisonKernels();
std::span<const KernelEntry> ConvolutionKernels();
std::span<const KernelEntry> CrossEntropyKernels();
std::span<const KernelEntry> DropoutKernels();
std::span<const KernelEntry> ForeachKernels();
std::span<const KernelEntry> GatedKernels();
std::span<const KernelEntry> GroupNormKernels();
std::span<const KernelEntry> IndexKernels();
std::span<const KernelEntry> KlDivBackwardKernels();
std::span<const KernelEntry> KlDivTargetBackwardKernels();
std::span<const KernelEntry> L1LossBackwardKernels();
std::span<const KernelEntry> LogSoftmaxBackwardKernels();
std::span<const KernelEntry> LossKernels();
std::span<const KernelEntry> MatrixKernels();
std::span<const KernelEntry> MaxPoolingKernels();
std::span<const KernelEntry> MemoryKernels();
std::span<const KernelEntry> MseLossBackwardKernels();
std::span<const KernelEntry> NllLossKernels();
std::span<const KernelEntry> NormalizationKernels();
std::span<const KernelEntry> OptimizerKernels();
std::span<const KernelEntry> PlacementKernels();
std::span<const KernelEntry> PoolingKernels();
std::span<const KernelEntry> ReductionKernels();
std::span<const KernelEntry> SoftmaxKernels();
std::span<const KernelEntry> SortKernels();
std::span<const KernelEntry> UpsamplingKernels();

}  // namespace opserve::kernels
