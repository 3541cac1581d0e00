// Rules that give the shapes of products of matrices.
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

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

// outer(a, b): [elements of a, elements of b].
bool Outer(Judge& judge, Arguments arguments, Shape* result) {
  Shape a;
  Shape b;
  if (!judge.ShapeOf(arguments[0], &a) || !judge.ShapeOf(arguments[1], &b)) return false;
  *result = {CountElements(a), CountElements(b)};
  return true;
}

bool Transpose(Judge& judge, Arguments arguments, Shape* result) {
  if (!judge.ShapeOf(arguments[0], result)) return false;
  if (result->size() > 1) std::swap((*result)[result->size() - 1], (*result)[result->size() - 2]);
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

}  // namespace

absl::Span<const NamedRule<ShapeRule>> ProductRules() {
  static constexpr NamedRule<ShapeRule> kRules[] = {
      {"matmul", Matmul, 2},
      {"mm", Mm, 2},
      {"bmm", Bmm, 2},
      {"mv", Mv, 2},
      {"transpose", Transpose, 1},
      {"outer", Outer, 2},
      {"transpose_if", TransposeIf, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
