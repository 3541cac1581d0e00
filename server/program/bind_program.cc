#include "server/program/bind_program.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/memory/pinned_pool.h"
#include "server/program/contiguous_copies.h"
#include "server/program/named_arguments.h"
#include "server/program/tensor_view.h"
#include "server/shared_memory/file_parts.h"

namespace opserve::server {
namespace {

// Puts the argument in front of an error about it. Errors without a reason are mistakes in the
// call.
absl::Status AtArgument(absl::string_view operator_name, absl::string_view argument,
                        const absl::Status& status) {
  if (!ErrorDetailOf(status)) return InvalidCall(operator_name, argument, status.message());
  return AtPlace(
      {.operator_name = operator_name, .argument = argument},
      WithMessage(absl::StrCat(operator_name, ": ", argument, ": ", status.message()), status));
}

absl::Status InvalidRange(absl::string_view problem) {
  return MakeError(Reason::kShmInvalid, problem);
}

absl::Status CheckAlignment(const SharedRegion& region, const MemoryRange& range, Dtype dtype) {
  if (region.may_shrink()) return absl::OkStatus();  // copied, as Open Inference has no such rule
  const auto element_bytes = static_cast<uint64_t>(DtypeBytes(dtype));
  if (range.offset % element_bytes == 0) return absl::OkStatus();
  return InvalidRange(absl::StrCat("the range of shared memory begins at ", range.offset,
                                   ", must be a multiple of ", element_bytes, " for ",
                                   DtypeName(dtype)));
}

// Binds the invocations of one request in order.
class Binder {
 public:
  Binder(const ProgramRequest& request, absl::Span<const uint64_t> payload_bytes,
         absl::Span<const std::shared_ptr<ResidentTensor>> apart,
         absl::Span<const ProgramInput> inputs, const OperatorTable& operators,
         const ProgramLimits& limits, ResidentLookup find_resident, RegionLookup find_region)
      : request_(request),
        payload_bytes_(payload_bytes),
        payload_is_used_(payload_bytes.size(), false),
        apart_(apart),
        inputs_(inputs),
        input_is_used_(inputs.size(), false),
        operators_(operators),
        limits_(limits),
        find_resident_(find_resident),
        find_region_(find_region) {}

  // The order matters: payloads are counted before invocations refer to them, results refer to
  // invocations, and the memory is known only when every tensor has its last reader.
  absl::StatusOr<ProgramCall> Bind() {
    if (request_.invocations.empty()) return InvalidCall("", "invocations", "there is none");
    if (request_.invocations.size() > limits_.max_invocations) {
      return TooLarge("", "invocations",
                      absl::StrCat(request_.invocations.size(), " given, at most ",
                                   limits_.max_invocations, " allowed"));
    }
    for (size_t i = 0; i < payload_bytes_.size(); ++i) {
      OPSERVE_RETURN_IF_ERROR(CountInput(absl::StrCat("payload ", i), payload_bytes_[i]));
    }
    OPSERVE_RETURN_IF_ERROR(PlaceInputs());
    program_.invocations.reserve(request_.invocations.size());
    for (const GivenInvocation& invocation : request_.invocations) {
      if (absl::Status status = BindInvocation(invocation); !status.ok()) {
        return AtPlace({.invocation = program_.invocations.size()}, std::move(status));
      }
    }
    // A payload that no tensor uses is a mistake in the client's numbering, and would be copied to
    // the device in vain.
    for (size_t i = 0; i < payload_is_used_.size(); ++i) {
      if (!payload_is_used_[i]) {
        return InvalidCall("", "payloads", absl::StrCat("payload ", i, " belongs to no tensor"));
      }
    }
    OPSERVE_RETURN_IF_ERROR(BindResults());
    OPSERVE_RETURN_IF_ERROR(BindDonated());
    // After results and donations, which may use inputs as well.
    for (size_t i = 0; i < input_is_used_.size(); ++i) {
      if (!input_is_used_[i]) {
        return InvalidCall("", "inputs",
                           absl::StrCat("input ", i, " of the program is used by no invocation"));
      }
    }
    FindTensorsWorkedIn();
    // Payloads that lie apart have no place in the run's memory.
    program_.ComputeFacts(apart_.empty() ? payload_bytes_ : absl::Span<const uint64_t>());
    call_.apart.assign(apart_.begin(), apart_.end());
    // Only now is it known how long each tensor lives.
    OPSERVE_RETURN_IF_ERROR(CheckMemory(limits_, program_));
    call_.kept.resize(program_.kept.size());
    call_.program = std::make_shared<const Program>(std::move(program_));
    return std::move(call_);
  }

 private:
  // Assigns a place to each input that comes with the calls.
  absl::Status PlaceInputs() {
    uint32_t payloads = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorSpec& spec = inputs_[i].spec;
      const std::string name = absl::StrCat("input ", i, " of the program");
      // Bind has counted it with the payloads.
      if (inputs_[i].kind == ProgramInput::kPayload) {
        input_places_.push_back(payloads++);
        continue;
      }
      OPSERVE_RETURN_IF_ERROR(CountInput(name, static_cast<uint64_t>(NumBytes(spec))));
      if (inputs_[i].kind == ProgramInput::kResident) {
        // The template has a tensor of the right spec; each call brings its own.
        auto placeholder = std::make_shared<ResidentTensor>();
        placeholder->spec = spec;
        input_places_.push_back(AddResident(std::move(placeholder), ""));
      } else {
        input_places_.push_back(static_cast<uint32_t>(program_.windows.size()));
        program_.windows.push_back({.bytes = static_cast<uint64_t>(NumBytes(spec))});
        call_.windows.emplace_back();
      }
    }
    return absl::OkStatus();
  }

  uint32_t AddResident(std::shared_ptr<ResidentTensor> tensor, absl::string_view handle) {
    program_.residents.emplace_back();
    call_.residents.push_back({.tensor = std::move(tensor), .handle = std::string(handle)});
    last_uses_.emplace_back();
    return static_cast<uint32_t>(program_.residents.size() - 1);
  }

  const TensorSpec& SpecOfResident(uint32_t resident) const {
    return call_.residents[resident].tensor->spec;
  }

  // The resident tensor that an input of the program stands for.
  absl::StatusOr<uint32_t> ResidentInput(uint32_t input) {
    OPSERVE_RETURN_IF_ERROR(CheckInput(input));
    if (inputs_[input].kind != ProgramInput::kResident) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", input, " of the program is no resident tensor"));
    }
    input_is_used_[input] = true;
    return input_places_[input];
  }

  absl::Status CheckInput(uint32_t input) const {
    if (input < inputs_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("input ", input,
                     inputs_.empty() ? " of a request that is no prepared program"
                                     : absl::StrCat(" of a program with ", inputs_.size())));
  }

  absl::Status CountInput(absl::string_view argument, uint64_t bytes) {
    return server::CountInput(limits_, argument, bytes, &program_);
  }

  absl::Status BindInvocation(const GivenInvocation& invocation) {
    BoundInvocation bound;
    bound.op = operators_.Find(invocation.operator_name);
    if (bound.op == nullptr) {
      return InvalidCall(invocation.operator_name, "",
                         absl::StrCat("no such operator; ListOperators lists them"));
    }
    const catalog::OperatorDescriptor& descriptor = *bound.op->descriptor;
    // Attributes and inputs come first: the operator's rules derive the outputs from them.
    OPSERVE_RETURN_IF_ERROR(bound.op->CheckAvailable());
    OPSERVE_ASSIGN_OR_RETURN(bound.attributes,
                             catalog::ResolveAttributes(descriptor, invocation.attributes));
    OPSERVE_RETURN_IF_ERROR(BindInputs(invocation, descriptor, &bound));
    absl::InlinedVector<bool, 4> wanted;
    absl::InlinedVector<std::optional<aclDataType>, 4> asked;
    OPSERVE_RETURN_IF_ERROR(ReadOutputRequests(invocation, descriptor, &wanted, &asked));
    OPSERVE_RETURN_IF_ERROR(JudgeCall(wanted, asked, &bound));
    for (size_t i = 0; i < bound.outputs.size(); ++i) {
      const TensorSpec& spec = bound.outputs[i].spec;
      const std::string name = bound.OutputName(static_cast<uint32_t>(i));
      // The rules compute extents of outputs from a client's numbers, so a shape may be beyond any
      // limit here, although every input is within its own.
      if (absl::Status status = CheckShape(spec.dtype, spec.shape); !status.ok()) {
        return TooLarge(descriptor.name, name, status.message());
      }
      const auto bytes = static_cast<uint64_t>(NumBytes(spec));
      OPSERVE_RETURN_IF_ERROR(CountOutput(limits_, descriptor.name, name, bytes, &program_));
    }
    OPSERVE_RETURN_IF_ERROR(CountWork(limits_, descriptor, bound, &program_));
    if (!program_.invocations.empty()) {
      const BoundInvocation& before = program_.invocations.back();
      bound.first_output = before.first_output + static_cast<uint32_t>(before.outputs.size());
    }
    program_.invocations.push_back(std::move(bound));
    return absl::OkStatus();
  }

  absl::Status BindInputs(const GivenInvocation& invocation,
                          const catalog::OperatorDescriptor& descriptor, BoundInvocation* bound) {
    absl::InlinedVector<const GivenInput*, 3> given;
    OPSERVE_RETURN_IF_ERROR(OrderInputs(invocation, descriptor, &given));
    for (size_t i = 0; i < given.size(); ++i) {
      const catalog::InputDescriptor& input = descriptor.inputs[i];
      if (given[i] != nullptr) {
        OPSERVE_RETURN_IF_ERROR(BindInput(*given[i], descriptor, input, bound));
      } else if (!input.is_optional) {
        return InvalidCall(descriptor.name, input.name, "missing", kAclnnParamNullptr);
      }
      // Also of an input that is left out: its range is empty.
      bound->input_ends.push_back(static_cast<uint32_t>(bound->inputs.size()));
    }
    return absl::OkStatus();
  }

  // The tensor of an input, or those of a list.
  absl::Status BindInput(const GivenInput& given, const catalog::OperatorDescriptor& descriptor,
                         const catalog::InputDescriptor& input, BoundInvocation* bound) {
    if (!input.is_list) {
      if (given.has_list) {
        return InvalidCall(descriptor.name, input.name, "is a list, must be one tensor");
      }
      // Without a tensor it is one without a storage.
      if (!given.has_tensor) return BindElement({}, descriptor, input, input.name, bound);
      return BindElement(given.tensors.front(), descriptor, input, input.name, bound);
    }
    if (given.has_tensor) {
      return InvalidCall(descriptor.name, input.name, "is one tensor, must be a list of them");
    }
    const auto& tensors = given.tensors;
    if (tensors.size() > catalog::kMaxListLength) {
      return TooLarge(descriptor.name, input.name,
                      absl::StrCat("has ", tensors.size(), " tensors, at most ",
                                   catalog::kMaxListLength, " allowed"));
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      OPSERVE_RETURN_IF_ERROR(
          BindElement(tensors[i], descriptor, input, absl::StrCat(input.name, ".", i), bound));
    }
    return absl::OkStatus();
  }

  absl::Status BindElement(const GivenTensor& tensor, const catalog::OperatorDescriptor& descriptor,
                           const catalog::InputDescriptor& input, absl::string_view name,
                           BoundInvocation* bound) {
    BoundInput element;
    if (absl::Status status = BindTensor(tensor, &element); !status.ok()) {
      return AtArgument(descriptor.name, name, status);
    }
    if (!Accepts(input.dtypes, element.spec.dtype)) {
      return InvalidCall(descriptor.name, name,
                         absl::StrCat("dtype ", DtypeName(element.spec.dtype), "; it may be ",
                                      DtypeList(input.dtypes)));
    }
    // Its copy is contiguous, so the view must be, too.
    if (input.output && element.strides != ContiguousStrides(element.spec.shape)) {
      return InvalidCall(descriptor.name, name,
                         "is changed in place, so its view must be contiguous");
    }
    if (input.is_contiguous && NeedsContiguousCopy(element)) {
      OPSERVE_RETURN_IF_ERROR(MakeContiguous(descriptor, name, &element));
    }
    bound->inputs.push_back(std::move(element));
    return absl::OkStatus();
  }

  // Lets a copy on the device take the place of `input`. It counts as an output: strides of 0 can
  // make it larger than all inputs.
  absl::Status MakeContiguous(const catalog::OperatorDescriptor& descriptor, absl::string_view name,
                              BoundInput* input) {
    const auto copy = AddContiguousCopy(operators_, input, &program_);
    if (!copy.ok()) return AtArgument(descriptor.name, name, copy.status());
    OPSERVE_RETURN_IF_ERROR(
        CountOutput(limits_, descriptor.name, name, (*copy)->bytes(), &program_));
    return CountWork(limits_, descriptor, (*copy)->call, &program_);
  }

  // Errors of the following do not name operator and argument: the caller does.
  absl::Status BindTensor(const GivenTensor& tensor, BoundInput* bound) {
    return std::visit([&](const auto& storage) { return BindStorage(storage, tensor, bound); },
                      tensor.storage);
  }

  static absl::Status BindStorage(std::monostate, const GivenTensor& /*tensor*/,
                                  BoundInput* /*bound*/) {
    return absl::InvalidArgumentError(
        "has no storage: set payload, invocation_output, resident_tensor, shared_memory, "
        "literal or program_input");
  }

  absl::Status BindStorage(const PayloadStorage& storage, const GivenTensor& tensor,
                           BoundInput* bound) {
    OPSERVE_RETURN_IF_ERROR(ReadView(tensor, bound));
    const uint32_t payload = storage.payload;
    bound->source = PayloadSource{payload};
    if (payload >= payload_bytes_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("payload ", payload, " of a message with ", payload_bytes_.size()));
    }
    payload_is_used_[payload] = true;
    return CheckStorage(absl::StrCat("payload ", payload), payload_bytes_[payload], tensor, *bound);
  }

  absl::Status BindStorage(const ResidentStorage& storage, const GivenTensor& tensor,
                           BoundInput* bound) {
    OPSERVE_ASSIGN_OR_RETURN(const uint32_t index, FindResident(storage.handle));
    return BindResidentAt(index, "resident tensor", tensor, bound);
  }

  absl::Status BindResidentAt(uint32_t index, absl::string_view kind, const GivenTensor& tensor,
                              BoundInput* bound) {
    bound->source = ResidentSource{index};
    const auto now = static_cast<uint32_t>(program_.invocations.size());
    LastUse& last = last_uses_[index];
    // Two inputs of one invocation may read the same tensor; FindTensorsWorkedIn must know, since
    // such an invocation cannot work in place.
    last.inputs = last.invocation == now ? last.inputs + 1 : 1;
    last.invocation = now;
    return ReadViewOf(SpecOfResident(index), kind, tensor, bound);
  }

  absl::Status BindStorage(const InputStorage& storage, const GivenTensor& tensor,
                           BoundInput* bound) {
    constexpr absl::string_view kKind = "program's input";
    const uint32_t number = storage.input;
    OPSERVE_RETURN_IF_ERROR(CheckInput(number));
    input_is_used_[number] = true;
    const uint32_t place = input_places_[number];
    switch (inputs_[number].kind) {
      case ProgramInput::kResident:
        return BindResidentAt(place, kKind, tensor, bound);
      case ProgramInput::kPayload:
        payload_is_used_[place] = true;
        bound->source = PayloadSource{place};
        break;
      case ProgramInput::kSharedMemory:
        bound->source = SharedSource{place};
        break;
    }
    return ReadViewOf(inputs_[number].spec, kKind, tensor, bound);
  }

  absl::Status BindStorage(const LiteralStorage& storage, const GivenTensor& tensor,
                           BoundInput* bound) {
    // For scalars and small tables: a literal is copied once more than a payload, and a prepared
    // program keeps it.
    constexpr size_t kMostBytes = 4096;
    constexpr size_t kAlignment = 64;
    OPSERVE_RETURN_IF_ERROR(ReadView(tensor, bound));
    const absl::string_view bytes = storage.bytes;
    if (bytes.size() > kMostBytes) {
      return absl::InvalidArgumentError(absl::StrCat("the literal has ", bytes.size(),
                                                     " bytes, at most ", kMostBytes,
                                                     " allowed; send more "
                                                     "as a payload"));
    }
    OPSERVE_RETURN_IF_ERROR(CheckStorage("the literal", bytes.size(), tensor, *bound));
    std::string& literals = program_.literals;
    literals.resize((literals.size() + kAlignment - 1) / kAlignment * kAlignment);
    bound->source = LiteralSource{literals.size()};
    absl::StrAppend(&literals, bytes);
    return CountInput("literal", bytes.size());
  }

  // Whether a storage of `actual` bytes is right for the view of `tensor`.
  static absl::Status CheckStorage(absl::string_view storage, uint64_t actual,
                                   const GivenTensor& tensor, const BoundInput& bound) {
    const uint64_t needed = StorageBytes(bound);
    // A plain tensor fills its storage, so that a wrong shape is noticed. A view may use part of
    // it.
    if (IsPlain(tensor) ? actual == needed : actual >= needed) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        storage, " has ", actual, " bytes; ", DtypeName(bound.spec.dtype), " ",
        ShapeText(bound.spec.shape), " takes ", IsPlain(tensor) ? "" : "at least ", needed));
  }

  absl::Status BindStorage(const MemoryRange& range, const GivenTensor& tensor, BoundInput* bound) {
    OPSERVE_RETURN_IF_ERROR(ReadView(tensor, bound));
    OPSERVE_RETURN_IF_ERROR(CheckRangeSize(range, StorageBytes(*bound), IsPlain(tensor)));
    auto& windows = call_.windows;
    const auto [known, is_new] =
        window_of_range_.try_emplace(KeyOf(range), static_cast<uint32_t>(windows.size()));
    bound->source = SharedSource{known->second};
    // A range that is named again shares the window: its bytes count once. The other tensor may
    // have another dtype, so the alignment is checked again.
    if (!is_new) return CheckAlignment(*windows[known->second].region, range, bound->spec.dtype);
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, find_region_(range));
    OPSERVE_ASSIGN_OR_RETURN(SharedWindow window,
                             WindowIn(std::move(region), range, bound->spec.dtype));
    OPSERVE_RETURN_IF_ERROR(CountInput("shared memory", range.size));
    shared_inputs_.Add(window.region->PartOf(range.offset, range.size));
    program_.windows.push_back({.bytes = range.size});
    windows.push_back(std::move(window));
    return absl::OkStatus();
  }

  using RangeKey = std::tuple<absl::string_view, uint64_t, uint64_t, uint64_t>;
  // Equal for the same range; refers to the request.
  static RangeKey KeyOf(const MemoryRange& range) {
    return {range.connection, range.region, range.offset, range.size};
  }

  static absl::Status RangeTooSmall(const MemoryRange& range, uint64_t needed) {
    return MakeError(Reason::kShmInvalid, absl::StatusCode::kOutOfRange,
                     absl::StrCat("the shared memory for the result has ", range.size,
                                  " bytes; it should be at least ", needed, " bytes"));
  }

  static absl::Status CheckRangeSize(const MemoryRange& range, uint64_t needed, bool is_exact) {
    if (is_exact ? range.size == needed : range.size >= needed) return absl::OkStatus();
    return InvalidRange(absl::StrCat("the range of shared memory has ", range.size,
                                     " bytes; the tensor takes ", is_exact ? "" : "at least ",
                                     needed));
  }

  absl::StatusOr<uint32_t> FindResident(absl::string_view handle) {
    if (auto known = resident_of_handle_.find(handle); known != resident_of_handle_.end()) {
      return known->second;
    }
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<ResidentTensor> resident, find_resident_(handle));
    OPSERVE_RETURN_IF_ERROR(
        CountInput("resident tensor", static_cast<uint64_t>(NumBytes(resident->spec))));
    // A tensor that is named several times has one entry, and its bytes count once.
    const uint32_t index = AddResident(std::move(resident), handle);
    resident_of_handle_.emplace(handle, index);
    return index;
  }

  absl::Status BindStorage(const OutputStorage& storage, const GivenTensor& tensor,
                           BoundInput* bound) {
    OPSERVE_ASSIGN_OR_RETURN(const OutputRef source,
                             FindOutput(storage.invocation, storage.output));
    BoundOutput& produced = OutputOf(source);
    // Invocations are bound in order, so the last one to set this is the last reader.
    produced.last_reader = static_cast<uint32_t>(program_.invocations.size());
    bound->source = source;
    return ReadViewOf(produced.spec, "result", tensor, bound);
  }

  BoundOutput& OutputOf(const OutputRef& ref) {
    return program_.invocations[ref.invocation].outputs[ref.output];
  }

  // Resolves an output among the invocations bound so far.
  absl::StatusOr<OutputRef> FindOutput(uint32_t invocation, absl::string_view name) const {
    // References go backwards only. So the order of the invocations is an order of execution, and
    // no cycle can be written.
    if (invocation >= program_.invocations.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("output of invocation ", invocation, ", which is not before it"));
    }
    const BoundInvocation& producer = program_.invocations[invocation];
    // Most operators have one output, for which the client need not know a name.
    if (name.empty() && !producer.outputs.empty()) return OutputRef{invocation, 0};
    if (const std::optional<uint32_t> output = producer.FindOutput(name)) {
      return OutputRef{invocation, *output};
    }
    std::vector<std::string> names;
    for (uint32_t i = 0; i < producer.outputs.size(); ++i) names.push_back(producer.OutputName(i));
    return absl::InvalidArgumentError(absl::StrCat(producer.op->descriptor->name,
                                                   " has no output \"", name, "\" here; it has ",
                                                   absl::StrJoin(names, ", ")));
  }

  absl::Status BindResults() {
    for (const GivenResult& result : request_.results) {
      const auto source = FindOutput(result.invocation, result.output);
      if (!source.ok()) return InvalidCall("", "results", source.status().message());
      BoundOutput& output = OutputOf(*source);
      // An output may travel and stay as well, but each only once.
      const bool is_kept = result.lease || result.replaced;
      if (is_kept ? output.kept.has_value() : output.is_result) {
        return InvalidCall("", "results",
                           absl::StrCat("an output of invocation ", source->invocation, " is ",
                                        is_kept ? "kept" : "asked for", " twice"));
      }
      program_.results.push_back({*source, is_kept});
      absl::Status status;
      if (is_kept) {
        status = BindKept(result, *source);
      } else {
        output.is_result = true;
        if (result.range) {
          status = BindDestination(*result.range, *source);
        }
      }
      // An output has one address (ProgramRun::OutputAddress): that of the kept memory, or that of
      // the window.
      if (status.ok() && output.window && output.kept) {
        status = absl::InvalidArgumentError(
            "a result that stays on the device cannot go to shared memory, too");
      }
      if (!status.ok()) {
        const BoundInvocation& invocation = program_.invocations[source->invocation];
        return AtArgument(invocation.op->descriptor->name, invocation.OutputName(source->output),
                          status);
      }
    }
    if (!program_.results.empty()) return absl::OkStatus();
    // A request without results wants those of its last invocation.
    const auto last = static_cast<uint32_t>(program_.invocations.size() - 1);
    for (uint32_t i = 0; i < program_.invocations[last].outputs.size(); ++i) {
      program_.results.push_back({{last, i}});
      OutputOf({last, i}).is_result = true;
    }
    return absl::OkStatus();
  }

  // Lets the output `source` stay on the device.
  absl::Status BindKept(const GivenResult& result, const OutputRef& source) {
    if (result.range || (result.lease && result.replaced)) {
      return absl::InvalidArgumentError("set one of shared_memory, keep and replace");
    }
    BoundOutput& output = OutputOf(source);
    output.kept = static_cast<uint32_t>(program_.kept.size());
    KeptOutput& kept = program_.kept.emplace_back(KeptOutput{.source = source});
    if (result.lease) {
      kept.lease = *result.lease;
      if (kept.lease >= absl::ZeroDuration()) return absl::OkStatus();
      return absl::InvalidArgumentError("the lease is negative");
    }
    const GivenReplacement& replace = *result.replaced;
    if (replace.input && !replace.handle.empty()) {
      return absl::InvalidArgumentError("set one of handle and program_input");
    }
    OPSERVE_ASSIGN_OR_RETURN(const uint32_t index, replace.input ? ResidentInput(*replace.input)
                                                                 : FindResident(replace.handle));
    kept.replaced = index;
    ResidentUse& use = program_.residents[index];
    if (use.is_replaced) {
      return absl::InvalidArgumentError("the resident tensor is replaced twice");
    }
    use.is_replaced = true;
    call_.residents[index].version = replace.version;
    // Calls that wait for the tensor were checked against its spec, so the spec must stay.
    const TensorSpec& spec = SpecOfResident(index);
    if (spec == output.spec) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(DtypeName(output.spec.dtype), " ", ShapeText(output.spec.shape),
                     " cannot replace a resident tensor of ", DtypeName(spec.dtype), " ",
                     ShapeText(spec.shape)));
  }

  absl::Status BindDonated() {
    for (const absl::string_view handle : request_.donated) {
      const auto known = resident_of_handle_.find(handle);
      if (known == resident_of_handle_.end()) {
        // An unknown handle gets the answer of the lookup; a known one is a mistake of its own.
        OPSERVE_RETURN_IF_ERROR(find_resident_(handle).status());
        return InvalidCall("", "donated", "a resident tensor that the request does not use");
      }
      OPSERVE_RETURN_IF_ERROR(Donate(known->second));
    }
    for (const uint32_t input : request_.donated_inputs) {
      const absl::StatusOr<uint32_t> resident = ResidentInput(input);
      if (!resident.ok()) return InvalidCall("", "donated_inputs", resident.status().message());
      OPSERVE_RETURN_IF_ERROR(Donate(*resident));
    }
    return absl::OkStatus();
  }

  absl::Status Donate(uint32_t resident) {
    ResidentUse& use = program_.residents[resident];
    if (use.is_donated) return InvalidCall("", "donated", "a resident tensor twice");
    use.is_donated = true;
    program_.has_donations = true;
    return absl::OkStatus();
  }

  // An operator that changes its input in place may work in the memory of a donated tensor if the
  // result replaces that tensor and nothing else reads the old content.
  void FindTensorsWorkedIn() {
    for (KeptOutput& kept : program_.kept) {
      if (!kept.replaced || !program_.residents[*kept.replaced].is_donated) continue;
      const LastUse& last = last_uses_[*kept.replaced];
      // All readers come before it, in the stream's order.
      if (last.inputs == 0 || last.invocation < kept.source.invocation) kept.is_in_place = true;
      // The invocation that makes the new content may read the old one only by the one input that
      // it changes in place.
      if (last.invocation != kept.source.invocation || last.inputs != 1) continue;
      for (const BoundInput& input : program_.invocations[kept.source.invocation].inputs) {
        const auto* resident = std::get_if<ResidentSource>(&input.source);
        if (input.output != kept.source.output || resident == nullptr) continue;
        // The input must be all of the tensor: elements outside a view would keep their old values.
        kept.is_in_place =
            resident->resident == *kept.replaced && input.offset == 0 &&
            NumElements(input.spec.shape) == NumElements(SpecOfResident(*kept.replaced).shape);
      }
    }
  }

  // Lets the output `source` go to `range`.
  absl::Status BindDestination(const MemoryRange& range, const OutputRef& source) {
    BoundOutput& output = OutputOf(source);
    const auto bytes = static_cast<uint64_t>(NumBytes(output.spec));
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedRegion> region, find_region_(range));
    // Regions that may shrink come from clients of the Open Inference Protocol, which may offer
    // more room than the result takes.
    if (!region->may_shrink()) {
      OPSERVE_RETURN_IF_ERROR(CheckRangeSize(range, bytes, /*is_exact=*/true));
    } else if (range.size < bytes) {
      return RangeTooSmall(range, bytes);
    }
    OPSERVE_ASSIGN_OR_RETURN(SharedWindow window,
                             WindowIn(std::move(region), range, output.spec.dtype));
    window.range.size = bytes;
    if (window.region->is_read_only()) {
      return MakeError(Reason::kForbidden, "the region of shared memory is read-only");
    }
    auto& windows = call_.windows;
    // With an overlap the result would depend on whether the device uses the region in place or a
    // copy of it.
    const FilePart part = window.region->PartOf(range.offset, bytes);
    const bool is_input = shared_inputs_.Overlap(part);
    if (is_input || shared_results_.Overlap(part)) {
      return InvalidRange(absl::StrCat("the range of shared memory overlaps that of ",
                                       is_input ? "an input" : "another result"));
    }
    shared_results_.Add(part);
    output.window = static_cast<uint32_t>(windows.size());
    program_.windows.push_back({.bytes = bytes, .writer = source});
    windows.push_back(std::move(window));
    return absl::OkStatus();
  }

  const ProgramRequest& request_;
  const absl::Span<const uint64_t> payload_bytes_;
  std::vector<bool> payload_is_used_;
  const absl::Span<const std::shared_ptr<ResidentTensor>> apart_;  // none: all are in the message
  const absl::Span<const ProgramInput> inputs_;
  std::vector<bool> input_is_used_;
  // By input: its position among the payloads, resident tensors or windows.
  std::vector<uint32_t> input_places_;
  const OperatorTable& operators_;
  const ProgramLimits& limits_;
  const ResidentLookup find_resident_;
  const RegionLookup find_region_;
  absl::flat_hash_map<std::string, uint32_t> resident_of_handle_;
  absl::flat_hash_map<RangeKey, uint32_t> window_of_range_;  // of inputs
  FileParts shared_inputs_;
  FileParts shared_results_;
  // Of a resident tensor: the last invocation that reads it, and by how many of its inputs.
  struct LastUse {
    uint32_t invocation = UINT32_MAX;
    uint32_t inputs = 0;
  };
  std::vector<LastUse> last_uses_;  // as program_.residents
  Program program_;
  ProgramCall call_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<SharedRegion>> NoSharedMemory(const MemoryRange& /*range*/) {
  return MakeError(Reason::kShmDisabled, "the daemon takes no shared memory (--enable_shm)");
}

absl::StatusOr<SharedWindow> WindowIn(std::shared_ptr<SharedRegion> region,
                                      const MemoryRange& range, Dtype dtype) {
  OPSERVE_RETURN_IF_ERROR(CheckAlignment(*region, range, dtype));
  // In this order nothing overflows, as offset + size could.
  if (range.offset > region->size() || range.size > region->size() - range.offset) {
    return InvalidRange(absl::StrCat("the range of ", range.size, " bytes from ", range.offset,
                                     " on leaves its region of ", region->size(), " bytes"));
  }
  return SharedWindow{std::move(region), range};
}

absl::StatusOr<ProgramCall> BindProgram(const ProgramRequest& request,
                                        absl::Span<const uint64_t> payload_bytes,
                                        const OperatorTable& operators, const ProgramLimits& limits,
                                        ResidentLookup find_resident, RegionLookup find_region) {
  return BindApart(request, payload_bytes, /*apart=*/{}, operators, limits, find_resident,
                   find_region);
}

absl::StatusOr<ProgramCall> BindApart(const ProgramRequest& request,
                                      absl::Span<const uint64_t> payload_bytes,
                                      absl::Span<const std::shared_ptr<ResidentTensor>> apart,
                                      const OperatorTable& operators, const ProgramLimits& limits,
                                      ResidentLookup find_resident, RegionLookup find_region) {
  return Binder(request, payload_bytes, apart, /*inputs=*/{}, operators, limits, find_resident,
                find_region)
      .Bind();
}

absl::StatusOr<ProgramCall> BindTemplate(const ProgramRequest& request,
                                         absl::Span<const ProgramInput> inputs,
                                         const OperatorTable& operators,
                                         const ProgramLimits& limits,
                                         ResidentLookup find_resident) {
  std::vector<uint64_t> payload_bytes;
  for (const ProgramInput& input : inputs) {
    if (input.kind != ProgramInput::kPayload) continue;
    payload_bytes.push_back(static_cast<uint64_t>(NumBytes(input.spec)));
  }
  return Binder(request, payload_bytes, /*apart=*/{}, inputs, operators, limits, find_resident,
                NoSharedMemory)
      .Bind();
}

}  // namespace opserve::server
