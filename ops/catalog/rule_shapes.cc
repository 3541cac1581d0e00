// Rules that give a shape.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {

bool NormalizeAxis(Judge& judge, const Expression& at, int64_t value,
                   absl::Span<const int64_t> shape, size_t* axis) {
  // A 0-d tensor counts as one axis.
  const int64_t axes = std::max<int64_t>(static_cast<int64_t>(shape.size()), 1);
  if (value < -axes || value >= axes) {
    return judge.Fail(at, absl::StrCat(value, " is outside [", -axes, ", ", axes - 1,
                                       "] for shape ", ShapeText(shape)));
  }
  *axis = static_cast<size_t>(value < 0 ? value + axes : value);
  return true;
}

bool RankIs(Judge& judge, const Expression& at, const Shape& shape, size_t rank) {
  if (shape.size() == rank) return true;
  return judge.Fail(at, absl::StrCat("rank ", shape.size(), " of shape ", ShapeText(shape),
                                     "; it must be ", rank));
}

namespace {

// Broadcasts a shape of argument `i` with those before it.
bool BroadcastOne(Judge& judge, absl::Span<const Expression> arguments, size_t i,
                  const Shape& shape, bool is_first, Shape* result) {
  if (is_first) {
    *result = shape;
    return true;
  }
  const Shape before = *result;
  // The nearest first.
  const auto first = arguments.first(std::max<size_t>(i, 1));
  const std::vector<Expression> others(first.rbegin(), first.rend());
  if (!Broadcast(shape, before, result)) {
    return judge.Fail(arguments[i],
                      absl::StrCat("shape ", ShapeText(shape), " does not broadcast with ",
                                   judge.NamesOf(others), " ", ShapeText(before)));
  }
  // Two shapes that each fit may not fit together.
  if (result->size() > 8 || CountElements(*result) > INT64_MAX / 8) {
    return judge.Fail(arguments[i],
                      absl::StrCat("broadcast with ", judge.NamesOf(others), ": shape ",
                                   ShapeText(*result), " takes 2^63 bytes or more"));
  }
  return true;
}

}  // namespace

bool BroadcastAll(Judge& judge, absl::Span<const Expression> arguments, Shape* result) {
  result->clear();
  size_t fitted = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    // Results of rules and tensors broadcast alike. Lists take part with each of their tensors;
    // arguments that were left out have none.
    Shape shape;
    if (arguments[i].kind == Expression::Kind::kCall) {
      if (!judge.ShapeOf(arguments[i], &shape)) return false;
      if (!BroadcastOne(judge, arguments, i, shape, fitted++ == 0, result)) return false;
      continue;
    }
    for (const Spec& spec : judge.TensorsOf(arguments[i])) {
      if (!BroadcastOne(judge, arguments, i, spec.shape, fitted++ == 0, result)) return false;
    }
  }
  return true;
}

namespace {

using Arguments = absl::Span<const Expression>;

bool LikeShape(Judge& judge, Arguments arguments, Shape* result) {
  return judge.ShapeOf(arguments[0], result);
}

bool Scalar0d(Judge&, Arguments, Shape* result) {
  result->clear();
  return true;
}

// vector(n, ...): the numbers are the shape.
bool Vector(Judge& judge, Arguments arguments, Shape* result) {
  result->clear();
  for (const Expression& argument : arguments) {
    int64_t extent = 0;
    if (!judge.NumberOf(argument, &extent)) return false;
    if (extent < 0) return judge.Fail(argument, absl::StrCat(extent, " is a negative extent"));
    result->push_back(extent);
  }
  return true;
}

// sizes(attribute): the list is the shape.
bool Sizes(Judge& judge, Arguments arguments, Shape* result) {
  if (arguments[0].kind != Expression::Kind::kAttribute) return judge.ShapeOf(arguments[0], result);
  std::vector<int64_t> sizes;
  if (!judge.NumbersOf(arguments[0], &sizes)) return false;
  if (sizes.size() > 8) {
    return judge.Fail(arguments[0],
                      absl::StrCat("rank ", sizes.size(), " is above the highest, 8"));
  }
  for (const int64_t size : sizes) {
    if (size < 0) return judge.Fail(arguments[0], absl::StrCat(size, " is a negative extent"));
  }
  result->assign(sizes.begin(), sizes.end());
  return true;
}

// reduce(a, dims, keep): all axes if dims is empty or left out.
bool Reduce(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  std::vector<int64_t> dims;
  int64_t keep = 0;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumbersOf(arguments[1], &dims)) return false;
  if (arguments.size() > 2 && !judge.NumberOf(arguments[2], &keep)) return false;
  // As if a 0-d tensor had one axis, which NormalizeAxis allows too. It adds nothing to the result
  // below.
  std::vector<bool> is_reduced(std::max<size_t>(shape.size(), 1), dims.empty());
  for (const int64_t dim : dims) {
    size_t axis = 0;
    if (!NormalizeAxis(judge, arguments[1], dim, shape, &axis)) return false;
    if (is_reduced[axis]) {
      return judge.Fail(arguments[1], absl::StrCat("names axis ", axis, " twice"));
    }
    is_reduced[axis] = true;
  }
  result->clear();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_reduced[axis]) {
      result->push_back(shape[axis]);
    } else if (keep != 0) {
      result->push_back(1);
    }
  }
  return true;
}

// Whether a reduction, a number or a text, is none.
bool IsNone(Judge& judge, const Expression& reduction) {
  const AttributeValue& value = judge.ValueOf(reduction);
  if (const auto* text = std::get_if<std::string>(&value)) return *text == "none";
  const auto* number = std::get_if<int64_t>(&value);
  return number != nullptr && *number == 0;
}

// loss(reduction, shape): 0-d unless the reduction is none.
bool Loss(Judge& judge, Arguments arguments, Shape* result) {
  if (!judge.ShapeOf(arguments[1], result)) return false;
  if (!IsNone(judge, arguments[0])) result->clear();
  return true;
}

// loss1(reduction, shape): [1] unless the reduction is none.
bool Loss1(Judge& judge, Arguments arguments, Shape* result) {
  if (!judge.ShapeOf(arguments[1], result)) return false;
  if (!IsNone(judge, arguments[0])) *result = {1};
  return true;
}

// normalized_mean(a, sizes): the axes that are normalised, the last ones, have extent 1.
bool NormalizedMean(Judge& judge, Arguments arguments, Shape* result) {
  std::vector<int64_t> sizes;
  if (!judge.ShapeOf(arguments[0], result)) return false;
  // The sizes are an attribute, or the shape of a weight tensor.
  if (arguments[1].kind != Expression::Kind::kAttribute) {
    Shape weight;
    if (!judge.ShapeOf(arguments[1], &weight)) return false;
    sizes.assign(weight.begin(), weight.end());
  } else if (!judge.NumbersOf(arguments[1], &sizes)) {
    return false;
  }
  const size_t rank = result->size();
  if (sizes.empty() || sizes.size() > rank ||
      !std::equal(sizes.begin(), sizes.end(),
                  result->end() - static_cast<std::ptrdiff_t>(sizes.size()))) {
    return judge.Fail(arguments[1],
                      absl::StrCat(ShapeText(sizes), " must be the last extents of ",
                                   judge.NameOf(arguments[0]), " ", ShapeText(*result)));
  }
  std::fill(result->end() - static_cast<std::ptrdiff_t>(sizes.size()), result->end(), 1);
  return true;
}

// channels(a): the extent of axis 1.
bool Channels(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  if (!judge.ShapeOf(arguments[0], &shape)) return false;
  if (shape.size() < 2) {
    return judge.Fail(arguments[0],
                      absl::StrCat("rank ", shape.size(), " of shape ", ShapeText(shape),
                                   " has no channels; it must be 2 or more"));
  }
  *result = {shape[1]};
  return true;
}

// groups(a, count): [a's first extent, count].
bool Groups(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  int64_t count = 0;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumberOf(arguments[1], &count)) return false;
  if (shape.empty()) return judge.Fail(arguments[0], "is 0-d");
  if (count < 0) return judge.Fail(arguments[1], absl::StrCat(count, " is a negative extent"));
  *result = {shape[0], count};
  return true;
}

// half(a, dim): an axis of half the extent.
bool Half(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  size_t axis = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &dim) ||
      !NormalizeAxis(judge, arguments[1], dim, *result, &axis)) {
    return false;
  }
  if (!result->empty()) (*result)[axis] /= 2;
  return true;
}

// without(a, axis)
bool Without(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &dim)) return false;
  const auto rank = static_cast<int64_t>(result->size());
  if (dim < 0) dim += rank;
  // An axis that the tensor does not have takes nothing away.
  if (dim >= 0 && dim < rank) result->erase(result->begin() + dim);
  return true;
}

// reduce_or_keep(a, dims, keep, noop): like a, if dims is empty and noop is true.
bool ReduceOrKeep(Judge& judge, Arguments arguments, Shape* result) {
  std::vector<int64_t> dims;
  int64_t noop = 0;
  if (!judge.NumbersOf(arguments[1], &dims) || !judge.NumberOf(arguments[3], &noop)) return false;
  // No dims mean all axes to Reduce, hence the case apart.
  if (dims.empty() && noop != 0) return judge.ShapeOf(arguments[0], result);
  return Reduce(judge, arguments.first(3), result);
}

// range(start, end, step): as many elements as steps.
bool Range(Judge& judge, Arguments arguments, Shape* result) {
  double numbers[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    const auto* scalar = std::get_if<Scalar>(&judge.ValueOf(arguments[i]));
    if (scalar != nullptr) numbers[i] = scalar->AsDouble();
  }
  const auto [start, end, step] = numbers;
  if (step == 0 || !(step == step)) return judge.Fail(arguments[2], "must not be 0");
  // In double, which holds counts up to 2^53 exactly. 2^48 elements are far beyond any memory.
  const double count = std::ceil((end - start) / step);
  if (!(count >= 0)) {
    return judge.Fail(arguments[1],
                      absl::StrCat(end, " lies against the step ", step, " from ", start));
  }
  if (count > 0x1p48)
    return judge.Fail(arguments[1], "makes a shape that takes 2^63 bytes or more");
  *result = {static_cast<int64_t>(count)};
  return true;
}

// tail(a, axis): the extents from an axis on; of -1 the last one.
bool Tail(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  int64_t from = 0;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumberOf(arguments[1], &from)) return false;
  if (from < 0) from += static_cast<int64_t>(shape.size());
  from = std::clamp<int64_t>(from, 0, static_cast<int64_t>(shape.size()));
  result->assign(shape.begin() + from, shape.end());
  return true;
}

}  // namespace

absl::Span<const NamedRule<ShapeRule>> ShapeRules() {
  // The name in descriptions, the function, and the least number of arguments.
  static constexpr NamedRule<ShapeRule> kRules[] = {
      {"like", LikeShape, 1},
      {"broadcast", BroadcastAll, 1},
      {"scalar", Scalar0d, 0},
      {"vector", Vector, 1},
      {"sizes", Sizes, 1},
      {"reduce", Reduce, 2},
      {"loss", Loss, 2},
      {"loss1", Loss1, 2},
      {"normalized_mean", NormalizedMean, 2},
      {"channels", Channels, 1},
      {"tail", Tail, 2},
      {"groups", Groups, 2},
      {"half", Half, 2},
      {"without", Without, 2},
      {"reduce_or_keep", ReduceOrKeep, 4},
      {"range", Range, 3},
  };
  return kRules;
}

}  // namespace opserve::catalog
