// The calls of the CPU kernels that are measured, with their arrays.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {

inline constexpr int64_t kLargeCount = int64_t{16} << 20;
// Where more than one thread is measured.
inline constexpr int kBenchmarkThreads = 2;

// Row-major without gaps.
Layout Contiguous(Dtype dtype, const std::vector<int64_t>& shape);
// The transposed view of a contiguous matrix.
Layout Transposed(Dtype dtype, int64_t rows, int64_t columns);
int64_t NumElements(const Layout& layout);

struct KernelCase {
  std::string name;  // operator/variant/dtype/layout/size
  std::vector<Layout> inputs;
  Layout out;
  std::unique_ptr<Kernel> kernel;
};

// Names are those of the catalogue. `layout_and_size` ends the name.
KernelCase KlDivCase(bool log_target, const std::string& layout_and_size, const Layout& grad_output,
                     const Layout& target, const Layout& out);
KernelCase KlDivTargetCase(bool log_target, const std::string& layout_and_size,
                           const Layout& grad_output, const Layout& self, const Layout& target);
KernelCase L1LossCase(const std::string& layout_and_size, const Layout& grad_output,
                      const Layout& self, const Layout& target);
KernelCase LogSoftmaxCase(const std::string& layout_and_size, const Layout& grad_output,
                          const Layout& output, const Layout& out, int dim);

// All operators on contiguous tensors of `count` elements, a multiple of 1024: a vector, but for
// LogSoftmax rows of 1024.
std::vector<KernelCase> ContiguousCases(Dtype dtype, int64_t count);

using Memory = std::unique_ptr<char, decltype(&std::free)>;

// Aligned as device memory is. Touched, so that no page is mapped while time is taken.
Memory AllocateTouched(int64_t bytes);

// Numbers in (0, 1).
Memory RandomTensor(const Layout& layout);

// Runs the kernel once per iteration on one thread or on kBenchmarkThreads of the host CANN's pool.
void RunKernelCase(benchmark::State& state, const KernelCase& kernel_case, int num_threads);

}  // namespace opserve::kernels
