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

// promote(a, b, ...): tensors, lists of them and dtypes, as op::PromoteType of the vendor: 0-d
// tensors count as any other.
bool PromoteAll(Judge& judge, Arguments arguments, aclDataType* result) {
  *result = ACL_DT_UNDEFINED;
  const auto add = [result](aclDataType dtype) {
    *result = *result == ACL_DT_UNDEFINED ? dtype : Promote(*result, dtype);
  };
  for (const Expression& argument : arguments) {
    if (argument.kind == Expression::Kind::kCall || argument.kind == Expression::Kind::kDtype) {
      aclDataType dtype = ACL_DT_UNDEFINED;
      if (!judge.DtypeOf(argument, &dtype)) return false;
      add(dtype);
      continue;
    }
    for (const Spec& spec : judge.TensorsOf(argument)) add(spec.dtype);
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

// float_of(x): FLOAT for dtypes without fractions.
bool FloatOf(Judge& judge, Arguments arguments, aclDataType* result) {
  if (!judge.DtypeOf(arguments[0], result)) return false;
  *result = LiftToKind(*result, DtypeKind::kFloating);
  return true;
}

// sum_of(x): INT64 for dtypes without fractions.
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

// attr(dtype): the attribute's dtype; if it is left out, that of a further argument.
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
