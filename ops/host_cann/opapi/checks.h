// The checks of stage one, written once for all operators.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "aclnn/aclnn_base.h"
#include "ops/host_cann/nnopbase/tensor.h"

namespace opserve::host_cann {

// A tensor argument of a stage one.
struct Argument {
  const char* name;                                   // as in the prototype, a literal
  const aclTensor* handle;                            // as the caller gave it
  std::shared_ptr<const aclTensor> tensor = nullptr;  // what it stands for, once checked

  const aclTensor* operator->() const { return tensor.get(); }
};

// The checks of one call. A check that fails sets the status and this thread's error text; after
// that further checks do nothing, so the first failure is the one reported. Checks of a tensor's
// properties require that Tensors() succeeded: return if not ok() after it. Not thread-safe.
class StageOneChecks {
 public:
  // Begins the call of the exported function `operator_name` + "GetWorkspaceSize", both literals.
  StageOneChecks(const char* operator_name, const char* function);

  bool ok() const { return status_ == 0; }
  aclnnStatus status() const { return status_; }

  // Null pointers: 161001.
  void Results(const uint64_t* workspace_size, aclOpExecutor* const* executor);
  // Null pointers: 161001; tensors that are not alive: 161002. Sets Argument::tensor.
  void Tensors(std::initializer_list<Argument*> arguments);

  // All further checks fail with 161002.

  // A result of type `from` may be stored in `to`.
  void Castable(aclDataType from, const Argument& to);
  // The type is FLOAT, FLOAT16 or BF16.
  void TensorType(const Argument& argument);
  // The same, and one that this generation computes with.
  void ComputeType(const Argument& argument);
  void SameType(const Argument& argument, const Argument& as);
  // The common type of all arguments: FLOAT, FLOAT16 and BF16 promote to the same type if they are
  // equal, else to FLOAT. Other types are refused, as no operator here computes with them, and so
  // is a common type that this generation does not compute with.
  aclDataType Promote(absl::Span<const Argument* const> arguments);

  void RankAtMost8(absl::Span<const Argument* const> arguments);
  // No blocked storage format.
  void PlainFormat(absl::Span<const Argument* const> arguments);

  // The argument has exactly this shape; `what` says whose it is.
  void HasShape(const Argument& argument, const Shape& shape, absl::string_view what);
  // The common shape of the argument's and `shape`: sizes, aligned at the last axis, are equal or
  // one of them is 1. An unspecified shape after a failure.
  Shape Broadcast(const Argument& argument, const Shape& shape, absl::string_view what);
  // The argument broadcasts to `shape` without enlarging it.
  void BroadcastsTo(const Argument& argument, const Shape& shape, absl::string_view what);

  // This generation has the operator.
  void SupportedIf(bool supported);

  // lowest <= value <= highest.
  void InRange(const char* attribute, int64_t value, int64_t lowest, int64_t highest);

 private:
  // Refuses the call: "OPERATOR: argument NAME: TEXT".
  void Refuse(aclnnStatus status, absl::string_view name, absl::string_view text);

  const char* const operator_name_;
  aclnnStatus status_;
};

}  // namespace opserve::host_cann
