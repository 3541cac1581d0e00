// Rules that only accept or refuse.
#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

// same_dtype(a, b, ...): all tensors that are there have b's dtype; lists by tensor.
bool SameDtype(Judge& judge, Arguments arguments) {
  // The last argument is the measure: the error then names the others.
  const Expression& as = arguments.back();
  if (judge.IsAbsent(as) || judge.TensorsOf(as).empty()) return true;
  const aclDataType own = judge.TensorsOf(as).front().dtype;
  for (const Expression& argument : arguments) {
    for (const Spec& spec : judge.TensorsOf(argument)) {
      if (spec.dtype == own) continue;
      return judge.Fail(argument,
                        absl::StrCat("dtype ", DtypeName(spec.dtype), "; it must be that of ",
                                     judge.NameOf(as), ", ", DtypeName(own)));
    }
  }
  return true;
}

bool SameShape(Judge& judge, Arguments arguments) {
  const Expression& as = arguments.back();
  if (judge.IsAbsent(as)) return true;
  Shape own;
  if (!judge.ShapeOf(as, &own)) return false;
  for (const Expression& argument : arguments.first(arguments.size() - 1)) {
    for (const Spec& spec : judge.TensorsOf(argument)) {
      if (spec.shape == own) continue;
      return judge.Fail(argument,
                        absl::StrCat("shape ", ShapeText(spec.shape), "; it must be that of ",
                                     judge.NameOf(as), ", ", ShapeText(own)));
    }
  }
  return true;
}

// shape_is(a, shape)
bool HasShape(Judge& judge, Arguments arguments) {
  if (judge.IsAbsent(arguments[0])) return true;
  Shape expected;
  if (!judge.ShapeOf(arguments[1], &expected)) return false;
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  if (shape == expected) return true;
  return judge.Fail(arguments[0],
                    absl::StrCat("shape ", ShapeText(shape), "; it must be ", ShapeText(expected)));
}

bool Broadcasts(Judge& judge, Arguments arguments) {
  Shape common;
  return BroadcastAll(judge, arguments, &common);
}

// broadcasts_to(a, shape): without enlarging it.
bool BroadcastsTo(Judge& judge, Arguments arguments) {
  if (judge.IsAbsent(arguments[0])) return true;
  Shape target;
  Shape common;
  if (!judge.ShapeOf(arguments[1], &target)) return false;
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  if (Broadcast(shape, target, &common) && common == target) return true;
  const bool is_call = arguments[1].kind == Expression::Kind::kCall;
  return judge.Fail(
      arguments[0],
      absl::StrCat("shape ", ShapeText(shape), " does not broadcast to ", ShapeText(target),
                   ", the ", is_call ? "broadcast " : "", "shape of ", judge.NameOf(arguments[1])));
}

// rank(a, lowest, highest)
bool Rank(Judge& judge, Arguments arguments) {
  for (const Spec& spec : judge.TensorsOf(arguments[0])) {
    const auto rank = static_cast<int64_t>(spec.shape.size());
    // Bounds are numbers in the description, not arguments of the call.
    const int64_t lowest = arguments[1].number;
    const int64_t highest = arguments.size() > 2 ? arguments[2].number : lowest;
    if (rank >= lowest && rank <= highest) continue;
    return judge.Fail(
        arguments[0],
        absl::StrCat("rank ", rank, " of shape ", ShapeText(spec.shape), "; it must be ",
                     lowest == highest ? absl::StrCat(lowest)
                                       : absl::StrCat("from ", lowest, " to ", highest)));
  }
  return true;
}

// axis(dim, a): an axis of a; any number, where stage one looks at empty tensors no further.
bool Axis(Judge& judge, Arguments arguments) {
  const absl::Span<const Spec> tensors = judge.TensorsOf(arguments[1]);
  if (tensors.empty()) return true;
  if (judge.op().empty_first && CountElements(tensors.front().shape) == 0) return true;
  int64_t dim = 0;
  size_t axis = 0;
  return judge.NumberOf(arguments[0], &dim) &&
         NormalizeAxis(judge, arguments[0], dim, tensors.front().shape, &axis);
}

// axes(dims, a): each an axis, none twice.
bool Axes(Judge& judge, Arguments arguments) {
  std::vector<int64_t> dims;
  if (!judge.NumbersOf(arguments[0], &dims)) return false;
  const Shape& shape = judge.SpecOf(arguments[1]).shape;
  std::set<size_t> seen;
  for (const int64_t dim : dims) {
    size_t axis = 0;
    if (!NormalizeAxis(judge, arguments[0], dim, shape, &axis)) return false;
    if (!seen.insert(axis).second) {
      return judge.Fail(arguments[0], absl::StrCat("names axis ", axis, " twice"));
    }
  }
  return true;
}

// extent(a, axis, number)
bool Extent(Judge& judge, Arguments arguments) {
  if (judge.IsAbsent(arguments[0])) return true;
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  int64_t axis = arguments[1].number;
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  int64_t expected = 0;
  if (!judge.NumberOf(arguments[2], &expected)) return false;
  if (axis >= 0 && axis < static_cast<int64_t>(shape.size()) && shape[axis] == expected)
    return true;
  return judge.Fail(arguments[0],
                    absl::StrCat("shape ", ShapeText(shape), "; its extent ", arguments[1].number,
                                 " must be ", expected, ", that of ", judge.NameOf(arguments[2])));
}

// length(list, lowest, highest)
bool Length(Judge& judge, Arguments arguments) {
  int64_t length = 0;
  if (arguments[0].kind == Expression::Kind::kAttribute) {
    const AttributeValue& value = judge.ValueOf(arguments[0]);
    // Left out: no list to measure.
    if (value.index() == 0) return true;
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) length = list->size();
    if (const auto* list = std::get_if<std::vector<bool>>(&value)) length = list->size();
    if (const auto* list = std::get_if<std::vector<double>>(&value)) length = list->size();
  } else {
    length = static_cast<int64_t>(judge.TensorsOf(arguments[0]).size());
  }
  int64_t lowest = 0;
  if (!judge.NumberOf(arguments[1], &lowest)) return false;
  int64_t highest = lowest;
  if (arguments.size() > 2 && !judge.NumberOf(arguments[2], &highest)) return false;
  if (length >= lowest && length <= highest) return true;
  return judge.Fail(arguments[0], absl::StrCat("has ", length, " entries; there must be ",
                                               lowest == highest ? absl::StrCat(lowest)
                                                                 : absl::StrCat("from ", lowest,
                                                                                " to ", highest)));
}

// same_length(list, list, ...)
bool SameLength(Judge& judge, Arguments arguments) {
  const size_t expected = judge.TensorsOf(arguments.back()).size();
  for (const Expression& argument : arguments) {
    const size_t length = judge.TensorsOf(argument).size();
    // An optional list may be left out as a whole.
    if (length == expected ||
        (length == 0 && !judge.op().inputs.empty() && argument.kind == Expression::Kind::kInput &&
         judge.op().inputs[argument.index].is_optional)) {
      continue;
    }
    return judge.Fail(argument, absl::StrCat("has ", length, " tensors, ",
                                             judge.NameOf(arguments.back()), " has ", expected));
  }
  return true;
}

// lists_like(list, other): as long, with equal shapes and dtypes.
bool ListsLike(Judge& judge, Arguments arguments) {
  if (!SameLength(judge, arguments)) return false;
  const absl::Span<const Spec> as = judge.TensorsOf(arguments.back());
  for (const Expression& argument : arguments) {
    const absl::Span<const Spec> tensors = judge.TensorsOf(argument);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] == as[i]) continue;
      return judge.Fail(
          argument,
          absl::StrCat("tensor ", i, " is ", DtypeName(tensors[i].dtype), " ",
                       ShapeText(tensors[i].shape), "; that of ", judge.NameOf(arguments.back()),
                       " is ", DtypeName(as[i].dtype), " ", ShapeText(as[i].shape)));
    }
  }
  return true;
}

// double_alone(a, b, ...): DOUBLE goes only with DOUBLE.
bool DoubleAlone(Judge& judge, Arguments arguments) {
  size_t doubles = 0;
  size_t all = 0;
  std::string found;
  for (const Expression& argument : arguments) {
    for (const Spec& spec : judge.TensorsOf(argument)) {
      ++all;
      doubles += spec.dtype == ACL_DOUBLE;
      absl::StrAppend(&found, found.empty() ? "" : ", ", judge.NameOf(argument),
                      found.empty() ? " is " : " ", DtypeName(spec.dtype));
    }
  }
  if (doubles == 0 || doubles == all) return true;
  return judge.Fail(absl::StrCat("DOUBLE does not mix with other dtypes: ", found));
}

bool NotEmpty(Judge& judge, Arguments arguments) {
  for (const Expression& argument : arguments) {
    for (const Spec& spec : judge.TensorsOf(argument)) {
      if (CountElements(spec.shape) > 0) continue;
      return judge.Fail(argument, absl::StrCat("shape ", ShapeText(spec.shape), " is empty"));
    }
  }
  return true;
}

// elements(a, lowest, highest)
bool Elements(Judge& judge, Arguments arguments) {
  int64_t lowest = 0;
  if (!judge.NumberOf(arguments[1], &lowest)) return false;
  int64_t highest = lowest;
  if (arguments.size() > 2 && !judge.NumberOf(arguments[2], &highest)) return false;
  for (const Spec& spec : judge.TensorsOf(arguments[0])) {
    const Shape& shape = spec.shape;
    const int64_t count = CountElements(shape);
    if (count >= lowest && count <= highest) continue;
    return judge.Fail(
        arguments[0],
        absl::StrCat("shape ", ShapeText(shape), " has ", count, " elements; there must be ",
                     lowest == highest ? absl::StrCat(lowest)
                                       : absl::StrCat("from ", lowest, " to ", highest)));
  }
  return true;
}

double LeastOf(const AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* scalar = std::get_if<Scalar>(&value)) return scalar->AsDouble();
  // Above 0, so that an empty list passes both checks of the sign.
  double least = 1;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t number : *list) least = std::min(least, static_cast<double>(number));
  } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    // Not by std::min alone, which passes over a NaN.
    for (const double number : *reals)
      least = number < least || std::isnan(number) ? number : least;
  }
  return least;
}

// positive(attribute, ...): numbers, and all of a list.
bool Positive(Judge& judge, Arguments arguments) {
  for (const Expression& argument : arguments) {
    const double least = LeastOf(judge.ValueOf(argument));
    // A NaN fails as well.
    if (!(least > 0)) return judge.Fail(argument, absl::StrCat(least, " must be above 0"));
  }
  return true;
}

bool NotNegative(Judge& judge, Arguments arguments) {
  for (const Expression& argument : arguments) {
    const double least = LeastOf(judge.ValueOf(argument));
    if (!(least >= 0)) return judge.Fail(argument, absl::StrCat(least, " must be 0 or above"));
  }
  return true;
}

bool NotZero(Judge& judge, Arguments arguments) {
  for (const Expression& argument : arguments) {
    if (LeastOf(judge.ValueOf(argument)) == 0) {
      return judge.Fail(argument, "must not be 0");
    }
  }
  return true;
}

// not_negative_if(flag, attribute): where the flag is true.
bool NotNegativeIf(Judge& judge, Arguments arguments) {
  int64_t flag = 0;
  if (!judge.NumberOf(arguments[0], &flag)) return false;
  return flag == 0 || NotNegative(judge, arguments.subspan(1));
}

// at_most(attribute, number)
bool AtMost(Judge& judge, Arguments arguments) {
  int64_t value = 0;
  int64_t highest = 0;
  if (!judge.NumberOf(arguments[0], &value) || !judge.NumberOf(arguments[1], &highest))
    return false;
  if (value <= highest) return true;
  return judge.Fail(arguments[0], absl::StrCat(value, " is above ", highest));
}

// at_least(attribute, number)
bool AtLeast(Judge& judge, Arguments arguments) {
  int64_t value = 0;
  int64_t lowest = 0;
  if (!judge.NumberOf(arguments[0], &value) || !judge.NumberOf(arguments[1], &lowest)) return false;
  if (value >= lowest) return true;
  return judge.Fail(arguments[0], absl::StrCat(value, " is below ", lowest));
}

// divides(attribute, number)
bool Divides(Judge& judge, Arguments arguments) {
  int64_t divisor = 0;
  int64_t number = 0;
  if (!judge.NumberOf(arguments[0], &divisor) || !judge.NumberOf(arguments[1], &number))
    return false;
  if (divisor > 0 && number % divisor == 0) return true;
  return judge.Fail(arguments[0], absl::StrCat(divisor, " does not divide ", number, ", ",
                                               judge.NameOf(arguments[1])));
}

// castable(dtype, a): results of this dtype may be stored in a: not fractions in integers, and
// nothing but BOOL in BOOL.
bool Castable(Judge& judge, Arguments arguments) {
  aclDataType from = ACL_DT_UNDEFINED;
  if (!judge.DtypeOf(arguments[0], &from)) return false;
  const aclDataType to = judge.SpecOf(arguments[1]).dtype;
  // DtypeKind is ordered so that a later kind holds the results of earlier ones.
  if (KindOf(from) <= KindOf(to)) return true;
  return judge.Fail(arguments[1], absl::StrCat("dtype ", DtypeName(to), " cannot take a result of ",
                                               DtypeName(from)));
}

bool IsGiven(const Judge& judge, const Expression& argument) {
  if (argument.kind == Expression::Kind::kAttribute) return judge.ValueOf(argument).index() != 0;
  return !judge.TensorsOf(argument).empty();
}

// either(a, b): at least one of two optional arguments.
bool Either(Judge& judge, Arguments arguments) {
  for (const Expression& argument : arguments) {
    if (IsGiven(judge, argument)) return true;
  }
  // No argument of its own: the message names all of them.
  return judge.FailMissing(Expression(),
                           absl::StrCat("one of ", judge.NamesOf(arguments), " must be given"));
}

bool GivenWhere(Judge& judge, Arguments arguments, bool is_true) {
  int64_t flag = 0;
  if (!judge.NumberOf(arguments[0], &flag)) return false;
  if ((flag != 0) != is_true || IsGiven(judge, arguments[1])) return true;
  return judge.Fail(arguments[1],
                    absl::StrCat("is missing; it must be given where ", judge.NameOf(arguments[0]),
                                 " is ", is_true ? "true" : "false"));
}

// given_if(flag, a), given_unless(flag, a)
bool GivenIf(Judge& judge, Arguments arguments) { return GivenWhere(judge, arguments, true); }
bool GivenUnless(Judge& judge, Arguments arguments) { return GivenWhere(judge, arguments, false); }

// absent(a): left out.
bool Absent(Judge& judge, Arguments arguments) {
  return !IsGiven(judge, arguments[0]) || judge.Fail(arguments[0], "must be left out");
}

// absent_if(number, a): left out where the number is not 0.
bool AbsentIf(Judge& judge, Arguments arguments) {
  int64_t number = 0;
  if (!judge.NumberOf(arguments[0], &number)) return false;
  if (number == 0 || !IsGiven(judge, arguments[1])) return true;
  return judge.Fail(arguments[1], absl::StrCat("must be left out where ",
                                               judge.NameOf(arguments[0]), " is ", number));
}

// is(flag, value)
bool Is(Judge& judge, Arguments arguments) {
  int64_t flag = 0;
  if (!judge.NumberOf(arguments[0], &flag)) return false;
  if (flag == arguments[1].number) return true;
  return judge.Fail(arguments[0],
                    absl::StrCat("must be ", arguments[1].number != 0 ? "true" : "false"));
}

// channel_weight(weight, a): one element, or one for each extent of a's axis 1.
bool ChannelWeight(Judge& judge, Arguments arguments) {
  const int64_t count = CountElements(judge.SpecOf(arguments[0]).shape);
  const Shape& shape = judge.SpecOf(arguments[1]).shape;
  // Without an axis 1 there is one channel.
  const int64_t channels = shape.size() < 2 ? 1 : shape[1];
  if (count == 1 || count == channels) return true;
  return judge.Fail(arguments[0],
                    absl::StrCat("has ", count, " elements; there must be 1 or ", channels,
                                 ", the channels of ", judge.NameOf(arguments[1])));
}

// even(a, dim)
bool Even(Judge& judge, Arguments arguments) {
  int64_t dim = 0;
  size_t axis = 0;
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  if (!judge.NumberOf(arguments[1], &dim) ||
      !NormalizeAxis(judge, arguments[1], dim, shape, &axis)) {
    return false;
  }
  if (!shape.empty() && shape[axis] % 2 == 0) return true;
  return judge.Fail(arguments[0], absl::StrCat("shape ", ShapeText(shape),
                                               "; its extent along axis ", axis, " must be even"));
}

// same_elements(a, shape): as many elements.
bool SameElements(Judge& judge, Arguments arguments) {
  if (judge.IsAbsent(arguments[0])) return true;
  Shape expected;
  if (!judge.ShapeOf(arguments[1], &expected)) return false;
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  if (CountElements(shape) == CountElements(expected)) return true;
  return judge.Fail(arguments[0],
                    absl::StrCat("shape ", ShapeText(shape), " has ", CountElements(shape),
                                 " elements; there must be ", CountElements(expected)));
}

// trailing(a, sizes): the last extents of a are these, an attribute or a shape; at least one.
bool Trailing(Judge& judge, Arguments arguments) {
  std::vector<int64_t> sizes;
  if (arguments[1].kind == Expression::Kind::kAttribute) {
    if (!judge.NumbersOf(arguments[1], &sizes)) return false;
  } else {
    Shape shape;
    if (!judge.ShapeOf(arguments[1], &shape)) return false;
    sizes.assign(shape.begin(), shape.end());
  }
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  const auto count = static_cast<std::ptrdiff_t>(sizes.size());
  if (count > 0 && sizes.size() <= shape.size() &&
      std::equal(sizes.begin(), sizes.end(), shape.end() - count)) {
    return true;
  }
  return judge.Fail(arguments[0],
                    absl::StrCat("shape ", ShapeText(shape), " does not end with ",
                                 ShapeText(sizes), ", that of ", judge.NameOf(arguments[1])));
}

// same_rank(a, b): 0-d counts as one axis.
bool SameRank(Judge& judge, Arguments arguments) {
  const size_t rank = std::max<size_t>(judge.SpecOf(arguments[0]).shape.size(), 1);
  const size_t expected = std::max<size_t>(judge.SpecOf(arguments[1]).shape.size(), 1);
  if (rank == expected) return true;
  return judge.Fail(arguments[0], absl::StrCat("rank ", rank, "; it must be that of ",
                                               judge.NameOf(arguments[1]), ", ", expected));
}

// fits(index, a[, dim]): no extent above a's, beside axis dim.
bool Fits(Judge& judge, Arguments arguments) {
  const Shape& shape = judge.SpecOf(arguments[0]).shape;
  const Shape& other = judge.SpecOf(arguments[1]).shape;
  size_t free = SIZE_MAX;
  if (arguments.size() > 2) {
    int64_t dim = 0;
    if (!judge.NumberOf(arguments[2], &dim) ||
        !NormalizeAxis(judge, arguments[2], dim, other, &free)) {
      return false;
    }
  }
  // An empty index reads nothing, so its extents do not matter.
  if (CountElements(shape) == 0) return true;
  for (size_t axis = 0; axis < std::min(shape.size(), other.size()); ++axis) {
    if (axis == free || shape[axis] <= other[axis]) continue;
    return judge.Fail(arguments[0], absl::StrCat("shape ", ShapeText(shape), " is larger than ",
                                                 judge.NameOf(arguments[1]), " ", ShapeText(other),
                                                 " along axis ", axis));
  }
  return true;
}

// same_shapes(list, list): pairwise.
bool SameShapes(Judge& judge, Arguments arguments) {
  if (!SameLength(judge, arguments)) return false;
  const absl::Span<const Spec> as = judge.TensorsOf(arguments.back());
  for (const Expression& argument : arguments) {
    const absl::Span<const Spec> tensors = judge.TensorsOf(argument);
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].shape == as[i].shape) continue;
      return judge.Fail(
          argument,
          absl::StrCat("tensor ", i, " has shape ", ShapeText(tensors[i].shape), ", that of ",
                       judge.NameOf(arguments.back()), " ", ShapeText(as[i].shape)));
    }
  }
  return true;
}

// same_dtypes(list): all its tensors have one dtype.
bool SameDtypes(Judge& judge, Arguments arguments) {
  const absl::Span<const Spec> tensors = judge.TensorsOf(arguments[0]);
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].dtype == tensors[0].dtype) continue;
    return judge.Fail(arguments[0], absl::StrCat("tensor ", i, " is ", DtypeName(tensors[i].dtype),
                                                 ", the first one ", DtypeName(tensors[0].dtype)));
  }
  return true;
}

// output_dtype(out, tensor): the result has this tensor's dtype, whatever was asked for.
bool OutputDtype(Judge& judge, Arguments arguments) {
  const aclDataType only = judge.SpecOf(arguments[1]).dtype;
  for (const Spec& spec : judge.TensorsOf(arguments[0])) {
    if (spec.dtype == only) continue;
    return judge.Fail(arguments[0],
                      absl::StrCat("dtype ", DtypeName(spec.dtype),
                                   " asked for, but it can only be ", DtypeName(only)));
  }
  return true;
}

// written(input, out): an empty input would leave the output as it is.
bool Written(Judge& judge, Arguments arguments) {
  const Shape& input = judge.SpecOf(arguments[0]).shape;
  const Shape& output = judge.SpecOf(arguments[1]).shape;
  if (CountElements(input) != 0 || CountElements(output) == 0) return true;
  return judge.Fail(arguments[0],
                    absl::StrCat("shape ", ShapeText(input), " is empty, but the output ",
                                 ShapeText(output), " is not"));
}

}  // namespace

absl::Span<const NamedRule<CheckRule>> CheckRules() {
  static constexpr NamedRule<CheckRule> kRules[] = {
      {"same_dtype", SameDtype, 2},
      {"same_shape", SameShape, 2},
      {"broadcasts", Broadcasts, 1},
      {"broadcasts_to", BroadcastsTo, 2},
      {"rank", Rank, 2},
      {"axis", Axis, 2},
      {"axes", Axes, 2},
      {"extent", Extent, 3},
      {"length", Length, 2},
      {"same_length", SameLength, 1},
      {"lists_like", ListsLike, 1},
      {"double_alone", DoubleAlone, 1},
      {"not_empty", NotEmpty, 1},
      {"elements", Elements, 2},
      {"positive", Positive, 1},
      {"not_negative", NotNegative, 1},
      {"not_zero", NotZero, 1},
      {"not_negative_if", NotNegativeIf, 2},
      {"at_most", AtMost, 2},
      {"at_least", AtLeast, 2},
      {"divides", Divides, 2},
      {"castable", Castable, 2},
      {"either", Either, 2},
      {"given_if", GivenIf, 2},
      {"given_unless", GivenUnless, 2},
      {"absent", Absent, 1},
      {"absent_if", AbsentIf, 2},
      {"is", Is, 2},
      {"channel_weight", ChannelWeight, 2},
      {"even", Even, 2},
      {"same_elements", SameElements, 2},
      {"trailing", Trailing, 2},
      {"same_rank", SameRank, 2},
      {"fits", Fits, 2},
      {"same_shapes", SameShapes, 2},
      {"same_dtypes", SameDtypes, 1},
      {"unique", Axes, 2},
      {"shape_is", HasShape, 2},
      {"output_dtype", OutputDtype, 2},
      {"written", Written, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
