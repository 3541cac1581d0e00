// All rules by name, one table per source.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/expression.h"

namespace opserve::catalog {

template <typename T>
struct NamedRule {
  absl::string_view name;
  T function;
  size_t least_arguments;
};

absl::Span<const NamedRule<CheckRule>> CheckRules();  // rule_checks.cc
// Shapes have several tables, by subject.
absl::Span<const NamedRule<ShapeRule>> ShapeRules();     // rule_shapes.cc
absl::Span<const NamedRule<ShapeRule>> ProductRules();   // rule_products.cc
absl::Span<const NamedRule<ShapeRule>> MoveRules();      // rule_moves.cc
absl::Span<const NamedRule<ShapeRule>> IndexingRules();  // rule_indexing.cc
absl::Span<const NamedRule<ShapeRule>> WindowRules();    // rule_windows.cc
absl::Span<const NamedRule<DtypeRule>> DtypeRules();     // rule_dtypes.cc
absl::Span<const NamedRule<NumberRule>> NumberRules();   // rule_numbers.cc

// Of a rule that counts work: how many of its steps take a device about as long as one element. 1:
// it counts elements.
int64_t StepsPerElement(Judge& judge, const Expression& work);  // rule_numbers.cc

// "axis dim of self": an axis counted from the end where negative, 0 <= *axis < max(rank, 1), or a
// problem at `at`: "3 is outside [-2, 1] for shape [4,5]".
bool NormalizeAxis(Judge& judge, const Expression& at, int64_t value,
                   absl::Span<const int64_t> shape, size_t* axis);

// True if `shape`, the shape of `at`, has `rank` axes; a problem at `at` otherwise.
bool RankIs(Judge& judge, const Expression& at, const Shape& shape, size_t rank);

// The common shape of the tensors and shapes that are there, or a problem at the first that does
// not fit those before it.
bool BroadcastAll(Judge& judge, absl::Span<const Expression> arguments, Shape* result);

}  // namespace opserve::catalog
