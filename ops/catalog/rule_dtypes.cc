// Rules that give a dtype.
#include <utility>

#include "ops/catalog/dtypes.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

bool LikeDtype(Judge& judge, Arguments arguments, aclDataType* result) {
  return judge.DtypeOf(arguments[0], result);
}

// promote(a, b, ...): tensors, lists of them and dtypes, as torch.result_type: 0-d tensors only
// lift the kind.
bool PromoteAll(Judge& judge, Arguments arguments, aclDataType* result) {
  aclDataType with_axes = ACL_DT_UNDEFINED;
  aclDataType without_axes = ACL_DT_UNDEFINED;
  const auto add = [](aclDataType dtype, aclDataType* common) {
    *common = *common == ACL_DT_UNDEFINED ? dtype : Promote(*common, dtype);
  };
  for (const Expression& argument : arguments) {
    if (argument.kind == Expression::Kind::kCall || argument.kind == Expression::Kind::kDtype) {
      aclDataType dtype = ACL_DT_UNDEFINED;
      if (!judge.DtypeOf(argument, &dtype)) return false;
      add(dtype, &with_axes);
      continue;
    }
    for (const Spec& spec : judge.TensorsOf(argument)) {
      add(spec.dtype, spec.shape.empty() ? &without_axes : &with_axes);
    }
  }
  if (with_axes == ACL_DT_UNDEFINED) std::swap(with_axes, without_axes);
  *result = with_axes;
  if (without_axes != ACL_DT_UNDEFINED && KindOf(without_axes) > KindOf(with_axes)) {
    *result = Promote(with_axes, without_axes);
  }
  return true;
}

// promote_all(a, b, ...): 0-d tensors count as any other.
bool PromoteEqually(Judge& judge, Arguments arguments, aclDataType* result) {
  *result = ACL_DT_UNDEFINED;
  for (const Expression& argument : arguments) {
    for (const Spec& spec : judge.TensorsOf(argument)) {
      *result = *result == ACL_DT_UNDEFINED ? spec.dtype : Promote(*result, spec.dtype);
    }
  }
  return true;
}

aclDataType LiftToKind(aclDataType dtype, DtypeKind kind) {
  if (KindOf(dtype) >= kind) return dtype;
  return kind == DtypeKind::kFloating ? ACL_FLOAT : ACL_INT64;
}

// promote_scalar(a, scalar, ...): a number only lifts the kind.
bool PromoteScalar(Judge& judge, Arguments arguments, aclDataType* result) {
  if (!judge.DtypeOf(arguments[0], result)) return false;
  for (const Expression& argument : arguments.subspan(1)) {
    const AttributeValue& value = judge.ValueOf(argument);
    if (const auto* scalar = std::get_if<Scalar>(&value)) {
      *result = LiftToKind(*result, KindOf(scalar->dtype));
    } else if (std::holds_alternative<double>(value)) {
      *result = LiftToKind(*result, DtypeKind::kFloating);
    }
  }
  return true;
}

// float_of(x): FLOAT for what has no fractions.
bool FloatOf(Judge& judge, Arguments arguments, aclDataType* result) {
  if (!judge.DtypeOf(arguments[0], result)) return false;
  *result = LiftToKind(*result, DtypeKind::kFloating);
  return true;
}

// sum_of(x): INT64 for what has no fractions.
bool SumOf(Judge& judge, Arguments arguments, aclDataType* result) {
  if (!judge.DtypeOf(arguments[0], result)) return false;
  if (!IsFloating(*result)) *result = ACL_INT64;
  return true;
}

// quotient(mode, dtype): of a division: true (mode 0) gives fractions.
bool Quotient(Judge& judge, Arguments arguments, aclDataType* result) {
  int64_t mode = 0;
  if (!judge.NumberOf(arguments[0], &mode) || !judge.DtypeOf(arguments[1], result)) return false;
  if (mode == 0) *result = LiftToKind(*result, DtypeKind::kFloating);
  return true;
}

// range_dtype(start, end, step): INT64 for whole numbers.
bool RangeDtype(Judge& judge, Arguments arguments, aclDataType* result) {
  *result = ACL_INT64;
  for (const Expression& argument : arguments) {
    const auto* scalar = std::get_if<Scalar>(&judge.ValueOf(argument));
    if (scalar != nullptr && IsFloating(scalar->dtype)) *result = ACL_FLOAT;
  }
  return true;
}

// like_or(a, b): b's where a is left out.
bool LikeOr(Judge& judge, Arguments arguments, aclDataType* result) {
  return judge.DtypeOf(arguments[judge.IsAbsent(arguments[0]) ? 1 : 0], result);
}

// attr(dtype): what the attribute says; the dtype of a further argument if it is left out.
bool AttributeDtype(Judge& judge, Arguments arguments, aclDataType* result) {
  const AttributeValue& value = judge.ValueOf(arguments[0]);
  if (const auto* dtype = std::get_if<aclDataType>(&value)) {
    *result = *dtype;
    return true;
  }
  if (const auto* scalar = std::get_if<Scalar>(&value)) {
    *result = scalar->dtype;
    return true;
  }
  *result = ACL_FLOAT;
  return arguments.size() < 2 || judge.DtypeOf(arguments[1], result);
}

}  // namespace

absl::Span<const NamedRule<DtypeRule>> DtypeRules() {
  static constexpr NamedRule<DtypeRule> kRules[] = {
      {"like", LikeDtype, 1},
      {"promote", PromoteAll, 1},
      {"promote_all", PromoteEqually, 1},
      {"promote_scalar", PromoteScalar, 2},
      {"float_of", FloatOf, 1},
      {"sum_of", SumOf, 1},
      {"attr", AttributeDtype, 1},
      {"quotient", Quotient, 2},
      {"range_dtype", RangeDtype, 1},
      {"like_or", LikeOr, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
