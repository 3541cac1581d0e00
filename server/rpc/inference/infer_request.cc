#include "server/rpc/inference/infer_request.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/rpc/inference/models.h"
#include "server/rpc/inference/request_parameters.h"

namespace opserve::server {
namespace {

using catalog::InputDescriptor;
using inference::InferParameter;
using inference::InferTensorContents;
using InputTensor = inference::ModelInferRequest::InferInputTensor;
using RequestedOutput = inference::ModelInferRequest::InferRequestedOutputTensor;

// What a tensor's parameters say about shared memory.
struct NamedRange {
  std::string region;
  uint64_t offset = 0;
  uint64_t byte_size = 0;
};

absl::StatusOr<int64_t> IntegerParameter(const catalog::OperatorDescriptor& model,
                                         absl::string_view name, const InferParameter& parameter) {
  if (parameter.parameter_choice_case() == InferParameter::kInt64Param) {
    return parameter.int64_param();
  }
  return WrongParameterType(model, name, "int64_param");
}

absl::StatusOr<std::optional<NamedRange>> ReadNamedRange(const catalog::OperatorDescriptor& model,
                                                         absl::string_view tensor,
                                                         const InferParameters& parameters) {
  std::optional<std::string> region;
  std::optional<int64_t> byte_size;
  std::optional<int64_t> offset;
  for (const auto& [name, parameter] : parameters) {
    if (name == "shared_memory_region") {
      if (parameter.parameter_choice_case() != InferParameter::kStringParam) {
        return WrongParameterType(model, name, "string_param");
      }
      region = parameter.string_param();
    } else if (name == "shared_memory_byte_size") {
      OPSERVE_ASSIGN_OR_RETURN(byte_size, IntegerParameter(model, name, parameter));
    } else if (name == "shared_memory_offset") {
      OPSERVE_ASSIGN_OR_RETURN(offset, IntegerParameter(model, name, parameter));
    }
  }
  if (!region) {
    if (!byte_size && !offset) return std::nullopt;
    return InvalidInference(model, tensor,
                            absl::StrCat("'shared_memory_region' must be specified along with "
                                         "'shared_memory_byte_size' and 'shared_memory_offset' for "
                                         "tensor '",
                                         tensor, "'"));
  }
  if (!byte_size) {
    return InvalidInference(model, tensor,
                            absl::StrCat("'shared_memory_byte_size' must be specified along with "
                                         "'shared_memory_region' for tensor '",
                                         tensor, "'"));
  }
  return NamedRange{*std::move(region), static_cast<uint64_t>(offset.value_or(0)),
                    static_cast<uint64_t>(*byte_size)};
}

// A field with elements that is not the one where elements of `dtype` belong.
bool HasOtherElements(const InferTensorContents& contents, Dtype dtype) {
  return !contents.bool_contents().empty() || !contents.int_contents().empty() ||
         !contents.int64_contents().empty() || !contents.uint_contents().empty() ||
         !contents.uint64_contents().empty() || !contents.bytes_contents().empty() ||
         (!contents.fp32_contents().empty() && dtype != v1::DATA_TYPE_FLOAT) ||
         (!contents.fp64_contents().empty() && dtype != v1::DATA_TYPE_DOUBLE);
}

template <typename Elements>
absl::string_view BytesOf(const Elements& elements) {
  return {reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(elements[0])};
}

class Translator {
 public:
  Translator(const inference::ModelInferRequest& request, const InferNames& names,
             codec::PayloadMessage* message, v1::ExecuteRequest* program)
      : request_(request),
        names_(names),
        message_(*message),
        raw_inputs_(message->payloads().size()),
        program_(*program) {}

  absl::StatusOr<InferTask> Translate() {
    OPSERVE_ASSIGN_OR_RETURN(
        task_.op, FindModel(names_.operators, request_.model_name(), request_.model_version()));
    model_ = task_.op->descriptor;
    invocation_ = program_.add_invocations();
    invocation_->set_operator_(std::string(model_->name));
    OPSERVE_RETURN_IF_ERROR(
        ReadRequestParameters(*model_, request_.parameters(), &program_, &task_.timeout));
    OPSERVE_RETURN_IF_ERROR(CheckNames());
    for (const InputTensor& input : request_.inputs()) {
      OPSERVE_RETURN_IF_ERROR(TranslateInput(input));
    }
    if (used_raw_inputs_ != raw_inputs_) {
      return InvalidInference(
          *model_, "raw_input_contents",
          absl::StrCat("expected ", used_raw_inputs_, " raw input contents, those of the inputs ",
                       "that are not in shared memory, but got ", raw_inputs_, " for model '",
                       model_->name, "'"));
    }
    for (const RequestedOutput& output : request_.outputs()) {
      OPSERVE_RETURN_IF_ERROR(TranslateOutput(output));
    }
    return std::move(task_);
  }

 private:
  const InputDescriptor* FindInput(absl::string_view name) const {
    for (const InputDescriptor& input : model_->inputs) {
      if (input.name == name) return &input;
    }
    return nullptr;
  }

  absl::Status CheckNames() const {
    absl::InlinedVector<absl::string_view, 4> given;
    for (const InputTensor& input : request_.inputs()) {
      if (FindInput(input.name()) == nullptr) {
        return InvalidInference(*model_, input.name(),
                                absl::StrCat("unexpected inference input '", input.name(),
                                             "' for model '", model_->name, "'"));
      }
      for (absl::string_view other : given) {
        if (other != input.name()) continue;
        return InvalidInference(
            *model_, input.name(),
            absl::StrCat("input '", input.name(), "' already exists in request"));
      }
      given.push_back(input.name());
    }
    for (int i = 0; i < request_.outputs_size(); ++i) {
      const std::string& name = request_.outputs(i).name();
      if (name != model_->output.name) {
        return InvalidInference(*model_, name,
                                absl::StrCat("unexpected inference output '", name, "' for model '",
                                             model_->name, "'"));
      }
      if (i > 0) {
        return InvalidInference(*model_, name,
                                absl::StrCat("output '", name, "' already exists in request"));
      }
    }
    return CheckNothingIsMissing(given);
  }

  absl::Status CheckNothingIsMissing(absl::Span<const absl::string_view> given) const {
    if (given.size() == model_->inputs.size()) return absl::OkStatus();
    std::vector<std::string> missing;
    for (const InputDescriptor& input : model_->inputs) {
      if (std::find(given.begin(), given.end(), input.name) == given.end()) {
        missing.push_back(absl::StrCat("'", input.name, "'"));
      }
    }
    std::string got;
    for (absl::string_view name : given) {
      absl::StrAppend(&got, got.empty() ? "" : ", ", "'", name, "'");
    }
    return InvalidInference(
        *model_, "",
        absl::StrCat("expected ", model_->inputs.size(), " inputs but got ", given.size(),
                     " inputs for model '", model_->name, "'. Got input(s) [", got,
                     "], but missing required input(s) [", absl::StrJoin(missing, ", "), "]"));
  }

  // Type and shape of an input, and that it has a size.
  absl::StatusOr<TensorSpec> ReadSpec(const InputTensor& input) const {
    const std::vector<Dtype>& accepted = FindInput(input.name())->dtypes;
    TensorSpec spec;
    spec.dtype = DtypeOf(input.datatype());
    if (std::find(accepted.begin(), accepted.end(), spec.dtype) == accepted.end()) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("inference input '", input.name(), "' data-type is '", input.datatype(),
                       "', but model '", model_->name, "' expects ", DatatypeNames(accepted)));
    }
    if (input.shape_size() > kMaxRank) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("unexpected shape for input '", input.name(), "' for model '", model_->name,
                       "'. Expected at most ", kMaxRank, " dimensions, got ", input.shape_size()));
    }
    spec.shape.assign(input.shape().begin(), input.shape().end());
    for (int64_t extent : spec.shape) {
      if (extent >= 0) continue;
      const absl::string_view problem =
          extent == -1 ? ". All input dimensions should be specified for input '"
                       : " contains an invalid dimension for input '";
      return InvalidInference(*model_, input.name(),
                              absl::StrCat("shape ", ShapeText(spec.shape), problem, input.name(),
                                           "' for model '", model_->name, "'"));
    }
    if (!CheckShape(spec.dtype, spec.shape).ok()) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("shape ", ShapeText(spec.shape), " for input '", input.name(),
                       "' for model '", model_->name, "' exceeds maximum size of 2^63-1"));
    }
    return spec;
  }

  absl::Status CheckByteSize(const InputTensor& input, const TensorSpec& spec,
                             uint64_t actual) const {
    const auto expected = static_cast<uint64_t>(NumBytes(spec));
    if (actual == expected) return absl::OkStatus();
    return InvalidInference(
        *model_, input.name(),
        absl::StrCat("input byte size mismatch for input '", input.name(), "' for model '",
                     model_->name, "'. Expected ", expected, ", got ", actual));
  }

  absl::Status TranslateInput(const InputTensor& input) {
    OPSERVE_ASSIGN_OR_RETURN(const TensorSpec spec, ReadSpec(input));
    v1::NamedTensor* named = invocation_->add_inputs();
    named->set_name(input.name());
    v1::Tensor* tensor = named->mutable_tensor();
    tensor->set_dtype(spec.dtype);
    tensor->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
    OPSERVE_ASSIGN_OR_RETURN(const std::optional<NamedRange> range,
                             ReadNamedRange(*model_, input.name(), input.parameters()));
    if (range) {
      if (input.has_contents()) {
        return InvalidInference(
            *model_, input.name(),
            absl::StrCat("unexpected 'content' provided when using shared memory for input '",
                         input.name(), "' for model '", model_->name, "'"));
      }
      OPSERVE_RETURN_IF_ERROR(CheckByteSize(input, spec, range->byte_size));
      return TranslateRange(*range, tensor->mutable_shared_memory());
    }
    if (input.has_contents()) return TakeContents(input, spec, tensor);
    if (used_raw_inputs_ == raw_inputs_) {
      return InvalidInference(*model_, input.name(),
                              absl::StrCat("unable to find data for input tensor '", input.name(),
                                           "' for model '", model_->name, "' in request"));
    }
    tensor->set_payload(used_raw_inputs_);
    return CheckByteSize(input, spec, message_.payloads()[used_raw_inputs_++].size);
  }

  absl::Status TakeContents(const InputTensor& input, const TensorSpec& spec, v1::Tensor* tensor) {
    if (raw_inputs_ > 0) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("contents field must not be specified when using raw_input_contents for '",
                       input.name(), "' for model '", model_->name, "'"));
    }
    const InferTensorContents& contents = input.contents();
    if (HasOtherElements(contents, spec.dtype)) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("unexpected explicit tensor data for input tensor '", input.name(),
                       "' for model '", model_->name, "' of type '", input.datatype(), "'"));
    }
    const absl::string_view bytes = spec.dtype == v1::DATA_TYPE_DOUBLE
                                        ? BytesOf(contents.fp64_contents())
                                        : BytesOf(contents.fp32_contents());
    OPSERVE_RETURN_IF_ERROR(CheckByteSize(input, spec, bytes.size()));
    tensor->set_payload(static_cast<uint32_t>(message_.payloads().size()));
    char* const to = message_.AddPayload(bytes.size());
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  absl::Status TranslateOutput(const RequestedOutput& output) {
    const auto classification = output.parameters().find("classification");
    if (classification != output.parameters().end()) {
      return InvalidInference(
          *model_, output.name(),
          absl::StrCat("'classification' is not supported for output '", output.name(), "'"));
    }
    OPSERVE_ASSIGN_OR_RETURN(const std::optional<NamedRange> range,
                             ReadNamedRange(*model_, output.name(), output.parameters()));
    if (!range) return absl::OkStatus();
    v1::WantedResult* result = program_.add_results();
    result->set_output(output.name());
    return TranslateRange(*range, result->mutable_shared_memory());
  }

  absl::Status TranslateRange(const NamedRange& range, v1::SharedMemoryRange* to) {
    if (names_.regions == nullptr) return NamedRegionsAreDisabled();
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region,
                             names_.regions->Find(names_.tenant, range.region));
    const auto invalid = [&](absl::string_view problem) {
      return MakeError(Reason::kShmInvalid, absl::StrCat(problem, ": '", range.region, "'"));
    };
    if (range.offset >= region->size()) return invalid("Invalid offset for shared memory region");
    uint64_t end = 0;
    if (__builtin_add_overflow(range.offset, range.byte_size, &end)) {
      return invalid("Integer overflow detected in offset + byte size for shared memory region");
    }
    if (end > region->size()) {
      return invalid("Invalid offset + byte size for shared memory region");
    }
    to->set_region(task_.regions.size());
    to->set_offset(range.offset);
    to->set_size(range.byte_size);
    task_.regions.push_back(std::move(region));
    return absl::OkStatus();
  }

  const inference::ModelInferRequest& request_;
  const InferNames& names_;
  codec::PayloadMessage& message_;
  const size_t raw_inputs_;
  v1::ExecuteRequest& program_;
  v1::Invocation* invocation_ = nullptr;
  const catalog::OperatorDescriptor* model_ = nullptr;
  InferTask task_;
  uint32_t used_raw_inputs_ = 0;
};

}  // namespace

absl::StatusOr<InferTask> TranslateInferRequest(const inference::ModelInferRequest& request,
                                                const InferNames& names,
                                                codec::PayloadMessage* message,
                                                v1::ExecuteRequest* program) {
  return Translator(request, names, message, program).Translate();
}

absl::Status NamedRegionsAreDisabled() {
  return MakeError(
      Reason::kShmDisabled,
      "Client shared memory is disabled. Start the daemon with --allow_named_shm to use it");
}

}  // namespace opserve::server
