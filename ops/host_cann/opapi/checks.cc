#include "ops/host_cann/opapi/checks.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aclnn/opdev/op_errno.h"
#include "kernels/cpu/kernel.h"
#include "ops/host_cann/nnopbase/status.h"
#include "ops/host_cann/opapi/dtypes.h"
#include "ops/host_cann/runtime/generation.h"

namespace opserve::host_cann {
namespace {

std::string ShapeText(const Shape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

// The common shape, nothing if there is none.
std::optional<Shape> CommonShape(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape common = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    int64_t& extent = common[lead + axis];
    if (extent != shorter[axis] && extent != 1 && shorter[axis] != 1) return std::nullopt;
    if (extent == 1) extent = shorter[axis];
  }
  return common;
}

bool IsPlain(aclFormat format) {
  switch (format) {
    case ACL_FORMAT_NC1HWC0:
    case ACL_FORMAT_FRACTAL_Z:
    case ACL_FORMAT_NC1HWC0_C04:
    case ACL_FORMAT_FRACTAL_NZ:
    case ACL_FORMAT_NDC1HWC0:
    case ACL_FRACTAL_Z_3D:
    case ACL_FORMAT_FRACTAL_NZ_C0_16:
    case ACL_FORMAT_FRACTAL_NZ_C0_32:
    case ACL_FORMAT_FRACTAL_NZ_C0_2:
    case ACL_FORMAT_FRACTAL_NZ_C0_4:
    case ACL_FORMAT_FRACTAL_NZ_C0_8:
      return false;
    default:
      return true;
  }
}

}  // namespace

StageOneChecks::StageOneChecks(const char* operator_name, const char* function)
    : operator_name_(operator_name), status_(EnterCall(function)) {}

void StageOneChecks::Refuse(aclnnStatus status, absl::string_view name, absl::string_view text) {
  if (ok()) status_ = Fail(status, absl::StrCat(operator_name_, ": argument ", name, ": ", text));
}

void StageOneChecks::Results(const uint64_t* workspace_size, aclOpExecutor* const* executor) {
  if (workspace_size == nullptr)
    Refuse(ACLNN_ERR_PARAM_NULLPTR, "workspaceSize", "the pointer is null");
  if (executor == nullptr) Refuse(ACLNN_ERR_PARAM_NULLPTR, "executor", "the pointer is null");
}

void StageOneChecks::Tensors(std::initializer_list<Argument*> arguments) {
  for (const Argument* argument : arguments) {
    if (argument->handle == nullptr)
      Refuse(ACLNN_ERR_PARAM_NULLPTR, argument->name, "the pointer is null");
  }
  for (Argument* argument : arguments) {
    if (!ok()) return;
    argument->tensor = FindTensor(argument->handle);
    if (argument->tensor == nullptr) {
      Refuse(ACLNN_ERR_PARAM_INVALID, argument->name, "the tensor is not alive");
    }
  }
}

void StageOneChecks::Castable(aclDataType from, const Argument& to) {
  if (ok() && !CanCast(from, to->dtype)) {
    Refuse(ACLNN_ERR_PARAM_INVALID, to.name,
           absl::StrCat("a result of type ", DtypeName(from), " cannot be cast to ",
                        DtypeName(to->dtype)));
  }
}

void StageOneChecks::TensorType(const Argument& argument) {
  if (ok() && !IsTensorType(argument->dtype)) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("type ", DtypeName(argument->dtype), " is not supported"));
  }
}

void StageOneChecks::ComputeType(const Argument& argument) {
  TensorType(argument);
  if (ok() && argument->dtype == ACL_BF16 && !CurrentSoc().generation->computes_bf16) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("type BF16 is not supported on ", CurrentSoc().name));
  }
}

void StageOneChecks::SameType(const Argument& argument, const Argument& as) {
  if (ok() && argument->dtype != as->dtype) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("type ", DtypeName(argument->dtype), " is not that of ", as.name, ", ",
                        DtypeName(as->dtype)));
  }
}

aclDataType StageOneChecks::Promote(absl::Span<const Argument* const> arguments) {
  aclDataType common = ACL_DT_UNDEFINED;
  for (const Argument* argument : arguments) {
    const aclDataType dtype = (*argument)->dtype;
    TensorType(*argument);
    common = common == ACL_DT_UNDEFINED || common == dtype ? dtype : ACL_FLOAT;
  }
  // Then all arguments have it.
  if (common == ACL_BF16) ComputeType(*arguments.front());
  return common;
}

void StageOneChecks::SupportedIf(bool supported) {
  if (ok() && !supported) {
    status_ = Fail(ACLNN_ERR_PARAM_INVALID,
                   absl::StrCat(operator_name_, " is not supported on ", CurrentSoc().name));
  }
}

void StageOneChecks::RankAtMost8(absl::Span<const Argument* const> arguments) {
  for (const Argument* argument : arguments) {
    const size_t rank = (*argument)->shape.size();
    if (ok() && rank > kernels::kMaxRank) {
      Refuse(ACLNN_ERR_PARAM_INVALID, argument->name,
             absl::StrCat("rank ", rank, " is more than ", kernels::kMaxRank));
    }
  }
}

void StageOneChecks::PlainFormat(absl::Span<const Argument* const> arguments) {
  for (const Argument* argument : arguments) {
    if (ok() && !IsPlain((*argument)->format)) {
      Refuse(ACLNN_ERR_PARAM_INVALID, argument->name,
             absl::StrCat("storage format ", static_cast<int>((*argument)->format),
                          " is not supported"));
    }
  }
}

void StageOneChecks::HasShape(const Argument& argument, const Shape& shape,
                              absl::string_view what) {
  if (ok() && argument->shape != shape) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("shape ", ShapeText(argument->shape), " is not that of ", what, ", ",
                        ShapeText(shape)));
  }
}

Shape StageOneChecks::Broadcast(const Argument& argument, const Shape& shape,
                                absl::string_view what) {
  if (!ok()) return {};
  const std::optional<Shape> common = CommonShape(argument->shape, shape);
  if (!common) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("shape ", ShapeText(argument->shape), " does not broadcast with ", what,
                        " ", ShapeText(shape)));
    return {};
  }
  if (NumElements(*common) < 0) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("shape ", ShapeText(argument->shape), " broadcast with ", what, " ",
                        ShapeText(shape), " has too many elements"));
  }
  return *common;
}

void StageOneChecks::BroadcastsTo(const Argument& argument, const Shape& shape,
                                  absl::string_view what) {
  if (ok() && CommonShape(argument->shape, shape) != shape) {
    Refuse(ACLNN_ERR_PARAM_INVALID, argument.name,
           absl::StrCat("shape ", ShapeText(argument->shape), " does not broadcast to ", what, " ",
                        ShapeText(shape)));
  }
}

void StageOneChecks::InRange(const char* attribute, int64_t value, int64_t lowest,
                             int64_t highest) {
  if (ok() && (value < lowest || value > highest)) {
    Refuse(ACLNN_ERR_PARAM_INVALID, attribute,
           absl::StrCat(value, " is not within ", lowest, " to ", highest));
  }
}

}  // namespace opserve::host_cann
