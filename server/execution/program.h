// A checked program: what an ExecuteRequest asks for, with every name resolved, every shape known
// and every size counted before any device memory is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/catalog/attributes.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/execution/memory_plan.h"
#include "server/execution/operator_table.h"
#include "server/execution/resident_tensors.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// What one program may ask for; beyond a limit BindProgram refuses.
struct ProgramLimits {
  uint32_t max_invocations = 16;
  uint64_t max_tensor_bytes = uint64_t{2} << 30;   // storage of one input, or one output
  uint64_t max_program_bytes = uint64_t{8} << 30;  // all payloads and outputs together
  // Amplification guard: outputs may take this many times the bytes of the inputs, and 1 MiB more.
  uint64_t max_output_ratio = 100;
  // Work of all invocations together, in elements (Judge::CountWork): by default the
  // elements of max_program_bytes in halves.
  uint64_t max_work = uint64_t{4} << 30;
};

struct PayloadSource {
  uint32_t payload;  // position in the message
};
struct ResidentSource {
  uint32_t resident;  // position in Program::residents
};
struct SharedSource {
  uint32_t window;  // position in Program::windows
};
// A tensor that an invocation gives.
struct OutputRef {
  uint32_t invocation = 0;
  uint32_t output = 0;  // position in BoundInvocation::outputs

  friend bool operator==(const OutputRef& a, const OutputRef& b) = default;
};
using InvocationSource = OutputRef;  // of an earlier invocation; contiguous

struct BoundInput {
  TensorSpec spec;
  Shape strides;                 // in elements, as many as the shape has extents
  int64_t offset = 0;            // in elements
  int64_t storage_elements = 0;  // what the view addresses, from the storage's start
  std::variant<PayloadSource, ResidentSource, SharedSource, InvocationSource> source;
  // Written in place: the position of the output that begins as a copy of it, and that stands for
  // it in the call. Contiguous.
  std::optional<uint32_t> output;
};

// A part of memory that the caller shares: an input, or where a result goes.
struct SharedWindow {
  std::shared_ptr<SharedRegion> region;
  v1::SharedMemoryRange range;  // inside the region
  // The output that goes there; none: an input lies there.
  std::optional<OutputRef> writer = std::nullopt;

  // Whether its bytes go through page-locked memory, because the region is not mapped.
  bool IsStaged() const { return !region->is_mapped(); }
  char* data() const { return region->data() + range.offset(); }  // if not
};

// The kind of execution that an invocation is, for learning how long it takes.
struct CostKey {
  uint32_t op = 0;     // LoadedOperator::index
  uint32_t dtype = 0;  // of the output
  uint64_t work = 0;   // in elements
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
      std::nullopt;  // where the result goes, instead of into a payload
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

  const LoadedOperator* op = nullptr;
  absl::InlinedVector<BoundInput, 3> inputs;    // tensors, in the descriptor's order of inputs
  ArgumentEnds input_ends;                      // by input
  catalog::AttributeValues attributes;          // in the descriptor's order
  absl::InlinedVector<BoundOutput, 1> outputs;  // tensors, in the descriptor's order of outputs
  ArgumentEnds output_ends;                     // by output
  uint32_t first_output = 0;  // position of the first output among all of the program
  uint64_t work = 0;          // in elements, as the operator counts it
};

// Judges a call by its metadata, once inputs and attributes are bound: sets outputs, output_ends
// and work. `wanted` and `asked`: by output of the descriptor, see catalog::Judge::Infer.
// kInvalidArgument: what the operator's rules refuse.
absl::Status JudgeCall(absl::Span<const bool> wanted,
                       absl::Span<const std::optional<aclDataType>> asked, BoundInvocation* bound);

struct Program {
  // Computes the facts below from the parts above them, which do not change after it.
  // `payload_sizes`: bytes of each payload of the message.
  void ComputeFacts(absl::Span<const uint64_t> payload_sizes);

  // The device its resident tensors are on, if it uses any.
  std::optional<int32_t> device() const {
    return residents.empty() ? std::nullopt : std::optional(residents.front()->device);
  }
  const BoundOutput& output(const OutputRef& ref) const {
    return invocations[ref.invocation].outputs[ref.output];
  }
  // Its position among the outputs of all invocations.
  uint32_t position(const OutputRef& ref) const {
    return invocations[ref.invocation].first_output + ref.output;
  }
  // LoadedOperator::index of its only invocation; none: it has several.
  std::optional<int> operator_index() const {
    return invocations.size() == 1 ? std::optional(invocations.front().op->index) : std::nullopt;
  }

  std::vector<BoundInvocation> invocations;
  std::vector<OutputRef> results;  // outputs that travel back, in order
  std::vector<std::shared_ptr<const ResidentTensor>> residents;  // all on one device
  std::vector<SharedWindow> windows;
  uint64_t input_bytes = 0;   // payloads, resident tensors and windows, each counted once
  uint64_t output_bytes = 0;  // of all invocations
  uint64_t work = 0;          // of all invocations, in elements

  // Facts.
  absl::InlinedVector<uint64_t, 4> payload_sizes;  // in bytes, by payload
  uint64_t payload_bytes = 0;                      // of all payloads
  uint64_t result_bytes = 0;                       // of results that travel as payloads
  // Page-locked memory, in whole blocks: for these results, and for windows that are not mapped.
  uint64_t pinned_bytes = 0;
  // Places in device memory if no invocation needs a workspace and the device uses every window in
  // place. The device tells either only when the program runs; then it is planned anew.
  MemoryPlan memory_plan;
};

// The amplification guard: whether `bytes` are at most `ratio` (>= 1) times `input_bytes`, and 1
// MiB more.
bool IsInProportion(uint64_t bytes, uint64_t input_bytes, uint64_t ratio);

// Finds the resident tensor of a handle, or says why there is none.
using ResidentLookup =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const ResidentTensor>>(absl::string_view)>;

// Finds the region of a range, or says why there is none.
using RegionLookup =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<SharedRegion>>(const v1::SharedMemoryRange&)>;

// That of a daemon without shared memory: kUnimplemented (reason "shm_disabled").
absl::StatusOr<std::shared_ptr<SharedRegion>> NoSharedMemory(const v1::SharedMemoryRange& range);

// Row-major strides of `shape`, in elements.
Shape ContiguousStrides(const Shape& shape);

// Checks `request` against the catalogue and `limits`. `payload_bytes`: the size of each payload of
// the message. Reads metadata only and changes nothing.
//
// kInvalidArgument     a mistake in the request, a size above a limit (reason "too_large") or a
//                      window that is not as it must be ("shm_invalid"); the message names
//                      operator, argument, expected and actual value
// kPermissionDenied    a result for a read-only region (reason "forbidden")
// kFailedPrecondition  outputs out of proportion to the inputs (reason "amplification"), more work
//                      than a request may ask for ("work_limit"), resident tensors on different
//                      devices, or `find_resident`'s
// kNotFound            `find_resident`'s. All of `find_region`'s, too
// kOutOfRange          the range for a result is too small, in a region that is not mapped (for
//                      others a range has exactly the result's size)
// kUnimplemented       the ACL libraries lack the operator
absl::StatusOr<Program> BindProgram(const v1::ExecuteRequest& request,
                                    absl::Span<const uint64_t> payload_bytes,
                                    const OperatorTable& operators, const ProgramLimits& limits,
                                    ResidentLookup find_resident,
                                    RegionLookup find_region = NoSharedMemory);

}  // namespace opserve::server
