// The object of an aclOpExecutor, and the two halves of every operator that are the same for all:
// the end of stage one and all of stage two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "kernels/cpu/kernel.h"
#include "ops/host_cann/nnopbase/tensor.h"

namespace opserve::host_cann {

// A tensor argument of a call, as stage two needs it. Copied from the descriptor, which may be
// destroyed before stage two.
struct Operand {
  const char* name;  // as in the operator's prototype; lives as long as the process
  void* data;        // the tensor's device address; may be changed before stage two
  int64_t byte_offset;
  int64_t byte_extent;    // from the view's first element to past its last; 0 if empty
  int64_t element_bytes;  // the alignment of every element
};

// `tensor` has one of the dtypes that kernels have; `name` lives as long as the process.
__attribute__((visibility("default"))) Operand MakeOperand(const char* name,
                                                           const aclTensor& tensor);

// The operand of an input that the kernel does not read: it may be any address.
__attribute__((visibility("default"))) Operand MakeUnreadOperand(const char* name,
                                                                 const aclTensor& tensor);

// The tensors of one parameter: one, or those of a list, or none where the pointer was null.
struct OperandGroup {
  std::vector<Operand> operands;
  bool is_list = false;
  std::optional<size_t> input;  // an output in place: the input whose operands it writes
};

// The decisions of stage one. The order of groups is the prototype's, which is also the kernel's.
struct ExecutorPlan {
  const char* function = nullptr;  // the operator's stage two, such as "aclnnAdd"; a literal
  std::vector<OperandGroup> inputs;
  std::vector<OperandGroup> outputs;
  std::shared_ptr<const kernels::Kernel> kernel = nullptr;  // null: stage two has nothing to do
  uint64_t work = 0;                                        // of the kernel, in elements
};

// Ends a stage one with success: reports the workspace bytes that the plan needs and hands out an
// executor. Neither pointer is null. Returns 0.
__attribute__((visibility("default"))) aclnnStatus CreateExecutor(ExecutorPlan plan,
                                                                  uint64_t* workspace_size,
                                                                  aclOpExecutor** executor);

// Stage two of `function`, the exported name. Queues the executor's kernel on `stream` with the
// addresses of this moment; memory is checked by the runtime when the kernel starts. Frees the
// executor in every case, unless it is repeatable; with a null workspace of a size above 0 also
// then. Thread-safe: of two calls with one executor that is not repeatable, one fails.
//   161001  null executor, null workspace with a size above 0, null address of a tensor
//   161002  workspace smaller than reported or not 64-byte aligned, misaligned tensor
//   361001  the runtime refused; its error text stays
//   561103  the executor is not alive
__attribute__((visibility("default"))) aclnnStatus RunStageTwo(const char* function,
                                                               void* workspace,
                                                               uint64_t workspace_size,
                                                               aclOpExecutor* executor,
                                                               aclrtStream stream);

}  // namespace opserve::host_cann
