#include "server/execution/program.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/error.h"
#include "ops/catalog/status_macros.h"

namespace opserve::server {
namespace {

using catalog::Dtype;
using catalog::InvalidCall;
using catalog::Shape;
using catalog::TensorSpec;

absl::Status TooLarge(absl::string_view operator_name, absl::string_view argument,
                      absl::string_view problem) {
  absl::Status status = InvalidCall(operator_name, argument, problem, /*aclnn_status=*/0);
  v1::ErrorDetail detail = *catalog::GetErrorDetail(status);
  detail.set_reason("too_large");
  catalog::SetErrorDetail(detail, &status);
  return status;
}

std::string DtypeList(const std::vector<Dtype>& dtypes) {
  return absl::StrJoin(dtypes, ", ", [](std::string* out, Dtype dtype) {
    absl::StrAppend(out, catalog::DtypeName(dtype));
  });
}

bool Accepts(const std::vector<Dtype>& dtypes, Dtype dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

// Elements from the storage's start to the last one the view addresses, plus one; 0 for a view
// without elements. Nothing if that does not fit int64.
std::optional<int64_t> StorageElements(const Shape& shape, const Shape& strides, int64_t offset) {
  int64_t last = offset;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return 0;
    int64_t reach = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return std::nullopt;
    }
  }
  if (last == INT64_MAX) return std::nullopt;
  return last + 1;
}

// Binds the invocations of one request in order.
class Binder {
 public:
  Binder(const v1::ExecuteRequest& request, absl::Span<const uint64_t> payload_bytes,
         const OperatorTable& operators, const ProgramLimits& limits)
      : request_(request),
        payload_bytes_(payload_bytes),
        payload_is_used_(payload_bytes.size(), false),
        operators_(operators),
        limits_(limits) {}

  absl::StatusOr<Program> Bind() {
    if (request_.invocations().empty()) return InvalidCall("", "invocations", "there is none");
    if (static_cast<uint32_t>(request_.invocations_size()) > limits_.max_invocations) {
      return TooLarge("", "invocations",
                      absl::StrCat(request_.invocations_size(), " given, at most ",
                                   limits_.max_invocations, " allowed"));
    }
    for (size_t i = 0; i < payload_bytes_.size(); ++i) {
      OPSERVE_RETURN_IF_ERROR(CountBytes("", absl::StrCat("payload ", i), payload_bytes_[i]));
    }
    for (const v1::Invocation& invocation : request_.invocations()) {
      if (absl::Status status = BindInvocation(invocation); !status.ok()) {
        return WithInvocation(std::move(status));
      }
    }
    for (size_t i = 0; i < payload_is_used_.size(); ++i) {
      if (!payload_is_used_[i]) {
        return InvalidCall("", "payloads", absl::StrCat("payload ", i, " belongs to no tensor"));
      }
    }
    OPSERVE_RETURN_IF_ERROR(BindResults());
    return std::move(program_);
  }

 private:
  // Records in the error which invocation it is about.
  absl::Status WithInvocation(absl::Status status) const {
    if (auto detail = catalog::GetErrorDetail(status)) {
      detail->set_invocation(program_.invocations.size());
      catalog::SetErrorDetail(*detail, &status);
    }
    return status;
  }

  absl::Status CountBytes(absl::string_view operator_name, absl::string_view argument,
                          uint64_t bytes) {
    if (bytes > limits_.max_tensor_bytes) {
      return TooLarge(
          operator_name, argument,
          absl::StrCat("takes ", bytes, " bytes, at most ", limits_.max_tensor_bytes, " allowed"));
    }
    program_.total_bytes += bytes;
    if (program_.total_bytes > limits_.max_program_bytes) {
      return TooLarge(operator_name, argument,
                      absl::StrCat("brings the request to ", program_.total_bytes,
                                   " bytes, at most ", limits_.max_program_bytes, " allowed"));
    }
    return absl::OkStatus();
  }

  absl::Status BindInvocation(const v1::Invocation& invocation) {
    BoundInvocation bound;
    bound.op = operators_.Find(invocation.operator_());
    if (bound.op == nullptr) {
      return InvalidCall(invocation.operator_(), "",
                         absl::StrCat("no such operator; ListOperators lists them"));
    }
    const catalog::OperatorDescriptor& descriptor = *bound.op->descriptor;
    if (!bound.op->is_available()) {
      return absl::UnimplementedError(
          absl::StrCat(descriptor.name, ": the daemon's ACL libraries lack this operator"));
    }
    OPSERVE_ASSIGN_OR_RETURN(bound.attributes,
                             catalog::ResolveAttributes(descriptor, invocation.attributes()));
    OPSERVE_RETURN_IF_ERROR(BindInputs(invocation, descriptor, &bound));
    OPSERVE_ASSIGN_OR_RETURN(std::optional<Dtype> dtype, RequestedDtype(invocation, descriptor));

    absl::InlinedVector<TensorSpec, 3> specs;
    for (const BoundInput& input : bound.inputs) specs.push_back(input.spec);
    OPSERVE_ASSIGN_OR_RETURN(bound.output, descriptor.infer_output(specs, bound.attributes, dtype));
    if (absl::Status status = catalog::CheckShape(bound.output.dtype, bound.output.shape);
        !status.ok()) {
      return TooLarge(descriptor.name, descriptor.output.name, status.message());
    }
    OPSERVE_RETURN_IF_ERROR(CountBytes(descriptor.name, descriptor.output.name,
                                       static_cast<uint64_t>(catalog::NumBytes(bound.output))));
    program_.invocations.push_back(std::move(bound));
    return absl::OkStatus();
  }

  absl::Status BindInputs(const v1::Invocation& invocation,
                          const catalog::OperatorDescriptor& descriptor, BoundInvocation* bound) {
    absl::InlinedVector<const v1::Tensor*, 3> given(descriptor.inputs.size(), nullptr);
    for (const v1::NamedTensor& named : invocation.inputs()) {
      const size_t index = InputIndex(descriptor, named.name());
      if (index == descriptor.inputs.size()) {
        return InvalidCall(descriptor.name, named.name(),
                           absl::StrCat("no such input; there are: ", InputNames(descriptor)));
      }
      if (given[index] != nullptr) return InvalidCall(descriptor.name, named.name(), "given twice");
      given[index] = &named.tensor();
    }
    for (size_t i = 0; i < given.size(); ++i) {
      const catalog::InputDescriptor& input = descriptor.inputs[i];
      if (given[i] == nullptr) {
        return InvalidCall(descriptor.name, input.name, "missing", catalog::kAclnnParamNullptr);
      }
      BoundInput bound_input;
      if (absl::Status status = BindTensor(*given[i], &bound_input); !status.ok()) {
        if (catalog::GetErrorDetail(status)) return status;
        return InvalidCall(descriptor.name, input.name, status.message());
      }
      if (!Accepts(input.dtypes, bound_input.spec.dtype)) {
        return InvalidCall(descriptor.name, input.name,
                           absl::StrCat("dtype ", catalog::DtypeName(bound_input.spec.dtype),
                                        "; it may be ", DtypeList(input.dtypes)));
      }
      bound->inputs.push_back(std::move(bound_input));
    }
    return absl::OkStatus();
  }

  static size_t InputIndex(const catalog::OperatorDescriptor& descriptor, absl::string_view name) {
    size_t index = 0;
    while (index < descriptor.inputs.size() && descriptor.inputs[index].name != name) ++index;
    return index;
  }

  static std::string InputNames(const catalog::OperatorDescriptor& descriptor) {
    return absl::StrJoin(descriptor.inputs, ", ",
                         [](std::string* out, const catalog::InputDescriptor& input) {
                           absl::StrAppend(out, input.name);
                         });
  }

  // Errors are plain: the caller knows operator and argument.
  absl::Status BindTensor(const v1::Tensor& tensor, BoundInput* bound) {
    switch (tensor.storage_case()) {
      case v1::Tensor::kPayload:
        return BindPayload(tensor, bound);
      case v1::Tensor::kInvocationOutput:
        return BindInvocationOutput(tensor, bound);
      case v1::Tensor::STORAGE_NOT_SET:
        break;
    }
    return absl::InvalidArgumentError("has no storage: set payload or invocation_output");
  }

  absl::Status BindPayload(const v1::Tensor& tensor, BoundInput* bound) {
    const int64_t element_bytes = catalog::DtypeBytes(tensor.dtype());
    if (element_bytes == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dtype ", static_cast<int>(tensor.dtype()), " is not a dtype"));
    }
    OPSERVE_RETURN_IF_ERROR(catalog::CheckShape(tensor.dtype(), tensor.shape()));
    bound->spec = {tensor.dtype(), Shape(tensor.shape().begin(), tensor.shape().end())};
    bound->strides = ContiguousStrides(bound->spec.shape);
    bound->offset = tensor.offset();
    if (!tensor.strides().empty()) {
      if (tensor.strides_size() != tensor.shape_size()) {
        return absl::InvalidArgumentError(absl::StrCat(tensor.strides_size(), " strides for shape ",
                                                       catalog::ShapeText(tensor.shape())));
      }
      bound->strides.assign(tensor.strides().begin(), tensor.strides().end());
    }
    if (bound->offset < 0 || std::any_of(bound->strides.begin(), bound->strides.end(),
                                         [](int64_t stride) { return stride < 0; })) {
      return absl::InvalidArgumentError(absl::StrCat("offset ", bound->offset, " and strides ",
                                                     catalog::ShapeText(bound->strides),
                                                     " must not be negative"));
    }
    bound->source = PayloadSource{tensor.payload()};
    return CheckPayload(tensor, element_bytes, bound);
  }

  absl::Status CheckPayload(const v1::Tensor& tensor, int64_t element_bytes, BoundInput* bound) {
    const uint32_t payload = tensor.payload();
    if (payload >= payload_bytes_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("payload ", payload, " of a message with ", payload_bytes_.size()));
    }
    payload_is_used_[payload] = true;
    const auto elements = StorageElements(bound->spec.shape, bound->strides, bound->offset);
    int64_t bytes = 0;
    if (!elements || __builtin_mul_overflow(*elements, element_bytes, &bytes)) {
      return absl::InvalidArgumentError("the view reaches beyond 2^63 bytes");
    }
    bound->storage_elements = *elements;
    const uint64_t actual = payload_bytes_[payload];
    const bool is_plain = tensor.strides().empty() && bound->offset == 0;
    if (is_plain ? actual != static_cast<uint64_t>(bytes) : actual < static_cast<uint64_t>(bytes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "payload ", payload, " has ", actual, " bytes; ", catalog::DtypeName(bound->spec.dtype),
          " ", catalog::ShapeText(bound->spec.shape), " takes ", is_plain ? "" : "at least ",
          bytes));
    }
    return absl::OkStatus();
  }

  absl::Status BindInvocationOutput(const v1::Tensor& tensor, BoundInput* bound) {
    if (tensor.dtype() != v1::DATA_TYPE_UNSPECIFIED || !tensor.shape().empty() ||
        !tensor.strides().empty() || tensor.offset() != 0) {
      return absl::InvalidArgumentError(
          "an invocation_output has its own dtype, shape, strides and offset; leave them out");
    }
    OPSERVE_ASSIGN_OR_RETURN(const uint32_t source, FindOutput(tensor.invocation_output()));
    BoundInvocation& producer = program_.invocations[source];
    producer.last_reader = static_cast<uint32_t>(program_.invocations.size());
    bound->spec = producer.output;
    bound->strides = ContiguousStrides(bound->spec.shape);
    bound->storage_elements = catalog::NumElements(bound->spec.shape);
    bound->source = InvocationSource{source};
    return absl::OkStatus();
  }

  // Resolves an output among the invocations bound so far.
  absl::StatusOr<uint32_t> FindOutput(const v1::InvocationOutput& output) const {
    if (output.invocation() >= program_.invocations.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output of invocation ", output.invocation(), ", which is not before it"));
    }
    const catalog::OperatorDescriptor& producer =
        *program_.invocations[output.invocation()].op->descriptor;
    if (!output.output().empty() && output.output() != producer.output.name) {
      return absl::InvalidArgumentError(absl::StrCat(producer.name, " has no output \"",
                                                     output.output(), "\"; it has ",
                                                     producer.output.name));
    }
    return output.invocation();
  }

  static absl::StatusOr<std::optional<Dtype>> RequestedDtype(
      const v1::Invocation& invocation, const catalog::OperatorDescriptor& descriptor) {
    std::optional<Dtype> dtype;
    if (invocation.outputs_size() > 1) {
      return InvalidCall(descriptor.name, "outputs", "more than the operator has");
    }
    for (const v1::OutputRequest& output : invocation.outputs()) {
      if (output.name() != descriptor.output.name) {
        return InvalidCall(descriptor.name, output.name(),
                           absl::StrCat("no such output; there is ", descriptor.output.name));
      }
      if (output.dtype() == v1::DATA_TYPE_UNSPECIFIED) continue;
      if (!Accepts(descriptor.output.dtypes, output.dtype())) {
        return InvalidCall(
            descriptor.name, descriptor.output.name,
            absl::StrCat("dtype ", catalog::DtypeName(output.dtype()), " asked for; it may be ",
                         DtypeList(descriptor.output.dtypes)));
      }
      dtype = output.dtype();
    }
    return dtype;
  }

  absl::Status BindResults() {
    for (const v1::InvocationOutput& result : request_.results()) {
      auto source = FindOutput(result);
      if (!source.ok()) return InvalidCall("", "results", source.status().message());
      if (program_.invocations[*source].is_result) {
        return InvalidCall("", "results",
                           absl::StrCat("invocation ", *source, " is asked for twice"));
      }
      program_.invocations[*source].is_result = true;
      program_.results.push_back(*source);
    }
    if (program_.results.empty()) {
      program_.results.push_back(static_cast<uint32_t>(program_.invocations.size() - 1));
      program_.invocations.back().is_result = true;
    }
    return absl::OkStatus();
  }

  const v1::ExecuteRequest& request_;
  const absl::Span<const uint64_t> payload_bytes_;
  std::vector<bool> payload_is_used_;
  const OperatorTable& operators_;
  const ProgramLimits& limits_;
  Program program_;
};

}  // namespace

Shape ContiguousStrides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * std::max<int64_t>(shape[axis], 1);
  }
  return strides;
}

absl::StatusOr<Program> BindProgram(const v1::ExecuteRequest& request,
                                    absl::Span<const uint64_t> payload_bytes,
                                    const OperatorTable& operators, const ProgramLimits& limits) {
  return Binder(request, payload_bytes, operators, limits).Bind();
}

}  // namespace opserve::server
