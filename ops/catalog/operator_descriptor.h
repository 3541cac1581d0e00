// What an operator is, to everything generic: the daemon, the command line, bindings of other
// languages and documentation read descriptors and know no operator by name.
//
// Adding an operator to the daemon is adding one .cc file here that defines its descriptor, and
// its line in catalog.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "aclnn/aclnn_base.h"
#include "proto/dtypes/tensor_spec.h"

namespace opserve::catalog {

struct InputDescriptor {
  absl::string_view name;  // "grad_output"
  absl::string_view documentation;
  std::vector<Dtype> dtypes;  // accepted for this input; mixtures are judged by `infer_output`
};

// The value of an attribute: its alternative is the attribute's type.
using AttributeValue = std::variant<int64_t, bool, double>;

struct AttributeDescriptor {
  struct Name {
    absl::string_view name;  // "batchmean"
    int64_t value;           // 3
  };

  absl::string_view name;  // "reduction"
  absl::string_view documentation;
  AttributeValue default_value;             // also fixes the type
  std::vector<Name> names;                  // int64 only: what may be said instead of the number
  std::optional<int64_t> minimum, maximum;  // int64 only; inclusive
};

struct OutputDescriptor {
  absl::string_view name;  // "out"
  absl::string_view documentation;
  std::vector<Dtype> dtypes;  // what a caller may ask for
};

// Arguments of a stage one, in the order of its declaration. Nothing is owned.
struct StageOneArguments {
  absl::Span<aclTensor* const> inputs;
  absl::Span<const AttributeValue> attributes;
  aclTensor* output;
  uint64_t* workspace_bytes;
  aclOpExecutor** executor;
};

// How an operator is reached in the ACL libraries.
struct Binding {
  const char* stage_one;  // symbols: "aclnnKlDivBackwardGetWorkspaceSize"
  const char* stage_two;  // "aclnnKlDivBackward"
  // Calls `stage_one`, the address of that symbol, with the arguments in their declared types.
  aclnnStatus (*call_stage_one)(void* stage_one, const StageOneArguments& arguments);
};

// The type all second stages have.
using StageTwoFunction = aclnnStatus (*)(void* workspace, uint64_t workspace_bytes,
                                         aclOpExecutor* executor, aclrtStream stream);

// A small call of the operator with FLOAT inputs and what it gives: a device must get it right
// before it serves.
struct GoldenCase {
  struct Input {
    Shape shape;
    std::vector<float> values;
  };
  std::vector<Input> inputs;
  std::vector<AttributeValue> attributes;
  std::vector<float> expected;  // the output's elements, to a thousandth
};

struct OperatorDescriptor {
  absl::string_view name;           // "KlDivBackward"
  absl::string_view summary;        // one sentence
  absl::string_view documentation;  // formula, shapes, special values; plain text
  std::vector<InputDescriptor> inputs;
  std::vector<AttributeDescriptor> attributes;
  OutputDescriptor output;
  Binding binding;
  GoldenCase golden;

  // Judges a call by its metadata and returns what its output will be. `inputs` and `attributes`
  // are in the order of the descriptor, already of accepted dtypes and in range; `dtype`: the
  // output's dtype if the caller asks for one.
  //
  // Refuses whatever stage one would refuse, with an error (error.h) that names the argument and
  // the expected and actual values. It also refuses a call whose output stage one would leave
  // unwritten although it has elements.
  absl::StatusOr<TensorSpec> (*infer_output)(absl::Span<const TensorSpec> inputs,
                                             absl::Span<const AttributeValue> attributes,
                                             std::optional<Dtype> dtype);

  // Work of a call that `infer_output` accepts, in elements: the one measure by which the daemon
  // limits requests, estimates their time and shares devices. Storage does not matter: a stride of
  // 0 lets few bytes stand for any number of elements. Elementwise operators and sums count the
  // elements of the broadcast shape, products m * n * k, windows outputs times taps. UINT64_MAX if
  // it is more.
  uint64_t (*count_work)(absl::Span<const TensorSpec> inputs,
                         absl::Span<const AttributeValue> attributes, const TensorSpec& output);
};

}  // namespace opserve::catalog
