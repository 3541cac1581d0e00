#include "server/kserve/infer_request.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "ops/catalog/attributes.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/kserve/models.h"
#include "server/kserve/request_parameters.h"

namespace opserve::server {
namespace {

// Texts of errors are Triton's where it has the same error: its clients match them.
using catalog::InputDescriptor;
using inference::InferParameter;
using inference::InferTensorContents;
using InputTensor = inference::ModelInferRequest::InferInputTensor;
using RequestedOutput = inference::ModelInferRequest::InferRequestedOutputTensor;

// The shared memory that a tensor's parameters name.
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
  // Size and offset mean nothing without a region. Neither does a region without a size.
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
  // A negative number becomes a huge one, which fits no region.
  return NamedRange{*std::move(region), static_cast<uint64_t>(offset.value_or(0)),
                    static_cast<uint64_t>(*byte_size)};
}

// The elements that `field` has, each as a T, appended to `bytes`. False: one does not fit.
template <typename T, typename Field>
bool AppendElements(const Field& field, std::string* bytes) {
  for (const auto value : field) {
    const T element = static_cast<T>(value);
    // A value that changes in the conversion does not fit; a NaN differs from itself and always
    // does.
    if (static_cast<std::decay_t<decltype(value)>>(element) != value && value == value)
      return false;
    bytes->append(reinterpret_cast<const char*>(&element), sizeof(element));
  }
  return true;
}

// How many fields of `contents` have elements.
int CountFields(const InferTensorContents& contents) {
  return !contents.bool_contents().empty() + !contents.int_contents().empty() +
         !contents.int64_contents().empty() + !contents.uint_contents().empty() +
         !contents.uint64_contents().empty() + !contents.bytes_contents().empty() +
         !contents.fp32_contents().empty() + !contents.fp64_contents().empty();
}

// The elements of the field for `dtype`, as they are in memory.
struct TypedContents {
  std::string bytes;
  bool has_field = true;  // false: elements of this dtype have no field
  bool fits = true;       // false: an element is not of the dtype
  int field_size = 0;
};

TypedContents ReadContents(const InferTensorContents& contents, Dtype dtype) {
  // The protocol has one field for several narrow types. Floats of 16 bits have none: they travel
  // as raw contents.
  TypedContents read;
  const auto take = [&]<typename T>(const auto& field, std::type_identity<T>) {
    read.field_size = field.size();
    read.fits = AppendElements<T>(field, &read.bytes);
  };
  switch (dtype) {
    case v1::DATA_TYPE_FLOAT:
      take(contents.fp32_contents(), std::type_identity<float>());
      break;
    case v1::DATA_TYPE_DOUBLE:
      take(contents.fp64_contents(), std::type_identity<double>());
      break;
    case v1::DATA_TYPE_INT8:
      take(contents.int_contents(), std::type_identity<int8_t>());
      break;
    case v1::DATA_TYPE_INT16:
      take(contents.int_contents(), std::type_identity<int16_t>());
      break;
    case v1::DATA_TYPE_INT32:
      take(contents.int_contents(), std::type_identity<int32_t>());
      break;
    case v1::DATA_TYPE_INT64:
      take(contents.int64_contents(), std::type_identity<int64_t>());
      break;
    case v1::DATA_TYPE_UINT8:
      take(contents.uint_contents(), std::type_identity<uint8_t>());
      break;
    case v1::DATA_TYPE_BOOL:
      take(contents.bool_contents(), std::type_identity<bool>());
      break;
    default:
      read.has_field = false;
      break;
  }
  return read;
}

// Names are checked first, so that the later steps find each of them. Inputs follow in the
// request's order, which is that of the raw contents, and then the outputs.
class Translator {
 public:
  Translator(const inference::ModelInferRequest& request, const InferNames& names,
             codec::PayloadMessage* message)
      : request_(request),
        names_(names),
        message_(*message),
        raw_inputs_(message->payloads().size()) {}

  absl::StatusOr<InferTask> Translate() {
    program().invocations.resize(1);
    OPSERVE_ASSIGN_OR_RETURN(
        task_.op, FindModel(names_.operators, request_.model_name(), request_.model_version()));
    model_ = task_.op->descriptor;
    invocation().operator_name = model_->name;
    OPSERVE_RETURN_IF_ERROR(ReadRequestParameters(*model_, request_.parameters(), &task_.request,
                                                  &task_.values, &task_.timeout));
    OPSERVE_RETURN_IF_ERROR(CheckNames());
    for (const InputTensor& input : request_.inputs()) {
      OPSERVE_RETURN_IF_ERROR(TranslateInput(input));
    }
    // Raw contents belong, in their order, to the inputs that are not in shared memory. One too
    // many has no input; one too few was found above.
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
    LeaveOutMasked();
    if (!task_.request.idempotency_key.empty()) task_.request.fields = Fields();
    return std::move(task_);
  }

 private:
  ProgramRequest& program() { return task_.request.program; }
  GivenInvocation& invocation() { return program().invocations.front(); }

  // As GivenRequest has them. A repetition may have another id, and less time.
  std::string Fields() const {
    inference::ModelInferRequest repeated = request_;
    repeated.clear_id();
    for (const char* name : {"timeout", "sequence_id", "sequence_start", "sequence_end"}) {
      repeated.mutable_parameters()->erase(name);
    }
    std::string fields;
    google::protobuf::io::StringOutputStream stream(&fields);
    google::protobuf::io::CodedOutputStream to(&stream);
    // The parameters are a map, whose order may be any.
    to.SetSerializationDeterministic(true);
    repeated.SerializeToCodedStream(&to);
    to.Trim();
    return fields;
  }

  // The input that a tensor belongs to: by its name, or by a list's and a position, which goes into
  // `*position`.
  const InputDescriptor* FindInput(absl::string_view name, size_t* position = nullptr) const {
    const auto parts = Split(name);
    for (const InputDescriptor& input : model_->inputs) {
      if (input.is_list ? parts && input.name == parts->first : input.name == name) {
        if (position != nullptr && parts) *position = parts->second;
        return &input;
      }
    }
    return nullptr;
  }

  // "tensors.2": the list and the position in it.
  static std::optional<std::pair<absl::string_view, size_t>> Split(absl::string_view name) {
    const size_t dot = name.rfind('.');
    uint32_t position = 0;
    if (dot == absl::string_view::npos || !absl::SimpleAtoi(name.substr(dot + 1), &position) ||
        // "tensors.02" and "tensors.+2" would be second names of one tensor.
        name.substr(dot + 1) != absl::StrCat(position)) {
      return std::nullopt;
    }
    return std::pair(name.substr(0, dot), size_t{position});
  }

  const catalog::OutputDescriptor* FindOutput(absl::string_view name) const {
    const auto parts = Split(name);
    for (const catalog::OutputDescriptor& output : model_->outputs) {
      if (output.is_list ? parts && output.name == parts->first : output.name == name)
        return &output;
    }
    return nullptr;
  }

  absl::Status CheckNames() const {
    absl::InlinedVector<absl::string_view, 4> given;
    absl::flat_hash_set<absl::string_view> seen;
    for (const InputTensor& input : request_.inputs()) {
      if (FindInput(input.name()) == nullptr) {
        return InvalidInference(*model_, input.name(),
                                absl::StrCat("unexpected inference input '", input.name(),
                                             "' for model '", model_->name, "'"));
      }
      if (!seen.insert(input.name()).second) {
        return InvalidInference(
            *model_, input.name(),
            absl::StrCat("input '", input.name(), "' already exists in request"));
      }
      given.push_back(input.name());
    }
    // An input and an output may have one name.
    seen.clear();
    for (const RequestedOutput& output : request_.outputs()) {
      if (FindOutput(output.name()) == nullptr) {
        return InvalidInference(*model_, output.name(),
                                absl::StrCat("unexpected inference output '", output.name(),
                                             "' for model '", model_->name, "'"));
      }
      if (!seen.insert(output.name()).second) {
        return InvalidInference(
            *model_, output.name(),
            absl::StrCat("output '", output.name(), "' already exists in request"));
      }
    }
    return CheckNothingIsMissing(given);
  }

  absl::Status CheckNothingIsMissing(absl::Span<const absl::string_view> given) const {
    std::vector<std::string> missing;
    for (const InputDescriptor& input : model_->inputs) {
      // A list may be empty, as far as the operator's rules allow.
      if (input.is_optional || input.is_list) continue;
      if (std::find(given.begin(), given.end(), input.name) == given.end()) {
        missing.push_back(absl::StrCat("'", input.name, "'"));
      }
    }
    if (missing.empty()) return absl::OkStatus();
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
    const std::vector<aclDataType>& accepted = FindInput(input.name())->dtypes;
    // Only the protocol's demands on any tensor; the operator's rules judge the shape later.
    TensorSpec spec;
    spec.dtype = DtypeOf(input.datatype());
    if (std::find(accepted.begin(), accepted.end(), catalog::ToAcl(spec.dtype)) == accepted.end()) {
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
      // -1 stands for any extent in the descriptions of models, and clients copy it from there.
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

  // The program's tensor for an input. Those of a list come in its order.
  absl::StatusOr<GivenTensor*> AddTensor(const std::string& name) {
    // Tensors of a list come as inputs of their own, and are gathered under the list's name where
    // the first of them stood.
    size_t position = 0;
    const InputDescriptor* const input = FindInput(name, &position);
    GivenInput* given = nullptr;
    for (GivenInput& other : invocation().inputs) {
      if (input->is_list && other.name == input->name) given = &other;
    }
    if (given == nullptr) {
      given = &invocation().inputs.emplace_back();
      given->name = input->name;
      given->has_list = input->is_list;
      given->has_tensor = !input->is_list;
    }
    // Positions must come in ascending order, without gaps: the program's list has no holes.
    const size_t next = given->tensors.size();
    if (input->is_list && position != next) {
      return InvalidInference(
          *model_, name,
          absl::StrCat("input '", name, "' for model '", model_->name,
                       "' is out of order; expected '", input->name, ".", next, "'"));
    }
    return &given->tensors.emplace_back();
  }

  absl::Status TranslateInput(const InputTensor& input) {
    OPSERVE_ASSIGN_OR_RETURN(const TensorSpec spec, ReadSpec(input));
    OPSERVE_ASSIGN_OR_RETURN(GivenTensor* const tensor, AddTensor(input.name()));
    tensor->dtype = spec.dtype;
    tensor->shape = input.shape();
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
      return TranslateRange(*range, &tensor->storage.emplace<MemoryRange>());
    }
    // The tensor's own contents, then the next of the raw ones.
    if (input.has_contents()) return TakeContents(input, spec, tensor);
    if (used_raw_inputs_ == raw_inputs_) {
      return InvalidInference(*model_, input.name(),
                              absl::StrCat("unable to find data for input tensor '", input.name(),
                                           "' for model '", model_->name, "' in request"));
    }
    tensor->storage = PayloadStorage{used_raw_inputs_};
    return CheckByteSize(input, spec, message_.payloads()[used_raw_inputs_++].size);
  }

  absl::Status TakeContents(const InputTensor& input, const TensorSpec& spec, GivenTensor* tensor) {
    // A request has typed or raw contents, not both.
    if (raw_inputs_ > 0) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("contents field must not be specified when using raw_input_contents for '",
                       input.name(), "' for model '", model_->name, "'"));
    }
    // Such elements are copied once more than raw ones, since they are part of the header.
    const InferTensorContents& contents = input.contents();
    const TypedContents read = ReadContents(contents, spec.dtype);
    // Elements in the field of another type would be ignored without a word.
    if (CountFields(contents) > (read.field_size > 0 ? 1 : 0)) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("unexpected explicit tensor data for input tensor '", input.name(),
                       "' for model '", model_->name, "' of type '", input.datatype(), "'"));
    }
    if (!read.fits) {
      return InvalidInference(
          *model_, input.name(),
          absl::StrCat("explicit tensor data for input tensor '", input.name(), "' for model '",
                       model_->name, "' has an element that is no '", input.datatype(), "'"));
    }
    OPSERVE_RETURN_IF_ERROR(CheckByteSize(input, spec, read.bytes.size()));
    tensor->storage = PayloadStorage{static_cast<uint32_t>(message_.payloads().size())};
    char* const to = message_.AddPayload(read.bytes.size());
    if (!read.bytes.empty()) std::memcpy(to, read.bytes.data(), read.bytes.size());
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
    // A name chooses among masked outputs, as in the native protocol.
    if (FindOutput(output.name())->is_masked()) {
      invocation().outputs.push_back({.name = FindOutput(output.name())->name});
    }
    // The only output is the result anyway.
    if (!range && model_->outputs.size() == 1 && !model_->outputs[0].is_list) {
      return absl::OkStatus();
    }
    GivenResult& result = program().results.emplace_back();
    result.output = output.name();
    return range ? TranslateRange(*range, &result.range.emplace()) : absl::OkStatus();
  }

  // Masked outputs appear only if they are requested; of an operator that has no others, all do.
  void LeaveOutMasked() {
    const auto is_masked = [](const catalog::OutputDescriptor& output) {
      return output.is_masked();
    };
    const auto& outputs = model_->outputs;
    if (!request_.outputs().empty() || std::none_of(outputs.begin(), outputs.end(), is_masked) ||
        std::all_of(outputs.begin(), outputs.end(), is_masked)) {
      return;
    }
    for (const catalog::OutputDescriptor& output : outputs) {
      if (!output.is_masked()) program().results.emplace_back().output = output.name;
    }
  }

  absl::Status TranslateRange(const NamedRange& range, MemoryRange* to) {
    if (names_.regions == nullptr) return NamedRegionsAreDisabled();
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region,
                             names_.regions->Find(names_.tenant, range.region));
    const auto invalid = [&](absl::string_view problem) {
      return MakeError(Reason::kShmInvalid, absl::StrCat(problem, ": '", range.region, "'"));
    };
    // An offset at the end is refused even for no bytes, as in Triton.
    if (range.offset >= region->size()) return invalid("Invalid offset for shared memory region");
    uint64_t end = 0;
    if (__builtin_add_overflow(range.offset, range.byte_size, &end)) {
      return invalid("Integer overflow detected in offset + byte size for shared memory region");
    }
    if (end > region->size()) {
      return invalid("Invalid offset + byte size for shared memory region");
    }
    // Here a region is named by its position among those that the task keeps.
    to->region = task_.regions.size();
    to->offset = range.offset;
    to->size = range.byte_size;
    task_.regions.push_back(std::move(region));
    return absl::OkStatus();
  }

  const inference::ModelInferRequest& request_;
  const InferNames& names_;
  codec::PayloadMessage& message_;
  const size_t raw_inputs_;
  const catalog::OperatorDescriptor* model_ = nullptr;
  InferTask task_;
  uint32_t used_raw_inputs_ = 0;
};

}  // namespace

absl::StatusOr<InferTask> TranslateInferRequest(const inference::ModelInferRequest& request,
                                                const InferNames& names,
                                                codec::PayloadMessage* message) {
  return Translator(request, names, message).Translate();
}

absl::Status NamedRegionsAreDisabled() {
  return MakeError(
      Reason::kShmDisabled,
      "Client shared memory is disabled. Start the daemon with --allow_named_shm to use it");
}

}  // namespace opserve::server
