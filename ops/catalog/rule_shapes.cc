// Rules that give a shape.
#include <algorithm>
#include <cmath>
#include <utility>

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

bool RankIs(Judge& judge, const Expression& at, const Shape& shape, size_t rank) {
  if (shape.size() == rank) return true;
  return judge.Fail(at, absl::StrCat("rank ", shape.size(), " of shape ", ShapeText(shape),
                                     "; it must be ", rank));
}

bool InnerFits(Judge& judge, Arguments arguments, const Shape& a, const Shape& b, int64_t columns,
               int64_t rows) {
  if (columns == rows) return true;
  return judge.Fail(arguments[1], absl::StrCat("shape ", ShapeText(b), " has ", rows, " rows; ",
                                               judge.NameOf(arguments[0]), " ", ShapeText(a),
                                               " has ", columns, " columns"));
}

// matmul(a, b): as torch.matmul, with vectors and batches.
bool Matmul(Judge& judge, Arguments arguments, Shape* result) {
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
  // The side that is 0-d is named.
  for (size_t i = 0; i < 2; ++i) {
    if (i == 0 ? a.empty() : b.empty()) return judge.Fail(arguments[i], "is 0-d");
  }
  // A vector on the left is a row, on the right a column; its axis does not appear in the result.
  const int64_t columns = a.back();
  const int64_t rows = b.size() == 1 ? b[0] : b[b.size() - 2];
  if (!InnerFits(judge, arguments, a, b, columns, rows)) return false;
  const Shape batch_a = a.size() > 2 ? Shape(a.begin(), a.end() - 2) : Shape();
  const Shape batch_b = b.size() > 2 ? Shape(b.begin(), b.end() - 2) : Shape();
  if (!Broadcast(batch_a, batch_b, result)) {
    return judge.Fail(
        arguments[1],
        absl::StrCat("batches ", ShapeText(batch_b), " do not broadcast with those of ",
                     judge.NameOf(arguments[0]), " ", ShapeText(batch_a)));
  }
  if (a.size() > 1) result->push_back(a[a.size() - 2]);
  if (b.size() > 1) result->push_back(b.back());
  return true;
}

bool Mm(Judge& judge, Arguments arguments, Shape* result) {
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
  if (!RankIs(judge, arguments[0], a, 2) || !RankIs(judge, arguments[1], b, 2)) return false;
  if (!InnerFits(judge, arguments, a, b, a[1], b[0])) return false;
  *result = {a[0], b[1]};
  return true;
}

bool Bmm(Judge& judge, Arguments arguments, Shape* result) {
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
  if (!RankIs(judge, arguments[0], a, 3) || !RankIs(judge, arguments[1], b, 3)) return false;
  // Equal ranks of 3 leave batches that may still broadcast, as 1 against n.
  return Matmul(judge, arguments, result);
}

// mv(a, vector)
bool Mv(Judge& judge, Arguments arguments, Shape* result) {
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
  if (!RankIs(judge, arguments[0], a, 2) || !RankIs(judge, arguments[1], b, 1)) return false;
  return Matmul(judge, arguments, result);
}

bool Transpose(Judge& judge, Arguments arguments, Shape* result) {
  if (!judge.ShapeOf(arguments[0], result)) return false;
  if (result->size() > 1) std::swap((*result)[result->size() - 1], (*result)[result->size() - 2]);
  return true;
}

// permute(a, dims): each axis once.
bool Permute(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  std::vector<int64_t> dims;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumbersOf(arguments[1], &dims)) return false;
  if (dims.size() != shape.size()) {
    return judge.Fail(arguments[1], absl::StrCat("has ", dims.size(), " entries; there must be ",
                                                 shape.size(), ", one for each axis"));
  }
  std::vector<bool> seen(shape.size());
  result->clear();
  for (const int64_t dim : dims) {
    size_t axis = 0;
    if (!NormalizeAxis(judge, arguments[1], dim, shape, &axis)) return false;
    if (seen[axis]) return judge.Fail(arguments[1], absl::StrCat("names axis ", axis, " twice"));
    seen[axis] = true;
    result->push_back(shape[axis]);
  }
  return true;
}

// cat(list, dim): equal shapes but for the axis; tensors of shape [0] do not count.
bool Cat(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  if (!judge.NumberOf(arguments[1], &dim)) return false;
  const absl::Span<const Spec> tensors = judge.TensorsOf(arguments[0]);
  if (tensors.empty()) return judge.Fail(arguments[0], "has no tensor");
  const auto is_nothing = [](const Spec& spec) { return spec.shape == Shape{0}; };
  const auto first = std::find_if_not(tensors.begin(), tensors.end(), is_nothing);
  *result = first == tensors.end() ? Shape{0} : first->shape;
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[1], dim, *result, &axis)) return false;
  // Behind the check of the axis, which counts a 0-d tensor as having one.
  if (result->empty()) return judge.Fail(arguments[0], "has 0-d tensors, which have no axis");
  // Counted up from 0, while `shape` below borrows it so that only the other axes are compared.
  (*result)[axis] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Shape shape = tensors[i].shape;
    if (is_nothing(tensors[i])) continue;
    // -1: fewer axes than the first tensor, so the shapes differ anyway.
    const int64_t extent = axis < shape.size() ? std::exchange(shape[axis], (*result)[axis]) : -1;
    if (shape != *result) {
      return judge.Fail(arguments[0], absl::StrCat("tensor ", i, " of shape ",
                                                   ShapeText(tensors[i].shape), " does not fit ",
                                                   ShapeText(first->shape), " along axis ", axis));
    }
    if (__builtin_add_overflow((*result)[axis], extent, &(*result)[axis])) {
      return judge.Fail(arguments[0], "takes 2^63 bytes or more");
    }
  }
  return true;
}

// stack(list, dim): equal shapes.
bool Stack(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  if (!judge.NumberOf(arguments[1], &dim)) return false;
  const absl::Span<const Spec> tensors = judge.TensorsOf(arguments[0]);
  if (tensors.empty()) return judge.Fail(arguments[0], "has no tensor");
  *result = tensors.front().shape;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].shape == *result) continue;
    return judge.Fail(arguments[0],
                      absl::StrCat("tensor ", i, " has shape ", ShapeText(tensors[i].shape),
                                   ", the first one ", ShapeText(*result)));
  }
  Shape with_axis = *result;
  // The new axis may also stand behind the last one.
  with_axis.push_back(1);
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[1], dim, with_axis, &axis)) return false;
  result->insert(result->begin() + static_cast<std::ptrdiff_t>(axis),
                 static_cast<int64_t>(tensors.size()));
  return true;
}

// repeat(a, repeats): as torch.Tensor.repeat.
bool Repeat(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  std::vector<int64_t> repeats;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumbersOf(arguments[1], &repeats))
    return false;
  if (repeats.size() < shape.size() || repeats.size() > 8) {
    return judge.Fail(arguments[1],
                      absl::StrCat("has ", repeats.size(), " entries; there must be from ",
                                   shape.size(), " to 8"));
  }
  shape.insert(shape.begin(), repeats.size() - shape.size(), 1);
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (repeats[axis] < 0) {
      return judge.Fail(arguments[1], absl::StrCat(repeats[axis], " must be 0 or above"));
    }
    if (__builtin_mul_overflow(shape[axis], repeats[axis], &shape[axis])) {
      return judge.Fail(arguments[1], "makes a shape that takes 2^63 bytes or more");
    }
  }
  *result = shape;
  return true;
}

// expand(a, sizes): as torch.Tensor.expand; -1 keeps an extent.
bool Expand(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  std::vector<int64_t> sizes;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.NumbersOf(arguments[1], &sizes)) return false;
  if (sizes.size() < shape.size() || sizes.size() > 8) {
    return judge.Fail(
        arguments[1],
        absl::StrCat("has ", sizes.size(), " entries; there must be from ", shape.size(), " to 8"));
  }
  const size_t lead = sizes.size() - shape.size();
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t own = axis < lead ? 1 : shape[axis - lead];
    // Only an axis that the tensor has can keep its extent.
    if (sizes[axis] == -1 && axis >= lead) sizes[axis] = own;
    if (sizes[axis] < 0 || (own != 1 && own != sizes[axis])) {
      return judge.Fail(arguments[1], absl::StrCat("entry ", axis, " is ", sizes[axis], "; shape ",
                                                   ShapeText(shape), " has ", own, " there"));
    }
  }
  result->assign(sizes.begin(), sizes.end());
  return true;
}

// slice(a, dim, start, end, step): bounds are clamped, step is above 0.
bool Slice(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  // Defaults of numbers that the description leaves out: the whole axis, step 1.
  int64_t bounds[3] = {0, INT64_MAX, 1};
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &dim)) return false;
  for (size_t i = 2; i < std::min<size_t>(arguments.size(), 5); ++i) {
    if (!judge.NumberOf(arguments[i], &bounds[i - 2])) return false;
  }
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[1], dim, *result, &axis)) return false;
  if (result->empty()) return judge.Fail(arguments[0], "is 0-d");
  if (bounds[2] <= 0)
    return judge.Fail(arguments.back(), absl::StrCat(bounds[2], " must be above 0"));
  const int64_t extent = (*result)[axis];
  const auto clamp = [extent](int64_t bound) {
    // Negative bounds count from the end. The sum cannot overflow: one of its terms is negative,
    // the other not.
    return std::clamp<int64_t>(bound < 0 ? bound + extent : bound, 0, extent);
  };
  const int64_t begin = clamp(bounds[0]);
  const int64_t end = std::max(clamp(bounds[1]), begin);
  (*result)[axis] = (end - begin) / bounds[2] + ((end - begin) % bounds[2] != 0);
  return true;
}

// pad(a, padding): pairs from the last axis on, as torch.nn.functional.pad; negative ones cut.
bool Pad(Judge& judge, Arguments arguments, Shape* result) {
  std::vector<int64_t> padding;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumbersOf(arguments[1], &padding))
    return false;
  if (padding.size() % 2 != 0 || padding.size() / 2 > result->size()) {
    return judge.Fail(arguments[1], absl::StrCat("has ", padding.size(),
                                                 " entries; there must be two for each of "
                                                 "at most ",
                                                 result->size(), " axes"));
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    int64_t& extent = (*result)[result->size() - 1 - i / 2];
    // Before and behind in turn. The sign counts once both are added: one may cut, the other fill.
    const bool is_representable = !__builtin_add_overflow(extent, padding[i], &extent);
    if (!is_representable || (i % 2 == 1 && extent < 0)) {
      return judge.Fail(arguments[1],
                        absl::StrCat("makes ", is_representable ? "a negative" : "too large an",
                                     " extent of axis ", result->size() - 1 - i / 2));
    }
  }
  return true;
}

// split(a, sizes, dim): that of one of the pieces.
bool Split(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  std::vector<int64_t> sizes;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumbersOf(arguments[1], &sizes) ||
      !judge.NumberOf(arguments[2], &dim)) {
    return false;
  }
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[2], dim, *result, &axis)) return false;
  if (result->empty()) return judge.Fail(arguments[0], "is 0-d");
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    // A sum that left int64, or a negative piece: equal to no extent.
    if (size < 0 || __builtin_add_overflow(sum, size, &sum)) sum = -1;
    if (sum < 0) break;
  }
  if (sum != (*result)[axis]) {
    return judge.Fail(arguments[1],
                      absl::StrCat("must add up to ", (*result)[axis], ", the extent of ",
                                   judge.NameOf(arguments[0]), " along axis ", axis));
  }
  // Each piece asks for its own shape. Without sizes there is no piece.
  if (judge.item() < sizes.size()) (*result)[axis] = sizes[judge.item()];
  return true;
}

// split_equal(a, size, dim): pieces of `size`, the last one takes the rest.
bool SplitEqual(Judge& judge, Arguments arguments, Shape* result) {
  int64_t size = 0;
  int64_t dim = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &size) ||
      !judge.NumberOf(arguments[2], &dim)) {
    return false;
  }
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[2], dim, *result, &axis)) return false;
  if (result->empty()) return judge.Fail(arguments[0], "is 0-d");
  if (size <= 0) return judge.Fail(arguments[1], absl::StrCat(size, " must be above 0"));
  int64_t& extent = (*result)[axis];
  const auto item = static_cast<int64_t>(judge.item());
  const int64_t pieces = extent / size + (extent % size != 0);
  // The last piece is the rest. Pieces behind it are empty.
  extent = item + 1 < pieces ? size : extent - std::min(item, pieces) * size;
  return true;
}

// embedding(weight, indices): the indices' axes, then a row of weight.
bool Embedding(Judge& judge, Arguments arguments, Shape* result) {
  Shape weight;
  if (!judge.ShapeOf(arguments[0], &weight) || !judge.ShapeOf(arguments[1], result)) return false;
  if (!RankIs(judge, arguments[0], weight, 2)) return false;
  if (result->size() >= 8) return judge.Fail(arguments[1], "rank 8 leaves no axis for the rows");
  result->push_back(weight[1]);
  return true;
}

// index_select(a, dim, index): a vector of indices in place of the axis.
bool IndexSelect(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  Shape index;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &dim) ||
      !judge.ShapeOf(arguments[2], &index)) {
    return false;
  }
  // A scalar index counts as a vector of one.
  if (index.size() > 1) return RankIs(judge, arguments[2], index, 1);
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[1], dim, *result, &axis)) return false;
  if (!result->empty()) (*result)[axis] = index.empty() ? 1 : index[0];
  return true;
}

// topk(a, k, dim)
bool Topk(Judge& judge, Arguments arguments, Shape* result) {
  int64_t k = 0;
  int64_t dim = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &k) ||
      !judge.NumberOf(arguments[2], &dim)) {
    return false;
  }
  size_t axis = 0;
  if (!NormalizeAxis(judge, arguments[2], dim, *result, &axis)) return false;
  const int64_t extent = result->empty() ? 1 : (*result)[axis];
  if (k < 0 || k > extent) {
    return judge.Fail(arguments[1], absl::StrCat(k, " is outside [0, ", extent, "]"));
  }
  if (!result->empty()) (*result)[axis] = k;
  return true;
}

// one_hot(a, classes[, axis]): a further axis, at the end if no place is named.
bool OneHot(Judge& judge, Arguments arguments, Shape* result) {
  int64_t classes = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &classes)) return false;
  if (classes < 1) return judge.Fail(arguments[1], absl::StrCat(classes, " must be above 0"));
  if (result->size() >= 8) return judge.Fail(arguments[0], "rank 8 leaves no axis for the classes");
  int64_t place = -1;
  if (arguments.size() > 2 && !judge.NumberOf(arguments[2], &place)) return false;
  const auto axes = static_cast<int64_t>(result->size()) + 1;
  if (place < -axes || place >= axes) {
    return judge.Fail(arguments[2],
                      absl::StrCat(place, " is outside [", -axes, ", ", axes - 1, "]"));
  }
  result->insert(result->begin() + (place < 0 ? place + axes : place), classes);
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

// outer(a, b): [elements of a, elements of b].
bool Outer(Judge& judge, Arguments arguments, Shape* result) {
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
  *result = {CountElements(a), CountElements(b)};
  return true;
}

// transpose_if(a, flag)
bool TransposeIf(Judge& judge, Arguments arguments, Shape* result) {
  int64_t flag = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &flag)) return false;
  if (flag != 0 && result->size() > 1) {
    std::swap((*result)[result->size() - 1], (*result)[result->size() - 2]);
  }
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

// rows(n, a): [n, a's last extent].
bool Rows(Judge& judge, Arguments arguments, Shape* result) {
  int64_t rows = 0;
  Shape shape;
  if (!judge.NumberOf(arguments[0], &rows) || !judge.ShapeOf(arguments[1], &shape)) return false;
  if (shape.empty()) return judge.Fail(arguments[1], "is 0-d");
  if (rows < 0) return judge.Fail(arguments[0], absl::StrCat(rows, " is a negative extent"));
  *result = {rows, shape.back()};
  return true;
}

// bags(offsets, has_end[, a[, mode]]): a row for each bag; with a's last extent if a is given, and
// the mode, if it is, neither sum (0) nor mean (1).
bool Bags(Judge& judge, Arguments arguments, Shape* result) {
  Shape offsets;
  Shape row;
  int64_t has_end = 0;
  int64_t mode = 2;
  if (!judge.ShapeOf(arguments[0], &offsets) || !judge.NumberOf(arguments[1], &has_end)) {
    return false;
  }
  if (arguments.size() > 2 && !judge.ShapeOf(arguments[2], &row)) return false;
  if (arguments.size() > 3 && !judge.NumberOf(arguments[3], &mode)) return false;
  const int64_t bags = CountElements(offsets) - (has_end != 0 ? 1 : 0);
  if (bags < 0) return judge.Fail(arguments[0], "has no last offset, which ends the last bag");
  *result = {bags};
  if (!row.empty() && mode != 0 && mode != 1) result->push_back(row.back());
  return true;
}

// take(a, dim, index): the index's axes in place of an axis.
bool Take(Judge& judge, Arguments arguments, Shape* result) {
  int64_t dim = 0;
  Shape index;
  size_t axis = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumberOf(arguments[1], &dim) ||
      !judge.ShapeOf(arguments[2], &index) ||
      !NormalizeAxis(judge, arguments[1], dim, *result, &axis)) {
    return false;
  }
  if (!result->empty()) {
    const auto place = result->begin() + static_cast<std::ptrdiff_t>(axis);
    result->insert(result->erase(place), index.begin(), index.end());
  }
  // The bound of every tensor. The extents are checked with the result.
  if (result->size() > 8) return judge.Fail(arguments[2], "makes a result of more than 8 axes");
  return true;
}

// gather_nd(a, indices): the indices' axes but the last, then a's from that extent on.
bool GatherNd(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  Shape indices;
  if (!judge.ShapeOf(arguments[0], &shape) || !judge.ShapeOf(arguments[1], &indices)) return false;
  if (indices.empty()) return judge.Fail(arguments[1], "is 0-d");
  const int64_t depth = indices.back();
  if (depth > static_cast<int64_t>(shape.size())) {
    return judge.Fail(arguments[1],
                      absl::StrCat("its last extent ", depth, " is above the rank of ",
                                   judge.NameOf(arguments[0]), ", ", shape.size()));
  }
  result->assign(indices.begin(), indices.end() - 1);
  result->insert(result->end(), shape.begin() + depth, shape.end());
  if (result->size() > 8) return judge.Fail(arguments[1], "makes a result of more than 8 axes");
  return true;
}

// index(a, indices): the indices' broadcast shape, then a's other axes.
bool Index(Judge& judge, Arguments arguments, Shape* result) {
  Shape shape;
  if (!judge.ShapeOf(arguments[0], &shape)) return false;
  const size_t count = judge.TensorsOf(arguments[1]).size();
  if (count == 0 || count > shape.size()) {
    return judge.Fail(
        arguments[1],
        absl::StrCat("has ", count, " tensors; there must be from 1 to ", shape.size()));
  }
  if (!BroadcastAll(judge, arguments.subspan(1, 1), result)) return false;
  result->insert(result->end(), shape.begin() + static_cast<std::ptrdiff_t>(count), shape.end());
  if (result->size() > 8) return judge.Fail(arguments[1], "makes a result of more than 8 axes");
  return true;
}

// unfold(sizes, dim, size, step): windows of an axis, their elements in a further one.
bool Unfold(Judge& judge, Arguments arguments, Shape* result) {
  std::vector<int64_t> sizes;
  int64_t dim = 0;
  int64_t size = 0;
  int64_t step = 0;
  size_t axis = 0;
  if (!judge.NumbersOf(arguments[0], &sizes) || !judge.NumberOf(arguments[1], &dim) ||
      !judge.NumberOf(arguments[2], &size) || !judge.NumberOf(arguments[3], &step)) {
    return false;
  }
  result->assign(sizes.begin(), sizes.end());
  if (!NormalizeAxis(judge, arguments[1], dim, *result, &axis)) return false;
  if (result->empty() || result->size() >= 8) return judge.Fail(arguments[0], "has 0 or 8 axes");
  if (size < 0 || size > (*result)[axis]) {
    return judge.Fail(arguments[2], absl::StrCat(size, " is outside [0, ", (*result)[axis], "]"));
  }
  if (step <= 0) return judge.Fail(arguments[3], absl::StrCat(step, " must be above 0"));
  (*result)[axis] = ((*result)[axis] - size) / step + 1;
  result->push_back(size);
  return true;
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
      {"matmul", Matmul, 2},
      {"mm", Mm, 2},
      {"bmm", Bmm, 2},
      {"mv", Mv, 2},
      {"transpose", Transpose, 1},
      {"permute", Permute, 2},
      {"cat", Cat, 2},
      {"stack", Stack, 2},
      {"repeat", Repeat, 2},
      {"expand", Expand, 2},
      {"slice", Slice, 2},
      {"pad", Pad, 2},
      {"split", Split, 3},
      {"split_equal", SplitEqual, 3},
      {"embedding", Embedding, 2},
      {"index_select", IndexSelect, 3},
      {"topk", Topk, 3},
      {"one_hot", OneHot, 2},
      {"normalized_mean", NormalizedMean, 2},
      {"channels", Channels, 1},
      {"tail", Tail, 2},
      {"groups", Groups, 2},
      {"half", Half, 2},
      {"without", Without, 2},
      {"outer", Outer, 2},
      {"transpose_if", TransposeIf, 2},
      {"reduce_or_keep", ReduceOrKeep, 4},
      {"rows", Rows, 2},
      {"bags", Bags, 2},
      {"take", Take, 3},
      {"gather_nd", GatherNd, 2},
      {"index", Index, 2},
      {"unfold", Unfold, 4},
      {"range", Range, 3},
  };
  return kRules;
}

}  // namespace opserve::catalog
