// Rules that give a number: extents, lengths, work.
#include <algorithm>

#include "absl/strings/str_cat.h"
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
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
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
  if (!judge.NumberOf(arguments[0], &number) || !judge.NumberOf(arguments[1], &divisor))
    return false;
  divisor = std::max<int64_t>(divisor, 1);
  *result = number <= 0 ? 0 : (number - 1) / divisor + 1;
  return true;
}

// windows(shape, weight, transposed): each element of a window's output (transposed: of its input)
// once for each tap of a filter.
bool WindowWork(Judge& judge, Arguments arguments, int64_t* result) {
  Shape shape;
  int64_t transposed = 0;
  if (!judge.ShapeOf(arguments[0], &shape)) return false;
  if (arguments.size() > 2 && !judge.NumberOf(arguments[2], &transposed)) return false;
  const Shape& weight = judge.SpecOf(arguments[1]).shape;
  const int64_t filters = weight.size() < 2 ? 1 : weight[transposed != 0 ? 1 : 0];
  *result = Multiply(CountElements(shape), CountElements(weight) / std::max<int64_t>(filters, 1));
  return true;
}

// area(kernel): the product of a window's extents; a single one counts for both axes.
bool Area(Judge& judge, Arguments arguments, int64_t* result) {
  std::vector<int64_t> extents;
  if (!judge.NumbersOf(arguments[0], &extents)) return false;
  if (extents.size() == 1) extents.push_back(extents.front());
  *result = 1;
  for (const int64_t extent : extents) *result = Multiply(*result, std::max<int64_t>(extent, 0));
  return true;
}

// mask_bytes(a): of a dropout mask, a bit for each element, in whole 16 bytes.
bool MaskBytes(Judge& judge, Arguments arguments, int64_t* result) {
  Shape shape;
  if (!judge.ShapeOf(arguments[0], &shape)) return false;
  const int64_t count = CountElements(shape);
  *result = (count / 128 + (count % 128 != 0)) * 16;
  return true;
}

// parts(a, size, dim): pieces of that size along an axis, at least 1.
bool Parts(Judge& judge, Arguments arguments, int64_t* result) {
  Shape shape;
  int64_t size = 0;
  int64_t dim = 0;
  size_t axis = 0;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumberOf(arguments[1], &size) ||
      !judge.NumberOf(arguments[2], &dim) ||
      !NormalizeAxis(judge, arguments[2], dim, shape, &axis)) {
    return false;
  }
  if (size <= 0) return judge.Fail(arguments[1], absl::StrCat(size, " must be above 0"));
  const int64_t extent = shape.empty() ? 1 : shape[axis];
  *result = std::max<int64_t>(extent / size + (extent % size != 0), 1);
  if (*result > 4096) {
    return judge.Fail(arguments[1],
                      absl::StrCat("makes ", *result, " pieces, at most 4096 allowed"));
  }
  return true;
}

}  // namespace

// Devices are made for products: they load an operand once for many steps. On the host CANN a core
// makes 10 to 30 thousand million steps of a matrix product in a second, 2 thousand million of a
// window over one channel, and some hundred million elements. NPUs are further apart.
int64_t StepsPerElement(Judge& judge, const Expression& work) {
  constexpr int64_t kOfMatrices = 256;
  constexpr int64_t kOfWindows = 16;
  const auto* rule = std::get_if<NumberRule>(&work.function);
  if (rule == nullptr) return 1;
  if (*rule == ProductWork) return kOfMatrices;
  if (*rule != WindowWork) return 1;
  int64_t transposed = 0;
  if (work.arguments.size() > 2 && !judge.NumberOf(work.arguments[2], &transposed)) return 1;
  const Shape& weight = judge.SpecOf(work.arguments[1]).shape;
  const int64_t channels = weight.size() < 2 ? 1 : weight[transposed != 0 ? 0 : 1];
  return std::clamp<int64_t>(channels, 1, kOfWindows);
}

absl::Span<const NamedRule<NumberRule>> NumberRules() {
  static constexpr NamedRule<NumberRule> kRules[] = {
      {"elements", CountOf, 1},       {"product", ProductWork, 2}, {"times", Times, 1},
      {"extent", ExtentOf, 2},        {"length", LengthOf, 1},     {"rank", RankOf, 1},
      {"quotient_up", QuotientUp, 2}, {"windows", WindowWork, 2},  {"area", Area, 1},
      {"mask_bytes", MaskBytes, 1},   {"parts", Parts, 3},         {"size", ExtentOf, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
