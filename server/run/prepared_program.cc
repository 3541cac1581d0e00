#include "server/run/prepared_program.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "ops/catalog/attributes.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/program/host_account.h"
#include "server/program/host_bytes.h"
#include "server/run/captured_runs.h"
#include "server/run/plan_cache.h"

namespace opserve::server {
namespace {

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  return InvalidCall("", field, problem);
}

// A range of shared memory belongs to one call, and a call names ranges for inputs only.
absl::Status CheckTemplate(const ProgramRequest& program) {
  for (const GivenResult& result : program.results) {
    if (result.range) {
      return InvalidField("program.results",
                          "a result of a prepared program cannot go to shared memory");
    }
    if (result.replaced && result.replaced->version) {
      return InvalidField("program.results",
                          "the tensor has another version in each call: name it there");
    }
  }
  return absl::OkStatus();
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

absl::StatusOr<PreparedProgram> PreparedProgram::Make(const ProgramRequest& request,
                                                      absl::Span<const ProgramInput> inputs,
                                                      const OperatorTable& operators,
                                                      const ProgramLimits& limits,
                                                      ResidentLookup find_resident) {
  // The template is bound as any program, with placeholders for the inputs; calls share all that it
  // finds out.
  OPSERVE_RETURN_IF_ERROR(CheckTemplate(request));
  OPSERVE_ASSIGN_OR_RETURN(ProgramCall bound,
                           BindTemplate(request, inputs, operators, limits, find_resident));
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

void PreparedProgram::KeepRequest(std::string request) {
  request_ = std::move(request);
  host_bytes_ += HeapBytes(request_);
}

std::vector<PreparedProgram::NamedResident> PreparedProgram::NamedResidents() const {
  std::vector<NamedResident> named;
  for (const Resident& resident : residents_) {
    if (!resident.handle.empty()) named.push_back({resident.handle, resident.spec});
  }
  return named;
}

absl::StatusOr<ProgramCall> PreparedProgram::Bind(const PreparedRequest& call,
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

absl::Status PreparedProgram::BindResidents(const PreparedRequest& call,
                                            ResidentLookup find_resident,
                                            ProgramCall* bound) const {
  // The usual case of programs that keep no state.
  if (residents_.empty() && call.residents.empty() && call.versions.empty()) {
    return absl::OkStatus();
  }
  // Tensors of the call come first in residents_, then those that the template names
  // (Binder::PlaceInputs); `next` counts the former.
  absl::flat_hash_map<const ResidentTensor*, size_t> seen;
  size_t next = 0;
  absl::InlinedVector<BoundResident*, 64> given;  // by position in the call
  bound->residents.reserve(residents_.size());    // so that they stay where they are
  for (size_t i = 0; i < residents_.size(); ++i) {
    const Resident& resident = residents_[i];
    const bool is_input = resident.handle.empty();
    if (is_input && next == call.residents.size()) break;  // counted below
    const absl::string_view handle = is_input ? call.residents[next++] : resident.handle;
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
    bound->residents.push_back({.tensor = std::move(tensor), .handle = std::string(handle)});
    if (is_input) given.push_back(&bound->residents.back());
  }
  size_t wanted = 0;
  for (const Resident& resident : residents_) wanted += resident.handle.empty();
  OPSERVE_RETURN_IF_ERROR(CheckCount("residents", call.residents.size(), wanted));
  return BindVersions(call, given);
}

absl::Status PreparedProgram::BindVersions(const PreparedRequest& call,
                                           absl::Span<BoundResident* const> given) {
  for (const PreparedRequest::ExpectedVersion& expected : call.versions) {
    if (expected.resident >= given.size()) {
      return InvalidField("versions", absl::StrCat("resident ", expected.resident,
                                                   " of a call with ", given.size()));
    }
    // By the position in the call, not in the program.
    std::optional<uint64_t>& version = given[expected.resident]->version;
    if (version) {
      return InvalidField("versions",
                          absl::StrCat("resident ", expected.resident, " is named twice"));
    }
    version = expected.version;
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::BindWindows(const PreparedRequest& call, RegionLookup find_region,
                                          ProgramCall* bound) const {
  OPSERVE_RETURN_IF_ERROR(CheckCount("ranges", call.ranges.size(), program_->windows.size()));
  for (size_t i = 0; i < program_->windows.size(); ++i) {
    const MemoryRange& range = call.ranges[i];
    if (range.size != program_->windows[i].bytes) {
      return MakeError(Reason::kShmInvalid,
                       absl::StrCat("the range of shared memory has ", range.size,
                                    " bytes; the tensor takes ", program_->windows[i].bytes));
    }
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, find_region(range));
    OPSERVE_ASSIGN_OR_RETURN(SharedWindow window,
                             WindowIn(std::move(region), range, window_dtypes_[i]));
    bound->windows.push_back(std::move(window));
  }
  return absl::OkStatus();
}

absl::Status PreparedProgram::BindAttributes(const PreparedRequest& call,
                                             ProgramCall* bound) const {
  for (const PreparedRequest::ChangedAttribute& change : call.attributes) {
    const uint32_t index = change.invocation;
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
    if (absl::Status status = catalog::ChangeAttribute(*invocation.op->descriptor, change.attribute,
                                                       &invocation.attributes);
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
