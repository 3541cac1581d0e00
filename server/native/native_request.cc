#include "server/native/native_request.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

MemoryRange Translate(const v1::SharedMemoryRange& range) {
  return {.connection = range.connection(),
          .region = range.region(),
          .offset = range.offset(),
          .size = range.size()};
}

GivenTensor Translate(const v1::Tensor& tensor) {
  GivenTensor given{.dtype = tensor.dtype(),
                    .shape = tensor.shape(),
                    .strides = tensor.strides(),
                    .offset = tensor.offset(),
                    .storage = {}};
  switch (tensor.storage_case()) {
    case v1::Tensor::kPayload:
      given.storage = PayloadStorage{tensor.payload()};
      break;
    case v1::Tensor::kInvocationOutput:
      given.storage = OutputStorage{tensor.invocation_output().invocation(),
                                    tensor.invocation_output().output()};
      break;
    case v1::Tensor::kResidentTensor:
      given.storage = ResidentStorage{tensor.resident_tensor()};
      break;
    case v1::Tensor::kSharedMemory:
      given.storage = Translate(tensor.shared_memory());
      break;
    case v1::Tensor::kLiteral:
      given.storage = LiteralStorage{tensor.literal()};
      break;
    case v1::Tensor::kProgramInput:
      given.storage = InputStorage{tensor.program_input()};
      break;
    // Or a storage of a newer release, which this one cannot know.
    case v1::Tensor::STORAGE_NOT_SET:
      break;
  }
  return given;
}

catalog::GivenAttribute Translate(const v1::NamedAttribute& attribute) {
  return {.name = attribute.name(), .value = &attribute.value()};
}

void Translate(const v1::Invocation& invocation, GivenInvocation* to) {
  to->operator_name = invocation.operator_();
  to->inputs.reserve(static_cast<size_t>(invocation.inputs_size()));
  for (const v1::NamedTensor& input : invocation.inputs()) {
    GivenInput& given = to->inputs.emplace_back();
    given.name = input.name();
    given.has_tensor = input.has_tensor();
    given.has_list = input.has_list();
    if (given.has_tensor) given.tensors.push_back(Translate(input.tensor()));
    for (const v1::Tensor& tensor : input.list().tensors()) {
      given.tensors.push_back(Translate(tensor));
    }
  }
  for (const v1::NamedAttribute& attribute : invocation.attributes()) {
    to->attributes.push_back(Translate(attribute));
  }
  for (const v1::OutputRequest& output : invocation.outputs()) {
    to->outputs.push_back({.name = output.name(), .dtype = output.dtype()});
  }
}

GivenResult Translate(const v1::WantedResult& result) {
  GivenResult given{.invocation = result.invocation(), .output = result.output()};
  if (result.has_shared_memory()) given.range = Translate(result.shared_memory());
  if (result.has_keep()) {
    const google::protobuf::Duration& lease = result.keep().lease();
    given.lease = absl::Seconds(lease.seconds()) + absl::Nanoseconds(lease.nanos());
  }
  if (result.has_replace()) {
    const v1::ReplaceTensor& replace = result.replace();
    GivenReplacement& replaced = given.replaced.emplace();
    replaced.handle = replace.handle();
    if (replace.has_program_input()) replaced.input = replace.program_input();
    if (replace.has_version()) replaced.version = replace.version();
  }
  return given;
}

Priority Translate(v1::Priority priority) {
  switch (priority) {
    case v1::PRIORITY_HIGH:
      return Priority::kHigh;
    case v1::PRIORITY_LOW:
      return Priority::kLow;
    default:
      return Priority::kNormal;
  }
}

absl::Status CheckTemplate(const v1::ExecuteRequest& program) {
  // Fields that belong to a call would be ignored in a program, so they are refused.
  absl::string_view field;
  if (program.want_receipt()) field = "program.want_receipt";
  if (!program.idempotency_key().empty()) field = "program.idempotency_key";
  if (program.has_identity()) field = "program.identity";
  if (program.priority() != v1::PRIORITY_UNSPECIFIED) field = "program.priority";
  if (program.has_prepared()) field = "program.prepared";
  if (!program.payloads().empty()) field = "program.payloads";
  if (field.empty()) return absl::OkStatus();
  return InvalidCall("", field, "belongs to the calls of a prepared program");
}

absl::StatusOr<std::vector<ProgramInput>> TranslateInputs(const v1::PrepareRequest& message) {
  std::vector<ProgramInput> inputs;
  for (const v1::ProgramInput& given : message.inputs()) {
    ProgramInput& input = inputs.emplace_back();
    input.spec.dtype = given.dtype();
    input.spec.shape.assign(given.shape().begin(), given.shape().end());
    const auto at = absl::StrCat("inputs[", inputs.size() - 1, "]");
    if (FindDtype(input.spec.dtype) == nullptr) {
      return InvalidCall(
          "", at, absl::StrCat("dtype ", static_cast<int>(given.dtype()), " is no element type"));
    }
    if (absl::Status status = CheckShape(input.spec.dtype, input.spec.shape); !status.ok()) {
      return InvalidCall("", at, status.message());
    }
    switch (given.kind()) {
      // Most inputs are payloads, so that need not be said.
      case v1::ProgramInput::KIND_UNSPECIFIED:
      case v1::ProgramInput::KIND_PAYLOAD:
        input.kind = ProgramInput::kPayload;
        break;
      case v1::ProgramInput::KIND_RESIDENT:
        input.kind = ProgramInput::kResident;
        break;
      case v1::ProgramInput::KIND_SHARED_MEMORY:
        input.kind = ProgramInput::kSharedMemory;
        break;
      default:
        return InvalidCall("", at,
                           absl::StrCat("kind ", static_cast<int>(given.kind()),
                                        " is none of PAYLOAD, RESIDENT and SHARED_MEMORY"));
    }
  }
  return inputs;
}

}  // namespace

ProgramRequest TranslateProgram(const v1::ExecuteRequest& message) {
  ProgramRequest program;
  program.invocations.resize(static_cast<size_t>(message.invocations_size()));
  for (int i = 0; i < message.invocations_size(); ++i) {
    Translate(message.invocations(i), &program.invocations[static_cast<size_t>(i)]);
  }
  for (const v1::WantedResult& result : message.results()) {
    program.results.push_back(Translate(result));
  }
  program.donated.assign(message.donated().begin(), message.donated().end());
  program.donated_inputs = message.donated_inputs();
  return program;
}

PreparedRequest TranslateCall(const v1::PreparedCall& message) {
  PreparedRequest given;
  given.program = message.program();
  given.residents.assign(message.residents().begin(), message.residents().end());
  for (const v1::SharedMemoryRange& range : message.ranges())
    given.ranges.push_back(Translate(range));
  for (const v1::ChangedAttribute& change : message.attributes()) {
    given.attributes.push_back({change.invocation(), Translate(change.attribute())});
  }
  for (const v1::ExpectedVersion& expected : message.versions()) {
    given.versions.push_back({expected.resident(), expected.version()});
  }
  return given;
}

GivenRequest TranslateRequest(const v1::ExecuteRequest& message) {
  GivenRequest given;
  given.program = TranslateProgram(message);
  if (message.has_prepared()) given.prepared = TranslateCall(message.prepared());
  given.idempotency_key = message.idempotency_key();
  // Written anew rather than as it came: a client may order and encode the same fields otherwise.
  if (!given.idempotency_key.empty()) given.fields = message.SerializeAsString();
  if (message.has_identity()) {
    const v1::RequestIdentity& identity = message.identity();
    given.identity = {.client = identity.client(),
                      .number = identity.number(),
                      .answered_below = identity.answered_below()};
  }
  given.priority = Translate(message.priority());
  return given;
}

absl::StatusOr<PreparedProgram> MakePrepared(const v1::PrepareRequest& message,
                                             const OperatorTable& operators,
                                             const ProgramLimits& limits,
                                             ResidentLookup find_resident) {
  OPSERVE_RETURN_IF_ERROR(CheckTemplate(message.program()));
  OPSERVE_ASSIGN_OR_RETURN(const std::vector<ProgramInput> inputs, TranslateInputs(message));
  return PreparedProgram::Make(TranslateProgram(message.program()), inputs, operators, limits,
                               find_resident);
}

std::string TemplateBytes(const v1::PrepareRequest& message) {
  v1::PrepareRequest kept = message;
  kept.clear_lease();
  return kept.SerializeAsString();
}

}  // namespace opserve::server
