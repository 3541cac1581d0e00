#include "server/execution/prepared_program.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "ops/catalog/attributes.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/execution/captured_runs.h"
#include "server/execution/host_account.h"
#include "server/execution/host_bytes.h"
#include "server/execution/plan_cache.h"

namespace opserve::server {
namespace {

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  return InvalidCall("", field, problem);
}

// Fields that belong to a call would be ignored in a program, so they are refused.
absl::Status CheckTemplate(const v1::ExecuteRequest& program) {
  absl::string_view field;
  if (program.want_receipt()) field = "program.want_receipt";
  if (!program.idempotency_key().empty()) field = "program.idempotency_key";
  if (program.has_identity()) field = "program.identity";
  if (program.priority() != v1::PRIORITY_UNSPECIFIED) field = "program.priority";
  if (program.has_prepared()) field = "program.prepared";
  if (!program.payloads().empty()) field = "program.payloads";
  if (!field.empty()) return InvalidField(field, "belongs to the calls of a prepared program");
  for (const v1::WantedResult& result : program.results()) {
    // A range of shared memory belongs to one call, and a call names ranges for inputs only.
    if (result.has_shared_memory()) {
      return InvalidField("program.results",
                          "a result of a prepared program cannot go to shared memory");
    }
    if (result.replace().has_version()) {
      return InvalidField("program.results",
                          "the tensor has another version in each call: name it there");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProgramInput>> ReadInputs(const v1::PrepareRequest& request) {
  std::vector<ProgramInput> inputs;
  for (const v1::ProgramInput& given : request.inputs()) {
    ProgramInput& input = inputs.emplace_back();
    input.spec.dtype = given.dtype();
    input.spec.shape.assign(given.shape().begin(), given.shape().end());
    const auto at = absl::StrCat("inputs[", inputs.size() - 1, "]");
    if (FindDtype(input.spec.dtype) == nullptr) {
      return InvalidField(
          at, absl::StrCat("dtype ", static_cast<int>(given.dtype()), " is no element type"));
    }
    if (absl::Status status = CheckShape(input.spec.dtype, input.spec.shape); !status.ok()) {
      return InvalidField(at, status.message());
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
        return InvalidField(at, absl::StrCat("kind ", static_cast<int>(given.kind()),
                                             " is none of PAYLOAD, RESIDENT and SHARED_MEMORY"));
    }
  }
  return inputs;
}

absl::Status CheckCount(absl::string_view field, size_t given, size_t wanted) {
  if (given == wanted) return absl::OkStatus();
  return InvalidField(field, absl::StrCat(given, " given; the prepared program takes ", wanted));
}

uint64_t HostBytes(const Program& program) {
  uint64_t bytes = sizeof(Program) + HeapBytes(program.invocations) + HeapBytes(program.results) +
                   HeapBytes(program.residents) + HeapBytes(program.kept) +
                   HeapBytes(program.windows) + HeapBytes(program.literals) +
                   HeapBytes(program.operators) + HeapBytes(program.payload_sizes) +
                   HeapBytes(program.copies);
  for (const BoundInvocation& invocation : program.invocations) bytes += HeapBytes(invocation);
  for (const ContiguousCopy& copy : program.copies) bytes += HeapBytes(copy.call);
  // The plan without workspaces and, after the first run, the one with them, and their sizes.
  return bytes + 2 * HeapBytes(program.memory_plan) + sizeof(WorkspacePlan) + sizeof(MemoryPlan) +
         sizeof(HostAccount) + HeapPiece(program.invocations.size() * sizeof(uint64_t));
}

// The invocation with other attributes, if its outputs are still those that the program expects.
absl::Status CheckSameOutputs(const BoundInvocation& invocation) {
  const catalog::OperatorDescriptor& descriptor = *invocation.op->descriptor;
  absl::InlinedVector<bool, 4> wanted;
  absl::InlinedVector<std::optional<aclDataType>, 4> asked;
  uint32_t begin = 0;
  for (size_t i = 0; i < descriptor.outputs.size(); begin = invocation.output_ends[i++]) {
    const bool is_there = begin < invocation.output_ends[i];
    // A list that was wanted may be empty.
    wanted.push_back(is_there || descriptor.outputs[i].is_list);
    // Where a client may choose the dtype, the template's choice stands.
    asked.push_back(is_there && !descriptor.outputs[i].dtypes.empty()
                        ? std::optional(catalog::ToAcl(invocation.outputs[begin].spec.dtype))
                        : std::nullopt);
  }
  BoundInvocation judged = invocation;
  OPSERVE_RETURN_IF_ERROR(JudgeCall(wanted, asked, &judged));
  // The limits on work were checked for the template, so a call may not need more.
  bool is_same = judged.outputs.size() == invocation.outputs.size() &&
                 judged.work <= invocation.work && judged.charge <= invocation.charge;
  for (size_t i = 0; is_same && i < judged.outputs.size(); ++i) {
    is_same = judged.outputs[i].spec == invocation.outputs[i].spec;
  }
  if (is_same) return absl::OkStatus();
  return InvalidCall(descriptor.name, "attributes",
                     "change the shape, the dtype or the work; prepare another program");
}

}  // namespace

absl::StatusOr<PreparedProgram> PreparedProgram::Make(const v1::PrepareRequest& request,
                                                      const OperatorTable& operators,
                                                      const ProgramLimits& limits,
                                                      ResidentLookup find_resident) {
  // The template is bound as any program, with placeholders for the inputs; calls share all that it
  // finds out.
  OPSERVE_RETURN_IF_ERROR(CheckTemplate(request.program()));
  OPSERVE_ASSIGN_OR_RETURN(const std::vector<ProgramInput> inputs, ReadInputs(request));
  OPSERVE_ASSIGN_OR_RETURN(
      ProgramCall bound, BindTemplate(request.program(), inputs, operators, limits, find_resident));
  PreparedProgram prepared;
  for (const BoundResident& resident : bound.residents) {
    // Tensors that the template names are looked up for each call, since they may have gone.
    prepared.residents_.push_back({resident.tensor->spec, resident.handle});
  }
  for (const ProgramInput& input : inputs) {
    if (input.kind == ProgramInput::kSharedMemory) {
      prepared.window_dtypes_.push_back(input.spec.dtype);
    }
  }
  Program program = *bound.program;
  program.is_capturable = IsCapturable(program);
  program.host_account = std::make_shared<HostAccount>();
  prepared.program_ = WithPlans(std::move(program));
  prepared.host_bytes_ = sizeof(PreparedProgram) + HostBytes(*prepared.program_) +
                         HeapBytes(prepared.residents_) + HeapBytes(prepared.window_dtypes_);
  for (const Resident& resident : prepared.residents_) {
    prepared.host_bytes_ += HeapBytes(resident.spec.shape) + HeapBytes(resident.handle);
  }
  return prepared;
}

void PreparedProgram::KeepRequest(const v1::PrepareRequest& request) {
  v1::PrepareRequest kept = request;
  kept.clear_lease();  // each handle has its own
  request_ = kept.SerializeAsString();
  host_bytes_ += HeapBytes(request_);
}

std::vector<PreparedProgram::NamedResident> PreparedProgram::NamedResidents() const {
  std::vector<NamedResident> named;
  for (const Resident& resident : residents_) {
    if (!resident.handle.empty()) named.push_back({resident.handle, resident.spec});
  }
  return named;
}

absl::StatusOr<ProgramCall> PreparedProgram::Bind(const v1::PreparedCall& call,
                                                  absl::Span<const uint64_t> payload_bytes,
                                                  ResidentLookup find_resident,
                                                  RegionLookup find_region) const {
  // Exactly the template's sizes: its memory plan is made for them.
  OPSERVE_RETURN_IF_ERROR(
      CheckCount("payloads", payload_bytes.size(), program_->payload_sizes.size()));
  for (size_t i = 0; i < payload_bytes.size(); ++i) {
    if (payload_bytes[i] == program_->payload_sizes[i]) continue;
    return InvalidField("payloads", absl::StrCat("payload ", i, " has ", payload_bytes[i],
                                                 " bytes; the prepared program takes ",
                                                 program_->payload_sizes[i]));
  }
  ProgramCall bound;
  bound.program = program_;
  bound.kept.resize(program_->kept.size());
  OPSERVE_RETURN_IF_ERROR(BindResidents(call, find_resident, &bound));
  OPSERVE_RETURN_IF_ERROR(BindWindows(call, find_region, &bound));
  OPSERVE_RETURN_IF_ERROR(BindAttributes(call, &bound));
  return bound;
}

absl::Status PreparedProgram::BindResidents(const v1::PreparedCall& call,
                                            ResidentLookup find_resident,
                                            ProgramCall* bound) const {
  // The usual case of programs that keep no state.
  if (residents_.empty() && call.residents().empty() && call.versions().empty()) {
    return absl::OkStatus();
  }
  // Tensors of the call come first in residents_, then those that the template names
  // (Binder::PlaceInputs); `next` counts the former.
  absl::flat_hash_map<const ResidentTensor*, size_t> seen;
  int next = 0;
  absl::InlinedVector<BoundResident*, 64> given;  // by position in the call
  bound->residents.reserve(residents_.size());    // so that they stay where they are
  for (size_t i = 0; i < residents_.size(); ++i) {
    const Resident& resident = residents_[i];
    const bool is_input = resident.handle.empty();
    if (is_input && next == call.residents_size()) break;  // counted below
    const std::string& handle = is_input ? call.residents(next++) : resident.handle;
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<ResidentTensor> tensor, find_resident(handle));
    // A tensor may be looked at in another shape, but its handle keeps its own.
    const bool is_right =
        tensor->spec.dtype == resident.spec.dtype &&
        (program_->residents[i].is_replaced
             ? tensor->spec.shape == resident.spec.shape
             : NumElements(tensor->spec.shape) == NumElements(resident.spec.shape));
    if (!is_right) {
      return InvalidField(
          "residents",
          // The index among those that come with calls; a tensor of the template keeps its spec as
          // long as it has its handle.
          absl::StrCat("resident tensor ", next - 1, " is ", DtypeName(tensor->spec.dtype), " ",
                       ShapeText(tensor->spec.shape), "; the prepared program takes ",
                       DtypeName(resident.spec.dtype), " ", ShapeText(resident.spec.shape)));
    }
    // Twice the same tensor would be read while it is worked in.
    const auto [first, is_new] = seen.try_emplace(tensor.get(), i);
    if (!is_new &&
        (program_->residents[i].is_alone() || program_->residents[first->second].is_alone())) {
      return InvalidField("residents",
                          "a tensor that the program replaces or gives up is given twice");
    }
    bound->residents.push_back({.tensor = std::move(tensor), .handle = handle});
    if (is_input) given.push_back(&bound->residents.back());
  }
  size_t wanted = 0;
  for (const Resident& resident : residents_) wanted += resident.handle.empty();
  OPSERVE_RETURN_IF_ERROR(
      CheckCount("residents", static_cast<size_t>(call.residents_size()), wanted));
  return BindVersions(call, given);
}

absl::Status PreparedProgram::BindVersions(const v1::PreparedCall& call,
                                           absl::Span<BoundResident* const> given) {
  for (const v1::ExpectedVersion& expected : call.versions()) {
    if (expected.resident() >= given.size()) {
      return InvalidField("versions", absl::StrCat("resident ", expected.resident(),
                                                   " of a call with ", given.size()));
    }
    // By the position in the call, not in the program.
    std::optional<uint64_t>& version = given[expected.resident()]->version;
    if (version) {
      return InvalidField("versions",
                          absl::StrCat("resident ", expected.resident(), " is named twice"));
    }
    version = expected.version();
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::BindWindows(const v1::PreparedCall& call, RegionLookup find_region,
                                          ProgramCall* bound) const {
  OPSERVE_RETURN_IF_ERROR(
      CheckCount("ranges", static_cast<size_t>(call.ranges_size()), program_->windows.size()));
  for (size_t i = 0; i < program_->windows.size(); ++i) {
    const v1::SharedMemoryRange& range = call.ranges(static_cast<int>(i));
    if (range.size() != program_->windows[i].bytes) {
      return MakeError(Reason::kShmInvalid,
                       absl::StrCat("the range of shared memory has ", range.size(),
                                    " bytes; the tensor takes ", program_->windows[i].bytes));
    }
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, find_region(range));
    OPSERVE_ASSIGN_OR_RETURN(SharedWindow window,
                             WindowIn(std::move(region), range, window_dtypes_[i]));
    bound->windows.push_back(std::move(window));
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::BindAttributes(const v1::PreparedCall& call,
                                             ProgramCall* bound) const {
  for (const v1::ChangedAttribute& change : call.attributes()) {
    const uint32_t index = change.invocation();
    if (index >= program_->invocations.size()) {
      return InvalidField("attributes", absl::StrCat("invocation ", index, " of a program with ",
                                                     program_->invocations.size()));
    }
    // Copied for its first change; further changes of the same invocation meet in the copy.
    const auto [changed, is_new] = bound->changed.try_emplace(index);
    BoundInvocation& invocation = changed->second;
    if (is_new) {
      invocation = program_->invocations[index];
      // The key is that of the template's plan.
      invocation.plan_key.clear();
    }
    if (absl::Status status = catalog::ChangeAttribute(*invocation.op->descriptor,
                                                       change.attribute(), &invocation.attributes);
        !status.ok()) {
      return AtPlace({.invocation = index}, std::move(status));
    }
  }
  // Judged when all changes are made, as attributes of an invocation may depend on each other.
  for (const auto& [index, invocation] : bound->changed) {
    if (absl::Status status = CheckSameOutputs(invocation); !status.ok()) {
      return AtPlace({.invocation = index}, std::move(status));
    }
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
