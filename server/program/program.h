// A checked program: the invocations of a request, with every name resolved, every shape
// known and every size counted before any device memory is taken; and a call of it, which adds the
// tensors that one request brings. A prepared program is bound once and called by many requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/catalog/attributes.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/program/memory_plan.h"
#include "server/program/operator_table.h"
#include "server/program/program_request.h"
#include "server/program/resident_tensor.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

class HostAccount;

struct PayloadSource {
  uint32_t payload;  // position in the message
};
struct ResidentSource {
  uint32_t resident;  // position in Program::residents and ProgramCall::residents
};
struct SharedSource {
  uint32_t window;  // position in Program::windows and ProgramCall::windows
};
struct LiteralSource {
  uint64_t offset;  // in Program::literals, in bytes
};
// A tensor that an invocation gives.
struct OutputRef {
  uint32_t invocation = 0;
  uint32_t output = 0;  // position in BoundInvocation::outputs

  friend bool operator==(const OutputRef& a, const OutputRef& b) = default;
};
using InvocationSource = OutputRef;  // of an earlier invocation
struct CopySource {
  uint32_t copy;  // position in Program::copies
};

struct BoundInput {
  TensorSpec spec;
  Shape strides;                 // in elements, as many as the shape has extents
  int64_t offset = 0;            // in elements
  int64_t storage_elements = 0;  // extent of the view, from the storage's start
  std::variant<PayloadSource, ResidentSource, SharedSource, LiteralSource, InvocationSource,
               CopySource>
      source;
  // Written in place: the position of the output that begins as a copy of it, and that stands for
  // it in the call. Contiguous.
  std::optional<uint32_t> output;
};

// An input in memory that the caller shares, or the place of a result there.
struct WindowUse {
  uint64_t bytes = 0;
  // The output that goes there; none: an input lies there.
  std::optional<OutputRef> writer = std::nullopt;
};

// The part of shared memory that a call has for a WindowUse.
struct SharedWindow {
  std::shared_ptr<SharedRegion> region;
  MemoryRange range;  // inside the region
};

// The kind of execution that an invocation is, for learning how long it takes.
struct CostKey {
  uint32_t op = 0;     // LoadedOperator::index
  uint32_t dtype = 0;  // of the output
  uint64_t work = 0;   // BoundInvocation::work
};

// A tensor that an invocation gives.
struct BoundOutput {
  TensorSpec spec;            // contiguous
  bool is_unwritten = false;  // the function may leave it as it is, so it is cleared first
  // The last invocation that reads it, if one does: after it the memory may be reused, unless the
  // output is a result.
  std::optional<uint32_t> last_reader = std::nullopt;
  bool is_result = false;
  std::optional<uint32_t> window =
      std::nullopt;                             // where the result goes, instead of into a payload
  std::optional<uint32_t> kept = std::nullopt;  // position in Program::kept, if it stays
};

// How the program uses a resident tensor.
struct ResidentUse {
  bool is_donated = false;
  bool is_replaced = false;

  // Whether no other request may use it during the run.
  bool is_alone() const { return is_donated || is_replaced; }
};

// The resident tensor that a call has for a ResidentUse.
struct BoundResident {
  std::shared_ptr<ResidentTensor> tensor;
  std::string handle;
  std::optional<uint64_t> version = std::nullopt;  // that it must have
};

// An output that stays on the device: as a new resident tensor, or as the new content of one.
struct KeptOutput {
  OutputRef source;
  std::optional<uint32_t> replaced = std::nullopt;  // position in Program::residents
  // Works in the memory of the tensor that it replaces, if nobody else has kept the content.
  bool is_in_place = false;
  absl::Duration lease = absl::ZeroDuration();  // of a new tensor; zero: the default
};

// A result, in the order in which they were asked for.
struct BoundResult {
  OutputRef source;
  bool is_kept = false;  // does not travel: see BoundOutput::kept

  friend bool operator==(const BoundResult& a, const BoundResult& b) = default;
};

// Of several tensors of each argument, one after the other: those of argument i are
// [ends[i - 1], ends[i]), none where an optional one is left out or not wanted.
using ArgumentEnds = absl::InlinedVector<uint32_t, 3>;

struct BoundInvocation {
  CostKey cost_key() const {
    const Dtype dtype = outputs.empty() ? v1::DATA_TYPE_UNSPECIFIED : outputs.front().spec.dtype;
    return {static_cast<uint32_t>(op->index), static_cast<uint32_t>(dtype), work};
  }
  // Of a tensor: its name in results, "out" or, in a list, "out.2".
  std::string OutputName(uint32_t output) const;
  // The tensor with this name, if there is one.
  std::optional<uint32_t> FindOutput(absl::string_view name) const;

  const LoadedOperator* op = nullptr;
  absl::InlinedVector<BoundInput, 3> inputs;    // tensors, in the descriptor's order of inputs
  ArgumentEnds input_ends;                      // by input
  catalog::AttributeValues attributes;          // in the descriptor's order
  absl::InlinedVector<BoundOutput, 1> outputs;  // tensors, in the descriptor's order of outputs
  ArgumentEnds output_ends;                     // by output
  uint32_t first_output = 0;  // position of the first output among all of the program
  uint64_t work = 0;          // as the operator counts it (Judge::CountWork)
  uint64_t charge = 0;        // of the limits on work, in elements (Judge::CountCharge)
  std::string plan_key;       // PlanKeyOf, if it was made beforehand; else empty
};

// A view that is made contiguous right before an invocation, whose function takes no other
// (contiguous_copies.h).
struct ContiguousCopy {
  const BoundInput& view() const { return call.inputs[1]; }
  // Of the memory that the copy is in.
  uint64_t bytes() const { return static_cast<uint64_t>(NumBytes(view().spec)); }

  uint32_t invocation = 0;  // that reads the copy
  BoundInvocation call;     // InplaceCopy(copy, view)
};

// Judges a call by its metadata, once inputs and attributes are bound: sets outputs, output_ends,
// work and charge. `wanted` and `asked`: by output of the descriptor, see catalog::Judge::Infer.
// kInvalidArgument: the operator's rules refuse the call.
absl::Status JudgeCall(absl::Span<const bool> wanted,
                       absl::Span<const std::optional<aclDataType>> asked, BoundInvocation* bound);

struct Program {
  // Computes the facts below from the parts above them, which do not change after it.
  // `payload_sizes`: bytes of each payload of the message; none, if they lie apart.
  void ComputeFacts(absl::Span<const uint64_t> payload_sizes);

  // Whether running it twice is not the same as running it once.
  bool has_effects() const { return !kept.empty() || has_donations; }
  uint64_t KeptBytes(const KeptOutput& one) const {
    return static_cast<uint64_t>(NumBytes(output(one.source).spec));
  }
  const BoundOutput& output(const OutputRef& ref) const {
    return invocations[ref.invocation].outputs[ref.output];
  }
  // An operator of the program, or of its copies, that the device does not offer; null: it offers
  // them all.
  const LoadedOperator* MissingOn(int32_t device) const;
  // Its position among the outputs of all invocations.
  uint32_t position(const OutputRef& ref) const {
    return invocations[ref.invocation].first_output + ref.output;
  }
  // Calls of stage two in a run.
  size_t launches() const { return invocations.size() + copies.size(); }
  // LoadedOperator::index of its only invocation; none: it has several.
  std::optional<int> operator_index() const {
    return invocations.size() == 1 ? std::optional(invocations.front().op->index) : std::nullopt;
  }

  std::vector<BoundInvocation> invocations;
  std::vector<ContiguousCopy> copies;  // by invocation, ascending
  std::vector<BoundResult> results;
  std::vector<ResidentUse> residents;
  std::vector<KeptOutput> kept;
  std::vector<WindowUse> windows;
  std::string literals;  // elements that came with the request's header, each at a multiple of 64
  bool has_donations = false;
  bool is_capturable = false;  // a prepared program whose runs may be captured (captured_runs.h)
  uint64_t input_bytes = 0;    // payloads, resident tensors and windows, each counted once
  uint64_t output_bytes = 0;   // of all invocations and copies
  uint64_t work = 0;           // likewise, their charges

  // Facts.
  absl::InlinedVector<const LoadedOperator*, 2> operators;  // of the invocations, none twice
  absl::InlinedVector<uint64_t, 4> payload_sizes;           // in bytes, by payload
  uint64_t payload_bytes = 0;                               // of all payloads
  uint64_t kept_bytes = 0;                                  // of new device memory for kept outputs
  uint64_t result_bytes = 0;                                // of results that travel as payloads
  uint64_t pinned_bytes = 0;                                // for these results, in whole blocks
  // Places in device memory if no invocation needs a workspace and the device uses every window in
  // place. The device tells either only when the program runs; then it is planned anew.
  MemoryPlan memory_plan;
  // Of a prepared program: the plan for the workspaces that its first run found out. Null: none is
  // remembered.
  std::shared_ptr<WorkspacePlan> workspace_plan;
  // Of a prepared program: the host memory that it takes. Null: it is not counted.
  std::shared_ptr<HostAccount> host_account;
};

// One run of a program: the parts that differ from one request to the next.
struct ProgramCall {
  // The only device it can run on: where resident tensors are that it uses or keeps, and payloads
  // that lie apart. Tensors that it uses are claimed (TensorClaims).
  std::optional<int32_t> device() const {
    if (!residents.empty()) return residents.front().tensor->device;
    if (!apart.empty()) return apart.front()->device;
    if (!kept.empty()) return kept.front()->device;
    return std::nullopt;
  }
  // kFailedPrecondition: the resident tensors that it uses, which are claimed, are on different
  // devices. kUnavailable (reason "device_unavailable"): its payloads came to another device, from
  // which the tensors have moved since.
  absl::Status CheckOneDevice() const;
  // An invocation as it is in this call.
  const BoundInvocation& invocation(uint32_t index) const {
    if (changed.empty()) return program->invocations[index];
    const auto found = changed.find(index);
    return found != changed.end() ? found->second : program->invocations[index];
  }

  std::shared_ptr<const Program> program;
  std::vector<BoundResident> residents;  // by position in Program::residents
  // Payloads that came ahead of the run, into device memory of their own; by payload, or none: they
  // are in the message.
  std::vector<std::shared_ptr<ResidentTensor>> apart;
  // Books the memory that the run takes; null: it is booked as the run starts.
  std::shared_ptr<void> booked;
  // By position in Program::kept: the new tensor or, of a replaced one, its coming content. Set
  // before the run.
  std::vector<std::shared_ptr<ResidentTensor>> kept;
  std::vector<SharedWindow> windows;  // by position in Program::windows
  // Invocations that have other attributes than in the program, by position.
  absl::flat_hash_map<uint32_t, BoundInvocation> changed;
  // A long program is waited for in between, after so many invocations each time, ascending. Set
  // where it is known how long they take; empty: only at the end.
  std::vector<uint32_t> slice_ends;
};

// The amplification guard: whether `bytes` are at most `ratio` (>= 1) times `input_bytes`, and 1
// MiB more.
bool IsInProportion(uint64_t bytes, uint64_t input_bytes, uint64_t ratio);

// Row-major strides of `shape`, in elements.
Shape ContiguousStrides(const Shape& shape);

}  // namespace opserve::server
