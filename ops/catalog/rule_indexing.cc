// Rules that give the shapes of what indices select.
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

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

}  // namespace

absl::Span<const NamedRule<ShapeRule>> IndexingRules() {
  static constexpr NamedRule<ShapeRule> kRules[] = {
      {"embedding", Embedding, 2}, {"index_select", IndexSelect, 3},
      {"topk", Topk, 3},           {"one_hot", OneHot, 2},
      {"rows", Rows, 2},           {"bags", Bags, 2},
      {"take", Take, 3},           {"gather_nd", GatherNd, 2},
      {"index", Index, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
