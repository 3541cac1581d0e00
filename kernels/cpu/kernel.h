// Gradient kernels on the CPU: what the host CANN's operators compute with.
//
// A kernel is planned once from the layouts of its tensors and run any number of times on
// addresses that fit them: the two halves of the aclnn flow. Each operator is one computation over
// blocks of contiguous values; dtype, broadcast, strides and summing are handled around it.
//
// Arithmetic (all operators): inputs are widened to float32 exactly, computed and accumulated in
// float32, scaled, and rounded once to the output dtype, to nearest with ties to even. Where every
// tensor is kDouble all of that happens in float64. NaN and infinities follow IEEE arithmetic;
// subnormals are not flushed. Equal inputs give equal bits in every run, whatever TaskRunner runs
// them: work is cut into tasks, and sums into partial sums, by the layouts alone.
//
// The caller guarantees what stage one checks (ranks, broadcastability, dtypes): kernels have no
// error path and know neither ACL nor gRPC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

// Everything declared here is exported by libopserve_kernels.so, nothing else is.
#pragma GCC visibility push(default)

namespace opserve::kernels {

inline constexpr int kMaxRank = 8;

enum class Dtype : uint8_t { kFloat, kFloat16, kBfloat16, kDouble };

// Bytes of one element.
constexpr int64_t ElementBytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat:
      return 4;
    case Dtype::kFloat16:
      return 2;
    case Dtype::kBfloat16:
      return 2;
    case Dtype::kDouble:
      return 8;
  }
  return 0;
}

// How a tensor's elements lie in memory. Strides are in elements, not negative, and may be 0 on
// inputs. Element (i0, i1, ...) is at address + (i0*strides[0] + i1*strides[1] + ...) elements,
// where the address given to Run already includes the view's offset.
struct Layout {
  Dtype dtype = Dtype::kFloat;
  int rank = 0;  // 0 to kMaxRank; entries from rank on are not read
  std::array<int64_t, kMaxRank> shape = {};
  std::array<int64_t, kMaxRank> strides = {};
};

// Runs the tasks that a kernel is cut into. Implementations choose the threads.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  // Calls task(context, i) once for every i in [0, num_tasks), in any order and on any threads,
  // and returns when all have returned. A runner that must stop leaves out the tasks that have not
  // begun; the output is then unspecified, in this call of Kernel::Run and until it returns.
  virtual void Run(int64_t num_tasks, void (*task)(void* context, int64_t index),
                   void* context) = 0;
  // Whether the result is not wanted any more. Thread-safe. A task that may take longer than
  // others, as the layouts do not allow to cut it, asks now and then and returns early.
  virtual bool MustStop() const { return false; }
};

// Runs every task on the calling thread, in order.
class SerialTaskRunner final : public TaskRunner {
 public:
  void Run(int64_t num_tasks, void (*task)(void* context, int64_t index), void* context) override {
    for (int64_t i = 0; i < num_tasks; ++i) task(context, i);
  }
};

// A planned computation. Immutable: Run may be called from several threads at once, each with a
// workspace and output of its own.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Bytes of scratch memory Run needs, 0 where none is (partial sums of long reductions need it).
  virtual size_t workspace_bytes() const = 0;

  // Elements that Run computes: those of the broadcast shape, which may be many more than memory
  // holds.
  virtual int64_t num_elements() const = 0;

  // `inputs`: one address per input, in the order of the Make function's layouts; elements are
  // aligned to their own size. The address of an input whose values do not matter (self of
  // KlDivBackward) is not read. `output`: must not overlap an input nor the workspace; only
  // elements its layout addresses are written. `workspace`: workspace_bytes() bytes, 64-byte
  // aligned, contents unspecified before and after; may be null if that is 0. Tasks of `runner`
  // take a few milliseconds at most, so that a runner can stop the kernel between them.
  virtual void Run(const void* const* inputs, void* output, void* workspace,
                   TaskRunner& runner) const = 0;
};

// In the following, B is the broadcast of the input shapes and 1/divisor the factor of the forward
// loss's reduction (1, N or B[0]). Any of FLOAT, FLOAT16, BF16 in any mixture, or all kDouble.

// out = sum over the axes along which `self` is broadcast of -target * grad_output / divisor, or
// with log_target of -exp(target) * grad_output / divisor. `out` has self's shape.
// Inputs: grad_output, self (shape only), target.
std::unique_ptr<Kernel> MakeKlDivBackward(const Layout& grad_output, const Layout& self,
                                          const Layout& target, const Layout& out, double divisor,
                                          bool log_target);

// grad_target = sum over the axes along which `target` is broadcast of
//   log_target:               (grad_output / divisor) * exp(target) * (target - self + 1)
//   plain, target != 0:       (grad_output / divisor) * (ln(target) - self + 1)
//   plain, target == 0 or -0: 0, whatever grad_output and self are
// Inputs: grad_output, self, target. `grad_target` has target's shape. No kDouble.
std::unique_ptr<Kernel> MakeKlDivTargetBackward(const Layout& grad_output, const Layout& self,
                                                const Layout& target, const Layout& grad_target,
                                                double divisor, bool log_target);

// grad_input = sign(self - target) * grad_output / divisor in the full shape B. The sign comes from
// comparisons: 0 where equal or where self or target is NaN. Inputs: grad_output, self, target.
// No kDouble.
std::unique_ptr<Kernel> MakeL1LossBackward(const Layout& grad_output, const Layout& self,
                                           const Layout& target, const Layout& grad_input,
                                           double divisor);

// out = 2 * (self - target) * grad_output / divisor in the full shape B. Inputs: grad_output, self,
// target. No kDouble.
std::unique_ptr<Kernel> MakeMseLossBackward(const Layout& grad_output, const Layout& self,
                                            const Layout& target, const Layout& out,
                                            double divisor);

// out = grad_output - exp(output) * sum of grad_output over axis `dim` (0 <= dim < max(rank, 1)).
// All three have the same shape; `out` may also be kDouble (computed in float32, then widened).
// Inputs: grad_output, output.
std::unique_ptr<Kernel> MakeLogSoftmaxBackward(const Layout& grad_output, const Layout& output,
                                               const Layout& out, int dim);

}  // namespace opserve::kernels

#pragma GCC visibility pop
