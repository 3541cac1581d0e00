// Kernels on the CPU: what the host CANN's operators compute with.
//
// A kernel is planned once from the layouts and attributes of a call and run any number of times on
// addresses that fit them: the two halves of the aclnn flow. An operator is a formula in a pattern
// (elementwise, reduction, rows, matrices, indices, memory): dtypes, broadcast, strides, tasks and
// summing are the pattern's.
//
// Arithmetic: floating inputs are widened to float32 exactly, computed and accumulated in float32,
// and rounded once to the output's dtype, to nearest with ties to even. Where a floating input is
// kDouble all of that happens in float64. Integers are computed in int64 and wrap to the output's
// dtype; a kBool is true if its byte is not 0, and is written as 0 or 1. NaN and infinities follow
// IEEE arithmetic; subnormals are not flushed. Equal inputs give equal bits in every run, whatever
// TaskRunner runs them: work is cut into tasks, and sums into partial sums, by the layouts alone.
//
// The caller guarantees what stage one checks (ranks, shapes, dtypes, ranges of attributes):
// kernels have no error path and know neither ACL nor gRPC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// Everything declared here is exported by libopserve_kernels.so, nothing else is.
#pragma GCC visibility push(default)

namespace opserve::kernels {

inline constexpr int kMaxRank = 8;

enum class Dtype : uint8_t {
  kFloat,
  kFloat16,
  kBfloat16,
  kDouble,
  kInt8,
  kUint8,
  kInt16,
  kInt32,
  kInt64,
  kBool
};

// Bytes of one element.
constexpr int64_t ElementBytes(Dtype dtype) {
  switch (dtype) {
    case Dtype::kInt8:
    case Dtype::kUint8:
    case Dtype::kBool:
      return 1;
    case Dtype::kFloat16:
    case Dtype::kBfloat16:
    case Dtype::kInt16:
      return 2;
    case Dtype::kFloat:
    case Dtype::kInt32:
      return 4;
    case Dtype::kDouble:
    case Dtype::kInt64:
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

// A number with a dtype of its own, as aclScalar.
struct Scalar {
  Dtype dtype = Dtype::kFloat;
  double real = 0;      // its value, rounded to nearest where an int64 has no double
  int64_t integer = 0;  // its value; truncated where the dtype is floating
};

// The value of an attribute. std::monostate: the call left an optional one out (a null pointer).
using Attribute = std::variant<std::monostate, int64_t, bool, double, std::string, Dtype, Scalar,
                               std::vector<int64_t>, std::vector<bool>, std::vector<double>>;

// The tensors of one argument: one, or those of a list in its order, or none where the call left
// out an optional argument or masked an output.
using Tensors = std::vector<Layout>;

// A call of an aclnn function: what its stage one was given, in the order of its declaration. An
// argument that is written in place is among the inputs and among the outputs.
struct Call {
  std::vector<Tensors> inputs;
  std::vector<Tensors> outputs;
  std::vector<Attribute> attributes;
};

// A planned computation. Immutable: Run may be called from several threads at once, each with a
// workspace and outputs of its own.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Bytes of scratch memory Run needs, 0 where none is (partial sums of long reductions need it).
  virtual size_t workspace_bytes() const = 0;

  // Elements that Run computes: those of the broadcast shape, which may be many more than memory
  // holds.
  virtual int64_t num_elements() const = 0;

  // Whether Run reads the values of the call's input `argument`. The addresses of one it does not
  // read (self of KlDivBackward) may be anything.
  virtual bool ReadsInput(size_t argument) const { return argument != SIZE_MAX; }

  // `inputs`, `outputs`: the addresses of all tensors of all arguments, one after the other (an
  // absent argument has none); elements are aligned to their own size. An output that is written in
  // place has the address of its input; otherwise outputs overlap neither inputs nor each other nor
  // the workspace. Only elements that an output's layout addresses are written. `workspace`:
  // workspace_bytes() bytes, 64-byte aligned, contents unspecified before and after; may be null if
  // that is 0. Tasks of `runner` take a few milliseconds at most, so that a runner can stop the
  // kernel between them.
  virtual void Run(const void* const* inputs, void* const* outputs, void* workspace,
                   TaskRunner& runner) const = 0;
};

// Whether there is a kernel for the vendor's function ("aclnnAdd").
bool HasKernel(std::string_view function);

// The kernel of a call. Null: the call has nothing to compute, as all its outputs are empty.
// Requires HasKernel(function) and a call that its stage one accepts; of an empty call that stage
// one accepts without a look at its attributes, the caller asks for no kernel.
std::unique_ptr<Kernel> MakeKernel(std::string_view function, const Call& call);

}  // namespace opserve::kernels

#pragma GCC visibility pop
