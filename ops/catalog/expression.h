// Rules as they are written: "broadcast(self, other)". rules.h gives them their meaning.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/value.h"

namespace opserve::catalog {

class Judge;
struct Expression;

// The functions of rules. Each returns false if the judge has found a problem; else it has written
// its result.
using ShapeRule = bool (*)(Judge& judge, absl::Span<const Expression> arguments, Shape* result);
using DtypeRule = bool (*)(Judge& judge, absl::Span<const Expression> arguments,
                           aclDataType* result);
using NumberRule = bool (*)(Judge& judge, absl::Span<const Expression> arguments, int64_t* result);
using CheckRule = bool (*)(Judge& judge, absl::Span<const Expression> arguments);

// The alternative tells the kind of a rule's result.
using RuleFunction = std::variant<std::monostate, ShapeRule, DtypeRule, NumberRule, CheckRule>;

// A rule with resolved names.
struct Expression {
  enum class Kind { kNothing, kCall, kInput, kOutput, kAttribute, kNumber, kDtype };

  Kind kind = Kind::kNothing;
  RuleFunction function;  // kCall
  std::vector<Expression> arguments;
  size_t index = 0;    // kInput, kOutput, kAttribute
  int64_t number = 0;  // kNumber; true and false are 1 and 0
  aclDataType dtype = ACL_DT_UNDEFINED;

  explicit operator bool() const { return kind != Kind::kNothing; }
};

struct OperatorDescriptor;

// Reads `text`; its names are arguments of `descriptor` (complete but for its rules), numbers,
// dtypes and functions. T: the kind of result, ShapeRule and so on; a shape may also be the name of
// a tensor, a number that of an attribute, a dtype its name. kInvalidArgument: the message has the
// fault and the text.
template <typename T>
absl::StatusOr<Expression> ParseRule(absl::string_view text, const OperatorDescriptor& descriptor);

}  // namespace opserve::catalog
