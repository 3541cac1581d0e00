// Rules that give the shapes of tensors that are joined, cut, repeated or turned.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

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

}  // namespace

absl::Span<const NamedRule<ShapeRule>> MoveRules() {
  static constexpr NamedRule<ShapeRule> kRules[] = {
      {"permute", Permute, 2}, {"cat", Cat, 2},       {"stack", Stack, 2},
      {"repeat", Repeat, 2},   {"expand", Expand, 2}, {"slice", Slice, 2},
      {"pad", Pad, 2},         {"split", Split, 3},   {"split_equal", SplitEqual, 3},
      {"unfold", Unfold, 4},
  };
  return kRules;
}

}  // namespace opserve::catalog
