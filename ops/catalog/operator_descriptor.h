// Describes an operator to all generic code: the daemon, the command line, bindings of other
// languages, documentation and the host CANN's stage one read descriptors and know no operator by
// name. A descriptor is made from a description (description.proto) by descriptor_text.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "aclnn/aclnn_base.h"
#include "ops/catalog/expression.h"
#include "ops/catalog/value.h"

namespace opserve::catalog {

struct InputDescriptor {
  std::string name;    // "grad_output"
  std::string vendor;  // its name in the declaration: "gradOutput"
  std::string documentation;
  std::vector<aclDataType> dtypes;  // accepted for this input; mixtures are judged by rules
  bool is_optional = false;
  bool is_list = false;
  // The function takes contiguous tensors only: the daemon copies views with other strides first.
  bool is_contiguous = false;
  std::optional<size_t> output;  // in place: the output that begins as a copy of it
};

struct AttributeDescriptor {
  struct Name {
    std::string name;  // "batchmean"
    int64_t value;     // 3
  };

  std::string name;  // "reduction"
  std::string vendor;
  std::string documentation;
  AttributeType type = AttributeType::kInt64;
  AttributeValue default_value;     // std::monostate: it is required, or left out if optional
  bool is_optional = false;         // a null pointer stands for one that is left out
  std::vector<Name> names;          // integers: names allowed instead of the number
  std::vector<std::string> texts;   // texts: the values there are; empty: any
  std::vector<aclDataType> dtypes;  // dtypes: the values there are; empty: any
  std::optional<double> minimum, maximum;  // numbers, also those of lists; inclusive

  bool is_required() const { return default_value.index() == 0 && !is_optional; }
};

struct OutputDescriptor {
  std::string name;  // "out"
  std::string vendor;
  std::string documentation;
  std::vector<aclDataType> dtypes;  // dtypes a caller may ask for; empty: none
  bool is_optional = false;         // may be null
  bool is_list = false;
  bool is_unwritten = false;    // the function may leave it as it is: the daemon clears it first
  std::optional<size_t> mask;   // wanted if this element of the mask argument is true
  std::optional<size_t> input;  // in place: the input that it begins as
  Expression dtype, shape;      // without a function for outputs in place
  Expression count;             // lists: how many tensors

  // Whether a caller may do without it.
  bool is_masked() const { return is_optional || mask.has_value(); }
};

// How stage one declares an argument.
enum class ArgumentKind {
  kTensor,
  kTensorList,
  kScalar,
  kScalarList,
  kInt64,
  kInt32,
  kInt8,
  kBool,
  kDouble,
  kFloat,
  kText,
  kDtype,
  kIntArray,
  kBoolArray,
  kFloatArray,
  kUint64,
};

// The role of an argument of stage one, in the order of the declaration. One that is written in
// place is an input and an output; the mask is none of the three.
struct ArgumentDescriptor {
  ArgumentKind kind = ArgumentKind::kTensor;
  std::string vendor;
  std::optional<size_t> input, output, attribute;  // positions among the descriptor's
  bool is_mask() const { return !input && !output && !attribute; }
};

// A small call of the operator and its result: a device must get it right before it serves.
struct GoldenCase {
  struct Tensor {
    Spec spec;
    std::vector<double> values;  // row by row
  };
  std::vector<std::vector<Tensor>> inputs;   // by input; none if it is left out
  std::vector<AttributeValue> attributes;    // all
  std::vector<std::vector<Tensor>> outputs;  // by output; none if it is not wanted
  double tolerance = 1e-3;                   // of the expected value, or of one if that is smaller
};

struct OperatorDescriptor {
  std::string name;           // "KlDivBackward"
  std::string summary;        // one sentence
  std::string documentation;  // formula, shapes, special values; plain text
  std::string stage_one;      // symbols: "aclnnKlDivBackwardGetWorkspaceSize"
  std::string stage_two;      // "aclnnKlDivBackward"
  std::string header;         // "aclnn_kl_div_backward.h"
  std::vector<ArgumentDescriptor> arguments;
  std::vector<InputDescriptor> inputs;
  std::vector<AttributeDescriptor> attributes;
  std::vector<OutputDescriptor> outputs;
  std::vector<Expression> checks;         // in their order, but for those that name outputs
  std::vector<Expression> result_checks;  // those: made once outputs are inferred
  std::vector<Expression> daemon_checks;  // calls that stage one accepts and the daemon does not
  Expression work;                        // without a function: the largest tensor's elements
  std::vector<GoldenCase> golden;         // at least one
  bool is_custom = false;                 // in libcust_opapi.so
  // Ways in which stage one differs from that of most operators, see description.proto.
  bool empty_first = false;
  std::optional<size_t> idle_if_empty;  // an input
  bool bf16_promotes = false;
  bool plain_format = false;
};

// The type all second stages have.
using StageTwoFunction = aclnnStatus (*)(void* workspace, uint64_t workspace_bytes,
                                         aclOpExecutor* executor, aclrtStream stream);

}  // namespace opserve::catalog
