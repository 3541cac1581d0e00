// A request to run a program, as its protocol hands it over: translated into these types and not
// checked. Every protocol translates into them, so nothing below knows a message of the wire.
//
// Texts, lists and literals are views of the protocol's message, which outlives them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ops/catalog/attributes.h"
#include "proto/dtypes/tensor_spec.h"

namespace opserve::server {

// A part of a region of shared memory.
struct MemoryRange {
  std::string connection;  // the key of the connection that registered the region
  uint64_t region = 0;     // its number there
  uint64_t offset = 0;     // in bytes, in the region
  uint64_t size = 0;       // in bytes
};

// The places where a tensor's elements may be, beside a MemoryRange.
struct PayloadStorage {
  uint32_t payload = 0;  // position in the message
};
struct OutputStorage {
  uint32_t invocation = 0;
  absl::string_view output;  // "": the first
};
struct ResidentStorage {
  absl::string_view handle;
};
struct LiteralStorage {
  absl::string_view bytes;
};
struct InputStorage {
  uint32_t input = 0;  // position among the inputs of a prepared program
};

struct GivenTensor {
  Dtype dtype = v1::DATA_TYPE_UNSPECIFIED;
  absl::Span<const int64_t> shape;
  absl::Span<const int64_t> strides;  // in elements; none: row-major
  int64_t offset = 0;                 // in elements
  // std::monostate: the request names none, or one that this release does not know.
  std::variant<std::monostate, PayloadStorage, OutputStorage, ResidentStorage, MemoryRange,
               LiteralStorage, InputStorage>
      storage;
};

struct GivenInput {
  absl::string_view name;
  // Both may be wrong for the operator, and both may be set, which is always wrong.
  bool has_tensor = false;
  bool has_list = false;
  absl::InlinedVector<GivenTensor, 1> tensors;  // one, or those of the list
};

struct GivenOutput {
  absl::string_view name;
  Dtype dtype = v1::DATA_TYPE_UNSPECIFIED;  // unspecified: as the operator's rules say
};

struct GivenInvocation {
  absl::string_view operator_name;
  absl::InlinedVector<GivenInput, 3> inputs;
  absl::InlinedVector<catalog::GivenAttribute, 4> attributes;
  absl::InlinedVector<GivenOutput, 1> outputs;
};

// A resident tensor whose content a result replaces.
struct GivenReplacement {
  absl::string_view handle;
  std::optional<uint32_t> input;                   // in place of the handle: as in InputStorage
  std::optional<uint64_t> version = std::nullopt;  // that the tensor must have
};

struct GivenResult {
  uint32_t invocation = 0;
  absl::string_view output;  // "": the first
  // At most one of the three; none: it travels in the answer.
  std::optional<MemoryRange> range = std::nullopt;
  std::optional<absl::Duration> lease = std::nullopt;  // of a new resident tensor; 0: the default
  std::optional<GivenReplacement> replaced = std::nullopt;
};

struct ProgramRequest {
  std::vector<GivenInvocation> invocations;
  std::vector<GivenResult> results;        // none: all of the last invocation
  std::vector<absl::string_view> donated;  // handles
  absl::Span<const uint32_t> donated_inputs;
};

// An input that is given with each call of a prepared program.
struct ProgramInput {
  enum Kind { kPayload, kResident, kSharedMemory };
  TensorSpec spec;  // valid, by CheckShape
  Kind kind = kPayload;
};

// A call of a prepared program.
struct PreparedRequest {
  struct ChangedAttribute {
    uint32_t invocation = 0;
    catalog::GivenAttribute attribute;
  };
  struct ExpectedVersion {
    uint32_t resident = 0;  // position in `residents`
    uint64_t version = 0;
  };

  absl::string_view program;                            // its handle
  absl::InlinedVector<absl::string_view, 4> residents;  // handles
  std::vector<MemoryRange> ranges;
  std::vector<ChangedAttribute> attributes;
  std::vector<ExpectedVersion> versions;
};

}  // namespace opserve::server
