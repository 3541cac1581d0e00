#include "ops/host_cann/opapi/stage_one.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "acl/acl_base.h"
#include "aclnn/opdev/op_errno.h"
#include "ops/catalog/attribute_values.h"
#include "ops/catalog/catalog.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"
#include "ops/host_cann/nnopbase/attributes.h"
#include "ops/host_cann/nnopbase/executor.h"
#include "ops/host_cann/nnopbase/status.h"
#include "ops/host_cann/nnopbase/tensor.h"
#include "ops/host_cann/opapi/kernel_call.h"
#include "ops/host_cann/runtime/generation.h"

namespace opserve::host_cann {
namespace {

using catalog::ArgumentDescriptor;
using catalog::ArgumentKind;
using catalog::AttributeDescriptor;
using catalog::AttributeType;
using catalog::AttributeValue;
using catalog::InputDescriptor;
using catalog::OperatorDescriptor;
using catalog::OutputDescriptor;
using catalog::Spec;

// In the order of the promotion of results: a later kind holds the values of the earlier ones.
enum class Kind { kNone, kBool, kInteger, kFloating, kComplex };

struct DtypeInfo {
  Kind kind = Kind::kNone;
  const char* name = nullptr;
};

DtypeInfo Describe(aclDataType dtype) {
  switch (dtype) {
    case ACL_BOOL:
      return {Kind::kBool, "BOOL"};
    case ACL_INT4:
      return {Kind::kInteger, "INT4"};
    case ACL_INT8:
      return {Kind::kInteger, "INT8"};
    case ACL_INT16:
      return {Kind::kInteger, "INT16"};
    case ACL_INT32:
      return {Kind::kInteger, "INT32"};
    case ACL_INT64:
      return {Kind::kInteger, "INT64"};
    case ACL_UINT1:
      return {Kind::kInteger, "UINT1"};
    case ACL_UINT8:
      return {Kind::kInteger, "UINT8"};
    case ACL_UINT16:
      return {Kind::kInteger, "UINT16"};
    case ACL_UINT32:
      return {Kind::kInteger, "UINT32"};
    case ACL_UINT64:
      return {Kind::kInteger, "UINT64"};
    case ACL_FLOAT:
      return {Kind::kFloating, "FLOAT"};
    case ACL_FLOAT16:
      return {Kind::kFloating, "FLOAT16"};
    case ACL_BF16:
      return {Kind::kFloating, "BF16"};
    case ACL_DOUBLE:
      return {Kind::kFloating, "DOUBLE"};
    case ACL_COMPLEX32:
      return {Kind::kComplex, "COMPLEX32"};
    case ACL_COMPLEX64:
      return {Kind::kComplex, "COMPLEX64"};
    case ACL_COMPLEX128:
      return {Kind::kComplex, "COMPLEX128"};
    // Types that no description lists. They are refused by name where an input has them.
    default:
      return {};
  }
}

// "FLOAT16"; "dtype 77" for types that no operator here meets as anything but an error.
std::string DtypeName(aclDataType dtype) {
  const char* name = Describe(dtype).name;
  return name != nullptr ? name : absl::StrCat("dtype ", static_cast<int>(dtype));
}

// Whether a result of type `from` may be stored as type `to`: towards more general kinds in the
// order boolean, integer, floating, complex, and within a kind.
bool CanCast(aclDataType from, aclDataType to) {
  const Kind kind = Describe(from).kind;
  // Neither side may be a type that no operator here knows: kNone is below all others.
  return kind != Kind::kNone && kind <= Describe(to).kind;
}

// The vendor's blocked layouts. Strides do not describe them, so operators take them only if their
// description says so.
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

bool IsPointer(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kInt64:
    case ArgumentKind::kUint64:
    case ArgumentKind::kInt32:
    case ArgumentKind::kInt8:
    case ArgumentKind::kBool:
    case ArgumentKind::kDouble:
    case ArgumentKind::kFloat:
    case ArgumentKind::kDtype:
      return false;
    default:
      return true;
  }
}

bool Has(const std::vector<aclDataType>& dtypes, aclDataType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

// A list counts as empty with its first empty tensor.
bool AnyEmpty(const std::vector<TensorGroup>& groups) {
  for (const TensorGroup& group : groups) {
    for (const auto& tensor : group) {
      if (tensor->empty()) return true;
    }
  }
  return false;
}

// One call. Each step sets the status and this thread's error text where it refuses, and returns
// whether the call goes on.
class StageOne {
 public:
  StageOne(const char* function, const char* name)
      // Never null: the exported functions are made from the same descriptions.
      : function_(function), op_(*catalog::FindFunction(function)), status_(EnterCall(name)) {}

  aclnnStatus Run(absl::Span<const StageOneArgument> arguments, uint64_t* workspace_size,
                  aclOpExecutor** executor) {
    // EnterCall first, then the results, then all other pointers: the vendor checks in this order,
    // and programs see the first code.
    if (status_ != ACLNN_SUCCESS || !CheckResults(workspace_size, executor)) return status_;
    inputs_.resize(op_.inputs.size());
    outputs_.resize(op_.outputs.size());
    attributes_.resize(op_.attributes.size());
    // Outputs of a mask are wanted one by one; until it is read none is.
    wanted_.assign(op_.outputs.size(), false);
    if (!CheckPointers(arguments) || !ReadAll(arguments)) return status_;
    // CANN looks no further at some empty calls: they succeed whatever the rest looks like.
    bool computes = !(op_.empty_first && AnyEmpty(inputs_));
    if (computes && !Judge()) return status_;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      // Tensors that were given for outputs that are not wanted are neither checked nor written.
      if (!wanted_[i]) outputs_[i].clear();
    }
    // Decided after the checks, unlike empty_first: an empty input of this kind spares the work,
    // not the checks.
    computes = computes && !(op_.idle_if_empty && inputs_[*op_.idle_if_empty].front()->empty());
    return CreateExecutor(MakePlan(function_, op_, inputs_, outputs_, attributes_,
                                   computes ? std::optional<int64_t>(work_) : std::nullopt),
                          workspace_size, executor);
  }

 private:
  bool Refuse(aclnnStatus status, absl::string_view name, absl::string_view text) {
    const std::string argument = name.empty() ? "" : absl::StrCat("argument ", name, ": ");
    status_ = Fail(status, absl::StrCat(op_.name, ": ", argument, text));
    return false;
  }
  bool Invalid(absl::string_view name, absl::string_view text) {
    return Refuse(ACLNN_ERR_PARAM_INVALID, name, text);
  }

  // 161001 for a null inside a list, as for a null argument.
  bool NullElement(const ArgumentDescriptor& argument) {
    return Refuse(ACLNN_ERR_PARAM_NULLPTR, argument.vendor, "an element of the list is null");
  }

  bool RefuseAs(const catalog::Problem& problem) {
    return Refuse(problem.is_missing ? ACLNN_ERR_PARAM_NULLPTR : ACLNN_ERR_PARAM_INVALID,
                  problem.argument, problem.text);
  }

  bool CheckResults(const uint64_t* workspace_size, aclOpExecutor* const* executor) {
    if (workspace_size == nullptr) {
      return Refuse(ACLNN_ERR_PARAM_NULLPTR, "workspaceSize", "the pointer is null");
    }
    if (executor != nullptr) return true;
    return Refuse(ACLNN_ERR_PARAM_NULLPTR, "executor", "the pointer is null");
  }

  bool MayBeNull(const ArgumentDescriptor& argument) const {
    // An output in place is also an input, and the rule of inputs counts.
    if (argument.output && !argument.input) {
      // The mask decides whether a null is an error, and it is read later.
      return op_.outputs[*argument.output].is_masked();
    }
    if (argument.input) return op_.inputs[*argument.input].is_optional;
    return argument.attribute && op_.attributes[*argument.attribute].is_optional;
  }

  bool CheckPointers(absl::Span<const StageOneArgument> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ArgumentDescriptor& argument = op_.arguments[i];
      if (!IsPointer(argument.kind) || arguments[i].pointer != nullptr || MayBeNull(argument))
        continue;
      return Refuse(ACLNN_ERR_PARAM_NULLPTR, argument.vendor, "the pointer is null");
    }
    return true;
  }

  bool ReadAll(absl::Span<const StageOneArgument> arguments) {
    std::vector<bool> mask;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ArgumentDescriptor& argument = op_.arguments[i];
      if (argument.attribute) {
        if (!ReadAttribute(argument, arguments[i])) return false;
      } else if (argument.is_mask()) {
        if (!ReadBoolArray(static_cast<const aclBoolArray*>(arguments[i].pointer), &mask)) {
          return Invalid(argument.vendor, "the array is not alive");
        }
      } else if (arguments[i].pointer != nullptr && !ReadTensors(argument, arguments[i].pointer)) {
        return false;
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const OutputDescriptor& output = op_.outputs[i];
      // Always there: an input that is written in place, and a list, which may have no tensors.
      const bool is_given = output.input || !outputs_[i].empty() || output.is_list;
      // A mask shorter than the outputs leaves the rest unwanted.
      wanted_[i] = output.mask ? *output.mask < mask.size() && mask[*output.mask] : is_given;
      if (wanted_[i] && !is_given) {
        return Refuse(ACLNN_ERR_PARAM_NULLPTR, output.vendor,
                      "the pointer is null, but it is wanted");
      }
    }
    return true;
  }

  bool ReadTensors(const ArgumentDescriptor& argument, const void* pointer) {
    TensorGroup group;
    if (argument.kind == ArgumentKind::kTensorList) {
      const auto* const list = static_cast<const aclTensorList*>(pointer);
      if (HasNullElement(list)) return NullElement(argument);
      if (!ReadTensorList(list, &group)) {
        return Invalid(argument.vendor, "the list or one of its tensors is not alive");
      }
    } else {
      group.push_back(FindTensor(static_cast<const aclTensor*>(pointer)));
      if (group.back() == nullptr) return Invalid(argument.vendor, "the tensor is not alive");
    }
    if (argument.input) {
      inputs_[*argument.input] = std::move(group);
    } else {
      outputs_[*argument.output] = std::move(group);
    }
    return true;
  }

  bool ReadAttribute(const ArgumentDescriptor& argument, const StageOneArgument& given) {
    AttributeValue& value = attributes_[*argument.attribute];
    const void* const pointer = given.pointer;
    // Null was allowed by CheckPointers: the attribute keeps its empty value.
    if (IsPointer(argument.kind) && pointer == nullptr) return true;
    bool is_alive = true;
    switch (argument.kind) {
      case ArgumentKind::kBool:
        value = given.integer != 0;
        break;
      case ArgumentKind::kDouble:
      case ArgumentKind::kFloat:
        value = given.real;
        break;
      case ArgumentKind::kDtype:
        value = static_cast<aclDataType>(given.integer);
        break;
      case ArgumentKind::kText:
        value = std::string(static_cast<const char*>(pointer));
        break;
      case ArgumentKind::kScalar:
        is_alive =
            ReadScalar(static_cast<const aclScalar*>(pointer), &value.emplace<catalog::Scalar>());
        break;
      case ArgumentKind::kScalarList:
        // Before the read, which cannot tell a null from a handle that is not alive.
        if (HasNullElement(static_cast<const aclScalarList*>(pointer))) {
          return NullElement(argument);
        }
        is_alive = ReadScalarList(static_cast<const aclScalarList*>(pointer),
                                  &value.emplace<std::vector<double>>());
        break;
      case ArgumentKind::kIntArray:
        is_alive = ReadIntArray(static_cast<const aclIntArray*>(pointer),
                                &value.emplace<std::vector<int64_t>>());
        break;
      case ArgumentKind::kBoolArray:
        is_alive = ReadBoolArray(static_cast<const aclBoolArray*>(pointer),
                                 &value.emplace<std::vector<bool>>());
        break;
      case ArgumentKind::kFloatArray:
        is_alive = ReadFloatArray(static_cast<const aclFloatArray*>(pointer),
                                  &value.emplace<std::vector<double>>());
        break;
      // All kinds of integers, widened by StageOneArgument.
      default:
        value = given.integer;
        break;
    }
    return is_alive ||
           Invalid(argument.vendor, "the handle is not alive or of a type that is none");
  }

  bool CheckAttributes() {
    for (size_t i = 0; i < attributes_.size(); ++i) {
      const AttributeDescriptor& attribute = op_.attributes[i];
      const std::string problem = catalog::ProblemOf(attribute, attributes_[i]);
      if (!problem.empty()) return Invalid(attribute.vendor, problem);
    }
    return true;
  }

  bool CheckGeneration() {
    const Generation& generation = *CurrentSoc().generation;
    // The operator of the custom package, which only the newer products have.
    if (op_.is_custom && !generation.has_kl_div_target_backward) {
      return Invalid("", absl::StrCat("is not supported on ", CurrentSoc().name));
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      for (const auto& tensor : inputs_[i]) {
        // BF16 may be refused later by the result instead, where it promotes with other types.
        const bool is_bf16 = tensor->dtype == ACL_BF16 && !op_.bf16_promotes;
        if ((is_bf16 && !generation.computes_bf16) ||
            (tensor->dtype == ACL_DOUBLE && !generation.computes_double)) {
          return RefuseDtype(op_.inputs[i].vendor, tensor->dtype);
        }
      }
    }
    return true;
  }

  bool RefuseDtype(absl::string_view name, aclDataType dtype) {
    return Invalid(
        name, absl::StrCat("type ", DtypeName(dtype), " is not supported on ", CurrentSoc().name));
  }

  bool CheckTensors() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const InputDescriptor& input = op_.inputs[i];
      for (const auto& tensor : inputs_[i]) {
        if (!Has(input.dtypes, tensor->dtype)) {
          return Invalid(input.vendor,
                         absl::StrCat("type ", DtypeName(tensor->dtype), " is not supported"));
        }
        if (!CheckForm(input.vendor, *tensor)) return false;
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      for (const auto& tensor : outputs_[i]) {
        if (wanted_[i] && !CheckForm(op_.outputs[i].vendor, *tensor)) return false;
      }
    }
    return true;
  }

  bool CheckForm(absl::string_view name, const aclTensor& tensor) {
    if (tensor.shape.size() > kernels::kMaxRank) {
      return Invalid(
          name, absl::StrCat("rank ", tensor.shape.size(), " is more than ", kernels::kMaxRank));
    }
    // Operators that move memory as it is take any layout.
    if (!op_.plain_format || IsPlain(tensor.format)) return true;
    return Invalid(name, absl::StrCat("storage format ", static_cast<int>(tensor.format),
                                      " is not supported"));
  }

  // The common checks first, then the rules of the description, then the results against the
  // outputs.
  bool Judge() {
    if (!CheckTensors() || !CheckGeneration() || !CheckAttributes()) return false;
    std::vector<Spec> specs;
    std::vector<uint32_t> ends;
    // Ends of the groups in `specs`: an optional input has none, a list any number.
    for (const TensorGroup& group : inputs_) {
      for (const auto& tensor : group) specs.push_back({tensor->dtype, tensor->shape});
      ends.push_back(static_cast<uint32_t>(specs.size()));
    }
    const catalog::CallSpec call{specs, ends, attributes_};
    catalog::Judge judge(op_, call, catalog::Names::kVendor);
    // std::vector<bool> has no span.
    const std::unique_ptr<bool[]> wanted(new bool[wanted_.size()]);
    std::copy(wanted_.begin(), wanted_.end(), wanted.get());
    // The ABI does not ask for result types: outputs carry theirs, which CheckOutput compares.
    const std::vector<std::optional<aclDataType>> asked(op_.outputs.size());
    catalog::Results results;
    if (!judge.Check() ||
        !judge.Infer(absl::MakeConstSpan(wanted.get(), wanted_.size()), asked, &results)) {
      return RefuseAs(judge.problem());
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const uint32_t begin = i == 0 ? 0 : results.ends[i - 1];
      const auto expected =
          absl::MakeConstSpan(results.tensors).subspan(begin, results.ends[i] - begin);
      // An output in place was checked as the input that it is.
      if (!wanted_[i] || op_.outputs[i].input) continue;
      if (!CheckOutput(i, expected)) return false;
      for (size_t k = 0; k < outputs_[i].size(); ++k) {
        // The rules and the work see the type that is written, not the promoted one.
        results.tensors[begin + k].dtype = outputs_[i][k]->dtype;
      }
    }
    if (!judge.CheckResults(results)) return RefuseAs(judge.problem());
    work_ = judge.CountWork(results);
    return true;
  }

  bool CheckOutput(size_t index, absl::Span<const Spec> expected) {
    const OutputDescriptor& output = op_.outputs[index];
    const TensorGroup& given = outputs_[index];
    if (given.size() != expected.size()) {
      return Invalid(output.vendor, absl::StrCat("has ", given.size(), " tensors; there must be ",
                                                 expected.size()));
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const aclDataType dtype = given[i]->dtype;
      // The promoted type would be BF16, which the chip does not compute: the input is at fault.
      if (expected[i].dtype == ACL_BF16 && op_.bf16_promotes &&
          !CurrentSoc().generation->computes_bf16) {
        return RefuseDtype(op_.inputs.front().vendor, ACL_BF16);
      }
      // Without a list of its own an output has exactly the inferred type.
      if (output.dtypes.empty() ? dtype != expected[i].dtype : !Has(output.dtypes, dtype)) {
        return Invalid(output.vendor,
                       absl::StrCat("type ", DtypeName(dtype), "; it must be ",
                                    output.dtypes.empty() ? DtypeName(expected[i].dtype)
                                                          : catalog::DtypeList(output.dtypes)));
      }
      if (!CanCast(expected[i].dtype, dtype)) {
        return Invalid(output.vendor,
                       absl::StrCat("a result of type ", DtypeName(expected[i].dtype),
                                    " cannot be cast to ", DtypeName(dtype)));
      }
      if (given[i]->shape != expected[i].shape) {
        return Invalid(output.vendor,
                       absl::StrCat("shape ", catalog::ShapeText(given[i]->shape), "; it must be ",
                                    catalog::ShapeText(expected[i].shape)));
      }
    }
    return true;
  }

  const char* const function_;
  const OperatorDescriptor& op_;
  aclnnStatus status_;
  std::vector<TensorGroup> inputs_;   // by input
  std::vector<TensorGroup> outputs_;  // by output; none where it is written in place
  std::vector<AttributeValue> attributes_;
  std::vector<bool> wanted_;  // by output
  int64_t work_ = 0;          // of Judge
};

}  // namespace

aclnnStatus RunStageOne(const char* function, const char* name,
                        absl::Span<const StageOneArgument> arguments, uint64_t* workspace_size,
                        aclOpExecutor** executor) {
  return StageOne(function, name).Run(arguments, workspace_size, executor);
}

}  // namespace opserve::host_cann
