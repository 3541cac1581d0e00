#include "ops/catalog/rules.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rule_tables.h"

namespace opserve::catalog {
namespace {

// Elements of the largest shape, as the host CANN takes it, extents of 0 counted as 1: any dtype's
// bytes then fit int64, and strides of empty tensors, too.
constexpr int64_t kMaxElements = INT64_MAX / 16;
constexpr size_t kMaxRank = 8;
// Tensors of a list.
constexpr int64_t kMaxCount = 1 << 16;

bool HasTooManyElements(Shape shape) {
  std::replace(shape.begin(), shape.end(), int64_t{0}, int64_t{1});
  return CountElements(shape) > kMaxElements;
}

// Why a tensor cannot be as its rules say; "": it can. The rules of an operator pack may give
// tensors that its calls cannot have.
std::string ProblemOf(const Spec& spec) {
  const absl::string_view problem =
      spec.dtype == ACL_DT_UNDEFINED ? "has no dtype"
      : spec.shape.size() > kMaxRank ? "has more than 8 axes"
      : std::any_of(spec.shape.begin(), spec.shape.end(), [](int64_t n) { return n < 0; })
          ? "has a negative extent"
      : HasTooManyElements(spec.shape) ? "has 2^59 elements or more"
                                       : "";
  if (problem.empty()) return "";
  return spec.dtype == ACL_DT_UNDEFINED
             ? std::string(problem)
             : absl::StrCat("shape ", ShapeText(spec.shape), " ", problem);
}

int64_t LargestTensor(const CallSpec& call, const Results& results) {
  int64_t largest = 0;
  for (const Spec& spec : call.tensors) largest = std::max(largest, CountElements(spec.shape));
  for (const Spec& spec : results.tensors) largest = std::max(largest, CountElements(spec.shape));
  return largest;
}

Expression OutputAt(size_t index) {
  Expression at;
  at.kind = Expression::Kind::kOutput;
  at.index = index;
  return at;
}

template <typename Descriptor>
const std::string& NameIn(const Descriptor& descriptor, Names names) {
  return names == Names::kVendor ? descriptor.vendor : descriptor.name;
}

std::string Join(absl::Span<const std::string> names, absl::string_view last) {
  if (names.size() <= 1) return names.empty() ? "" : names.front();
  return absl::StrCat(absl::StrJoin(names.first(names.size() - 1), ", "), last, names.back());
}

}  // namespace

bool Judge::CheckAll(const std::vector<Expression>& checks) {
  for (const Expression& check : checks) {
    if (!std::get<CheckRule>(check.function)(*this, check.arguments)) return false;
  }
  return true;
}

bool Judge::CheckResults(const Results& results) {
  results_ = &results;
  return CheckAll(op_.result_checks);
}

bool Judge::CheckForDaemon(const Results& results) {
  return CheckResults(results) && CheckAll(op_.daemon_checks);
}

bool Judge::Infer(absl::Span<const bool> wanted, absl::Span<const std::optional<aclDataType>> asked,
                  Results* results) {
  results->tensors.clear();
  results->ends.clear();
  for (size_t i = 0; i < op_.outputs.size(); ++i) {
    const OutputDescriptor& output = op_.outputs[i];
    if (wanted[i] && output.input) {
      // In place: the input's tensors as they are. A dtype that is asked for does not apply.
      const absl::Span<const Spec> same = call_.input(*output.input);
      results->tensors.insert(results->tensors.end(), same.begin(), same.end());
    } else if (wanted[i]) {
      int64_t count = 1;
      if (output.is_list && !NumberOf(output.count, &count)) return false;
      // Before the loop: the count comes from the call, and each tensor takes memory.
      if (count < 0 || count > kMaxCount) {
        return Fail(OutputAt(i),
                    absl::StrCat(count, " tensors; there may be from 0 to ", kMaxCount));
      }
      // A member, as shape rules of lists ask which tensor they are asked for.
      for (item_ = 0; item_ < static_cast<size_t>(count); ++item_) {
        Spec& spec = results->tensors.emplace_back();
        if (!DtypeOf(output.dtype, &spec.dtype) || !ShapeOf(output.shape, &spec.shape)) {
          return false;
        }
        std::string problem = ProblemOf(spec);
        if (!problem.empty()) return Fail(OutputAt(i), std::move(problem));
        // After the rules: they give the dtype that the operator computes in, the caller the one
        // that is stored.
        if (asked[i]) spec.dtype = *asked[i];
      }
      item_ = 0;
    }
    results->ends.push_back(static_cast<uint32_t>(results->tensors.size()));
  }
  return true;
}

int64_t Judge::CountWork(const Results& results) {
  results_ = &results;
  int64_t work = 0;
  // A rule without an answer for this call leaves the general measure.
  if (op_.work && NumberOf(op_.work, &work)) return std::max<int64_t>(work, 0);
  return LargestTensor(call_, results);
}

int64_t Judge::CountCharge(int64_t work, const Results& results) {
  const int64_t steps = StepsPerElement(*this, op_.work);
  if (steps == 1) return work;
  // Of a product with few rows the operands take longer than the steps.
  return std::max(work / steps, LargestTensor(call_, results));
}

bool Judge::Fail(const Expression& at, std::string text) {
  problem_ = {NameOf(at), std::move(text), /*is_missing=*/false};
  return false;
}

bool Judge::Fail(std::string text) {
  problem_ = {"", std::move(text), /*is_missing=*/false};
  return false;
}

bool Judge::FailMissing(const Expression& at, std::string text) {
  problem_ = {NameOf(at), std::move(text), /*is_missing=*/true};
  return false;
}

std::string Judge::NameOf(const Expression& argument) const {
  switch (argument.kind) {
    case Expression::Kind::kInput:
      return NameIn(op_.inputs[argument.index], names_);
    case Expression::Kind::kOutput:
      return NameIn(op_.outputs[argument.index], names_);
    case Expression::Kind::kAttribute:
      return NameIn(op_.attributes[argument.index], names_);
    case Expression::Kind::kNumber:
      return absl::StrCat(argument.number);
    case Expression::Kind::kCall:
      return NamesOf(argument.arguments);
    default:
      return "";
  }
}

std::string Judge::NamesOf(absl::Span<const Expression> arguments) const {
  std::vector<std::string> names;
  for (const Expression& argument : arguments) {
    if (!IsAbsent(argument)) names.push_back(NameOf(argument));
  }
  return Join(names, " and ");
}

bool Judge::IsAbsent(const Expression& tensor) const {
  return tensor.kind == Expression::Kind::kInput && !op_.inputs[tensor.index].is_list &&
         call_.input(tensor.index).empty();
}

absl::Span<const Spec> Judge::TensorsOf(const Expression& tensor) const {
  if (tensor.kind == Expression::Kind::kInput) return call_.input(tensor.index);
  // Outputs have tensors only once they are inferred.
  if (tensor.kind != Expression::Kind::kOutput || results_ == nullptr) return {};
  const uint32_t begin = tensor.index == 0 ? 0 : results_->ends[tensor.index - 1];
  return absl::MakeConstSpan(results_->tensors)
      .subspan(begin, results_->ends[tensor.index] - begin);
}

const AttributeValue& Judge::ValueOf(const Expression& attribute) const {
  // Shared and never destroyed: callers keep references.
  static const AttributeValue& none = *new AttributeValue;
  return attribute.kind == Expression::Kind::kAttribute ? call_.attributes[attribute.index] : none;
}

const Spec& Judge::SpecOf(const Expression& tensor) const {
  static const Spec& none = *new Spec;
  const absl::Span<const Spec> tensors = TensorsOf(tensor);
  // A single tensor goes with all of a list.
  const size_t position = tensors.size() == 1 ? 0 : item_;
  return position < tensors.size() ? tensors[position] : none;
}

bool Judge::ShapeOf(const Expression& expression, Shape* shape) {
  if (const auto* rule = std::get_if<ShapeRule>(&expression.function)) {
    return (*rule)(*this, expression.arguments, shape);
  }
  *shape = SpecOf(expression).shape;
  return true;
}

bool Judge::DtypeOf(const Expression& expression, aclDataType* dtype) {
  if (const auto* rule = std::get_if<DtypeRule>(&expression.function)) {
    return (*rule)(*this, expression.arguments, dtype);
  }
  *dtype =
      expression.kind == Expression::Kind::kDtype ? expression.dtype : SpecOf(expression).dtype;
  return true;
}

bool Judge::NumberOf(const Expression& expression, int64_t* number) {
  *number = expression.number;
  if (const auto* rule = std::get_if<NumberRule>(&expression.function)) {
    return (*rule)(*this, expression.arguments, number);
  }
  if (expression.kind != Expression::Kind::kAttribute) return true;
  const AttributeValue& value = call_.attributes[expression.index];
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    *number = *integer;
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    *number = *truth;
  } else if (const auto* scalar = std::get_if<Scalar>(&value)) {
    // Far within int64, infinities too. A NaN counts as the least, which bounds refuse.
    const double real = scalar->AsDouble();
    *number =
        std::isnan(real) ? INT64_MIN : static_cast<int64_t>(std::clamp(real, -0x1p62, 0x1p62));
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value);
             list && list->size() == 1) {
    // A list of one stands for its entry.
    *number = list->front();
  }
  return true;
}

bool Judge::NumbersOf(const Expression& expression, std::vector<int64_t>* numbers) {
  numbers->clear();
  if (expression.kind == Expression::Kind::kAttribute) {
    const AttributeValue& value = call_.attributes[expression.index];
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      *numbers = *list;
      return true;
    }
    // An optional list that is left out is empty.
    if (value.index() == 0) return true;
  }
  // A single number is a list of one.
  return NumberOf(expression, &numbers->emplace_back());
}

bool Broadcast(absl::Span<const int64_t> a, absl::Span<const int64_t> b, Shape* result) {
  if (a.size() < b.size()) std::swap(a, b);
  const size_t shift = a.size() - b.size();
  // The longer shape; its leading axes stay as they are.
  Shape common(a.begin(), a.end());
  for (size_t axis = 0; axis < b.size(); ++axis) {
    int64_t& extent = common[shift + axis];
    if (extent == 1) {
      extent = b[axis];
    } else if (b[axis] != 1 && b[axis] != extent) {
      return false;
    }
  }
  *result = std::move(common);
  return true;
}

std::string ShapeText(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

int64_t CountElements(absl::Span<const int64_t> shape) {
  // An extent of 0 among large ones makes an empty tensor, however large they are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return INT64_MAX;
  }
  return count;
}

std::string DtypeList(absl::Span<const aclDataType> dtypes) {
  std::vector<std::string> names;
  for (const aclDataType dtype : dtypes) names.push_back(DtypeName(dtype));
  return Join(names, " or ");
}

}  // namespace opserve::catalog
