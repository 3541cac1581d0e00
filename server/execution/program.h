// A checked program: what an ExecuteRequest asks for, with every name resolved, every shape known
// and every size counted before any device memory is taken.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/catalog/attributes.h"
#include "ops/catalog/tensor_spec.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/execution/operator_table.h"

namespace opserve::server {

// What one program may ask for; beyond a limit BindProgram refuses.
struct ProgramLimits {
  uint32_t max_invocations = 16;
  uint64_t max_tensor_bytes = uint64_t{2} << 30;   // storage of one input, or one output
  uint64_t max_program_bytes = uint64_t{8} << 30;  // all payloads and outputs together
};

struct PayloadSource {
  uint32_t payload;  // position in the message
};
struct InvocationSource {
  uint32_t invocation;  // an earlier one; its output, contiguous
};

struct BoundInput {
  catalog::TensorSpec spec;
  catalog::Shape strides;        // in elements, as many as the shape has extents
  int64_t offset = 0;            // in elements
  int64_t storage_elements = 0;  // what the view addresses, from the storage's start
  std::variant<PayloadSource, InvocationSource> source;
};

struct BoundInvocation {
  const LoadedOperator* op = nullptr;
  absl::InlinedVector<BoundInput, 3> inputs;  // in the descriptor's order
  catalog::AttributeValues attributes;        // likewise
  catalog::TensorSpec output;                 // contiguous
  // The last invocation that reads the output, if one does: after it the memory may be reused,
  // unless the output is a result.
  std::optional<uint32_t> last_reader;
  bool is_result = false;
};

struct Program {
  std::vector<BoundInvocation> invocations;
  std::vector<uint32_t> results;  // invocations whose outputs travel back, in order
  uint64_t total_bytes = 0;       // payloads and outputs
};

// Row-major strides of `shape`, in elements.
catalog::Shape ContiguousStrides(const catalog::Shape& shape);

// Checks `request` against the catalogue and `limits`. `payload_bytes`: the size of each payload of
// the message. Reads metadata only and changes nothing.
//
// kInvalidArgument   a mistake in the request, or a size above a limit (reason "too_large"); the
//                    message names operator, argument, expected and actual value
// kUnimplemented     the ACL libraries lack the operator
absl::StatusOr<Program> BindProgram(const v1::ExecuteRequest& request,
                                    absl::Span<const uint64_t> payload_bytes,
                                    const OperatorTable& operators, const ProgramLimits& limits);

}  // namespace opserve::server
