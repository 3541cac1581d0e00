// Rules that give a number: extents, lengths, work.
#include <algorithm>

#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

int64_t Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// elements(a, ...): of tensors, of all tensors of lists, and of shapes, together.
bool CountOf(Judge& judge, Arguments arguments, int64_t* result) {
  *result = 0;
  for (const Expression& argument : arguments) {
    if (argument.kind == Expression::Kind::kCall) {
      Shape shape;
      if (!judge.ShapeOf(argument, &shape)) return false;
      *result = Add(*result, CountElements(shape));
      continue;
    }
    for (const Spec& spec : judge.TensorsOf(argument)) {
      *result = Add(*result, CountElements(spec.shape));
    }
  }
  return true;
}

// product(a, b): m * n * k of a matrix product, batches included: the elements of a, once for each
// column of b. Vectors have one row or column.
bool ProductWork(Judge& judge, Arguments arguments, int64_t* result) {
  const Shape& a = judge.SpecOf(arguments[0]).shape;
  const Shape& b = judge.SpecOf(arguments[1]).shape;
  const auto batches = [](const Shape& shape) {
    return shape.size() <= 2 ? Shape() : Shape(shape.begin(), shape.end() - 2);
  };
  Shape batch;
  if (!Broadcast(batches(a), batches(b), &batch)) batch = {};
  const int64_t rows = a.size() < 2 ? 1 : a[a.size() - 2];
  const int64_t inner = a.empty() ? 1 : a.back();
  const int64_t columns = b.size() < 2 ? 1 : b.back();
  *result = Multiply(Multiply(rows, columns), Multiply(inner, CountElements(batch)));
  return true;
}

// times(number, number, ...)
bool Times(Judge& judge, Arguments arguments, int64_t* result) {
  *result = 1;
  for (const Expression& argument : arguments) {
    int64_t factor = 0;
    if (!judge.NumberOf(argument, &factor)) return false;
    *result = Multiply(*result, factor);
  }
  return true;
}

// extent(a, axis): 0 if there is no such axis.
bool ExtentOf(Judge& judge, Arguments arguments, int64_t* result) {
  Shape shape;
  int64_t axis = 0;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumberOf(arguments[1], &axis)) return false;
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  *result = axis >= 0 && axis < static_cast<int64_t>(shape.size()) ? shape[axis] : 0;
  return true;
}

// length(list)
bool LengthOf(Judge& judge, Arguments arguments, int64_t* result) {
  if (arguments[0].kind == Expression::Kind::kAttribute) {
    std::vector<int64_t> numbers;
    if (!judge.NumbersOf(arguments[0], &numbers)) return false;
    *result = static_cast<int64_t>(numbers.size());
  } else {
    *result = static_cast<int64_t>(judge.TensorsOf(arguments[0]).size());
  }
  return true;
}

// rank(a)
bool RankOf(Judge& judge, Arguments arguments, int64_t* result) {
  *result = static_cast<int64_t>(judge.SpecOf(arguments[0]).shape.size());
  return true;
}

// quotient_up(number, number): rounded up; the second is above 0.
bool QuotientUp(Judge& judge, Arguments arguments, int64_t* result) {
  int64_t number = 0;
  int64_t divisor = 0;
  if (!judge.NumberOf(arguments[0], &number) || !judge.NumberOf(arguments[1], &divisor)) return false;
  divisor = std::max<int64_t>(divisor, 1);
  *result = number <= 0 ? 0 : (number - 1) / divisor + 1;
  return true;
}

// taps(out, weight): the elements of a window's output, each computed from one filter.
bool Taps(Judge& judge, Arguments arguments, int64_t* result) {
  Shape out;
  if (!judge.ShapeOf(arguments[0], &out)) return false;
  const Shape& weight = judge.SpecOf(arguments[1]).shape;
  const int64_t filter =
      weight.empty() ? 1 : CountElements(absl::MakeConstSpan(weight).subspan(1));
  *result = Multiply(CountElements(out), filter);
  return true;
}

}  // namespace

absl::Span<const NamedRule<NumberRule>> NumberRules() {
  static constexpr NamedRule<NumberRule> kRules[] = {
      {"elements", CountOf, 1}, {"product", ProductWork, 2}, {"times", Times, 1},
      {"extent", ExtentOf, 2},  {"length", LengthOf, 1},     {"rank", RankOf, 1},
      {"quotient_up", QuotientUp, 2}, {"taps", Taps, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
