#include "server/run/stage_one_arguments.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/dtypes/element.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/program/host_bytes.h"

namespace opserve::server {
namespace {

using Value = StageOneFunction::Value;
using catalog::ArgumentKind;

// Tensors without elements have no memory, but the setters of addresses want one; nothing is read
// there.
void* const kNoElements = reinterpret_cast<void*>(uintptr_t{64});

// Host memory of a tensor of ACL, and of any other object: about what the host CANN's take.
constexpr uint64_t kTensorBytes = 336;
constexpr uint64_t kObjectBytes = 136;

absl::StatusOr<aclTensor*> MakeTensor(const AclLibrary& acl, const TensorSpec& spec,
                                      const Shape& strides, int64_t offset,
                                      int64_t storage_elements, void* address) {
  // The storage of a view is one row, from the storage's start to the end of the view.
  const bool is_plain = offset == 0 && strides == ContiguousStrides(spec.shape);
  const Shape storage = is_plain ? spec.shape : Shape{std::max<int64_t>(storage_elements, 1)};
  aclTensor* tensor = acl.aclCreateTensor(spec.shape.data(), spec.shape.size(),
                                          catalog::ToAcl(spec.dtype), strides.data(), offset,
                                          ACL_FORMAT_ND, storage.data(), storage.size(), address);
  if (tensor == nullptr) return AclCallStatus(acl, "aclCreateTensor", ACL_ERROR_FAILURE);
  return tensor;
}

absl::StatusOr<aclTensor*> MakeInput(const AclLibrary& acl, const BoundInput& input,
                                     void* address) {
  if (input.output) {  // its copy
    return MakeTensor(acl, input.spec, ContiguousStrides(input.spec.shape), 0, 0, address);
  }
  return MakeTensor(acl, input.spec, input.strides, input.offset, input.storage_elements, address);
}

// A library without a function that only some operators need.
absl::Status Lacks(absl::string_view function) {
  return absl::UnimplementedError(
      absl::StrCat("the daemon's ACL libraries lack ", function, ", which this operator needs"));
}

// How an object is destroyed, from the library's function for its type.
template <typename T>
auto DestroyerOf(aclnnStatus (*destroy)(const T*)) {
  return reinterpret_cast<aclnnStatus (*)(const void*)>(destroy);
}

}  // namespace

absl::StatusOr<StageOneArguments> StageOneArguments::Make(const AclLibrary& acl,
                                                          const BoundInvocation& call,
                                                          absl::Span<void* const> inputs,
                                                          absl::Span<void* const> outputs) {
  const catalog::OperatorDescriptor& descriptor = *call.op->descriptor;
  StageOneArguments made(acl);
  made.inputs_.resize(descriptor.inputs.size());
  made.outputs_.resize(descriptor.outputs.size());
  // The descriptor lists arguments in the order of stage one's parameters.
  for (const catalog::ArgumentDescriptor& argument : descriptor.arguments) {
    Value value{};
    if (argument.attribute) {
      OPSERVE_RETURN_IF_ERROR(
          made.AddAttribute(argument, call.attributes[*argument.attribute], &value));
    } else if (argument.is_mask()) {
      OPSERVE_RETURN_IF_ERROR(made.AddMask(call, &value));
    } else {
      OPSERVE_RETURN_IF_ERROR(made.AddTensors(call, argument, inputs, outputs, &value));
    }
    made.values_.push_back(value);
  }
  return made;
}

uint64_t StageOneArguments::HostBytes() const {
  size_t tensors = 0;
  for (const auto* groups : {&inputs_, &outputs_}) {
    for (const Group& group : *groups) {
      if (group.object != nullptr) tensors += group.end - group.begin;
    }
  }
  return tensors * kTensorBytes + (size() - std::min(tensors, size())) * kObjectBytes +
         HeapBytes(owned_) + HeapBytes(values_) + HeapBytes(inputs_) + HeapBytes(outputs_) +
         HeapBytes(texts_) + HeapBytes(set_inputs_) + HeapBytes(set_outputs_);
}

absl::Status StageOneArguments::Add(void* object, const char* function, Object::Destroy destroy,
                                    Value* value) {
  if (object == nullptr) return AclCallStatus(*acl_, function, ACL_ERROR_FAILURE);
  owned_.emplace_back(object, destroy);
  value->pointer = object;
  return absl::OkStatus();
}

absl::Status StageOneArguments::AddTensors(const BoundInvocation& call,
                                           const catalog::ArgumentDescriptor& argument,
                                           absl::Span<void* const> inputs,
                                           absl::Span<void* const> outputs, Value* value) {
  const bool is_input = argument.input.has_value();
  const ArgumentEnds& ends = is_input ? call.input_ends : call.output_ends;
  const size_t index = is_input ? *argument.input : *argument.output;
  Group& group = is_input ? inputs_[index] : outputs_[index];
  group.is_list = argument.kind == ArgumentKind::kTensorList;
  group.begin = index == 0 ? 0 : ends[index - 1];
  group.end = ends[index];
  // The input stands for the output, which gets its address as an input.
  if (is_input && argument.output) outputs_[*argument.output].is_in_place = true;
  absl::InlinedVector<aclTensor*, 1> tensors;
  for (uint32_t i = group.begin; i < group.end; ++i) {
    absl::StatusOr<aclTensor*> tensor =
        is_input
            ? MakeInput(*acl_, call.inputs[i], inputs.empty() ? nullptr : inputs[i])
            : MakeTensor(*acl_, call.outputs[i].spec, ContiguousStrides(call.outputs[i].spec.shape),
                         /*offset=*/0, NumElements(call.outputs[i].spec.shape),
                         outputs.empty() ? nullptr : outputs[i]);
    if (!tensor.ok()) {
      // Nothing owns these yet.
      for (aclTensor* made : tensors) acl_->aclDestroyTensor(made);
      return tensor.status();
    }
    tensors.push_back(*tensor);
  }
  if (!group.is_list) {
    if (tensors.empty()) return absl::OkStatus();  // a null pointer
    OPSERVE_RETURN_IF_ERROR(
        Add(tensors.front(), "aclCreateTensor", DestroyerOf(acl_->aclDestroyTensor), value));
  } else {
    // The list takes its tensors over.
    aclTensorList* list = acl_->aclCreateTensorList(tensors.data(), tensors.size());
    if (list == nullptr) {
      for (aclTensor* made : tensors) acl_->aclDestroyTensor(made);
    }
    OPSERVE_RETURN_IF_ERROR(
        Add(list, "aclCreateTensorList", DestroyerOf(acl_->aclDestroyTensorList), value));
    num_list_tensors_ += tensors.size();
  }
  group.object = owned_.back().get();
  return absl::OkStatus();
}

absl::Status StageOneArguments::AddMask(const BoundInvocation& call, Value* value) {
  // aclnn's mask of outputs: bits at the descriptor's positions, set for outputs that have a tensor
  // in this call.
  absl::InlinedVector<bool, 4> mask;
  const auto& outputs = call.op->descriptor->outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].mask) continue;
    mask.resize(std::max(mask.size(), *outputs[i].mask + 1), false);
    mask[*outputs[i].mask] = call.output_ends[i] > (i == 0 ? 0 : call.output_ends[i - 1]);
  }
  return Add(acl_->aclCreateBoolArray(mask.data(), mask.size()), "aclCreateBoolArray",
             DestroyerOf(acl_->aclDestroyBoolArray), value);
}

absl::StatusOr<aclScalar*> StageOneArguments::MakeScalar(const catalog::Scalar& scalar) const {
  char bytes[8] = {};
  VisitElement(catalog::ToWire(scalar.dtype), [&]<typename T>(std::type_identity<T>) {
    const int64_t* integer = std::get_if<int64_t>(&scalar.value);
    const T element =
        // Types of 16 bits convert from float only.
        integer != nullptr && std::is_integral_v<T>
            ? static_cast<T>(*integer)
            : static_cast<T>(
                  static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(
                      scalar.AsDouble()));
    std::memcpy(bytes, &element, sizeof(element));
  });
  aclScalar* made = acl_->aclCreateScalar(bytes, scalar.dtype);
  if (made == nullptr) return AclCallStatus(*acl_, "aclCreateScalar", ACL_ERROR_FAILURE);
  return made;
}

absl::Status StageOneArguments::AddAttribute(const catalog::ArgumentDescriptor& argument,
                                             const catalog::AttributeValue& attribute,
                                             Value* value) {
  if (attribute.index() == 0) return absl::OkStatus();  // a null pointer
  switch (argument.kind) {
    case ArgumentKind::kInt64:
      value->integer64 = std::get<int64_t>(attribute);
      break;
    case ArgumentKind::kUint64:
      value->unsigned64 = static_cast<uint64_t>(std::get<int64_t>(attribute));
      break;
    case ArgumentKind::kInt32:
      value->integer32 = static_cast<int32_t>(std::get<int64_t>(attribute));
      break;
    case ArgumentKind::kInt8:
      value->integer8 = static_cast<int8_t>(std::get<int64_t>(attribute));
      break;
    // ACL's number of the type, as stage one takes it.
    case ArgumentKind::kDtype:
      value->integer32 = static_cast<int32_t>(std::get<aclDataType>(attribute));
      break;
    case ArgumentKind::kBool:
      value->truth = std::get<bool>(attribute) ? 1 : 0;
      break;
    case ArgumentKind::kDouble:
      value->real64 = std::get<double>(attribute);
      break;
    case ArgumentKind::kFloat:
      value->real32 = static_cast<float>(std::get<double>(attribute));
      break;
    case ArgumentKind::kText:
      // Each text has its own place on the heap: a short one inside the vector would move with it.
      texts_.push_back(std::make_unique<std::string>(std::get<std::string>(attribute)));
      value->pointer = texts_.back()->c_str();
      break;
    case ArgumentKind::kScalar: {
      OPSERVE_ASSIGN_OR_RETURN(aclScalar* const scalar,
                               MakeScalar(std::get<catalog::Scalar>(attribute)));
      return Add(scalar, "aclCreateScalar", DestroyerOf(acl_->aclDestroyScalar), value);
    }
    case ArgumentKind::kIntArray: {
      const auto& numbers = std::get<std::vector<int64_t>>(attribute);
      return Add(acl_->aclCreateIntArray(numbers.data(), numbers.size()), "aclCreateIntArray",
                 DestroyerOf(acl_->aclDestroyIntArray), value);
    }
    case ArgumentKind::kBoolArray: {
      // std::vector<bool> has no array of bools.
      const auto& bits = std::get<std::vector<bool>>(attribute);
      const absl::InlinedVector<bool, 4> truths(bits.begin(), bits.end());
      return Add(acl_->aclCreateBoolArray(truths.data(), truths.size()), "aclCreateBoolArray",
                 DestroyerOf(acl_->aclDestroyBoolArray), value);
    }
    case ArgumentKind::kFloatArray: {
      const auto& numbers = std::get<std::vector<double>>(attribute);
      const std::vector<float> floats(numbers.begin(), numbers.end());
      return Add(acl_->aclCreateFloatArray(floats.data(), floats.size()), "aclCreateFloatArray",
                 DestroyerOf(acl_->aclDestroyFloatArray), value);
    }
    case ArgumentKind::kScalarList: {
      if (acl_->aclCreateScalarList == nullptr) return Lacks("aclCreateScalarList");
      std::vector<aclScalar*> scalars;
      for (const double number : std::get<std::vector<double>>(attribute)) {
        absl::StatusOr<aclScalar*> scalar = MakeScalar({ACL_FLOAT, number});
        if (!scalar.ok()) {
          for (aclScalar* made : scalars) acl_->aclDestroyScalar(made);
          return scalar.status();
        }
        scalars.push_back(*scalar);
      }
      // The list owns its scalars, but only once it is made.
      aclScalarList* const list = acl_->aclCreateScalarList(scalars.data(), scalars.size());
      if (list == nullptr) {
        for (aclScalar* made : scalars) acl_->aclDestroyScalar(made);
      }
      num_list_tensors_ += scalars.size();
      return Add(list, "aclCreateScalarList", DestroyerOf(acl_->aclDestroyScalarList), value);
    }
    case ArgumentKind::kTensor:
    case ArgumentKind::kTensorList:
      break;  // no attributes
  }
  return absl::OkStatus();
}

absl::Status StageOneArguments::SetAddress(aclOpExecutor* executor, const Group& group,
                                           bool is_input, size_t index,
                                           absl::Span<void* const> addresses,
                                           Addresses* set_addresses) const {
  for (uint32_t i = group.begin; i < group.end; ++i) {
    void* const address = addresses[i] != nullptr ? addresses[i] : kNoElements;
    if ((*set_addresses)[i] == address) continue;
    const char* function = is_input ? "aclSetInputTensorAddr" : "aclSetOutputTensorAddr";
    int status = 0;
    if (group.is_list) {
      function = is_input ? "aclSetDynamicInputTensorAddr" : "aclSetDynamicOutputTensorAddr";
      // The tensors of a list are set one by one, each by its position in it.
      const auto set =
          is_input ? acl_->aclSetDynamicInputTensorAddr : acl_->aclSetDynamicOutputTensorAddr;
      status =
          set(executor, index, i - group.begin, static_cast<aclTensorList*>(group.object), address);
    } else {
      const auto set = is_input ? acl_->aclSetInputTensorAddr : acl_->aclSetOutputTensorAddr;
      status = set(executor, index, static_cast<aclTensor*>(group.object), address);
    }
    OPSERVE_RETURN_IF_ERROR(AclCallStatus(*acl_, function, status));
    (*set_addresses)[i] = address;
  }
  return absl::OkStatus();
}

absl::Status StageOneArguments::SetAddresses(aclOpExecutor* executor,
                                             // New elements are null, which is no address, so the
                                             // first launch sets all.
                                             absl::Span<void* const> inputs,
                                             absl::Span<void* const> outputs) {
  set_inputs_.resize(inputs.size());
  set_outputs_.resize(outputs.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    OPSERVE_RETURN_IF_ERROR(
        SetAddress(executor, inputs_[i], /*is_input=*/true, i, inputs, &set_inputs_));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].is_in_place) continue;  // set as an input
    OPSERVE_RETURN_IF_ERROR(
        SetAddress(executor, outputs_[i], /*is_input=*/false, i, outputs, &set_outputs_));
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
