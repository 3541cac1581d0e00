#include "ops/catalog/expression.h"

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/operator_descriptor.h"
#include "ops/catalog/rule_tables.h"
#include "proto/status/status_macros.h"

namespace opserve::catalog {
namespace {

// Functions in functions; a description needs three levels.
constexpr int kMaxDepth = 8;

// A minus is part of a word: negative numbers are the only use.
bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; }

template <typename Descriptors>
bool FindNamed(const Descriptors& descriptors, absl::string_view name, size_t* index) {
  for (size_t i = 0; i < descriptors.size(); ++i) {
    if (descriptors[i].name != name) continue;
    *index = i;
    return true;
  }
  return false;
}

class Parser {
 public:
  Parser(absl::string_view text, const OperatorDescriptor& descriptor)
      : text_(text), rest_(text), descriptor_(descriptor) {}

  template <typename T>
  absl::StatusOr<Expression> ParseAll() {
    OPSERVE_ASSIGN_OR_RETURN(Expression expression, Parse<T>(0));
    SkipBlanks();
    if (!rest_.empty()) return Error(absl::StrCat("unexpected \"", rest_, "\""));
    return expression;
  }

 private:
  absl::Status Error(absl::string_view problem) const {
    return absl::InvalidArgumentError(absl::StrCat("rule \"", text_, "\": ", problem));
  }

  void SkipBlanks() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  bool Take(char c) {
    SkipBlanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  template <typename T>
  static bool FindIn(absl::Span<const NamedRule<T>> rules, absl::string_view name,
                     RuleFunction* function, size_t* least) {
    for (const NamedRule<T>& rule : rules) {
      if (rule.name != name) continue;
      *function = rule.function;
      *least = rule.least_arguments;
      return true;
    }
    return false;
  }

  // The function of that name. T is void for arguments, which may give anything but checks.
  template <typename T>
  static bool FindFunction(absl::string_view name, RuleFunction* function, size_t* least) {
    // Checks are no values, so they are never arguments.
    constexpr bool kAny = std::is_void_v<T>;
    if constexpr (std::is_same_v<T, CheckRule>) return FindIn(CheckRules(), name, function, least);
    if constexpr (kAny || std::is_same_v<T, ShapeRule>) {
      for (const auto table :
           {ShapeRules(), ProductRules(), MoveRules(), IndexingRules(), WindowRules()}) {
        if (FindIn(table, name, function, least)) return true;
      }
    }
    if constexpr (kAny || std::is_same_v<T, NumberRule>) {
      if (FindIn(NumberRules(), name, function, least)) return true;
    }
    if constexpr (kAny || std::is_same_v<T, DtypeRule>) {
      if (FindIn(DtypeRules(), name, function, least)) return true;
    }
    return false;
  }

  template <typename T>
  absl::StatusOr<Expression> Parse(int depth) {
    // Rules of operator packs come from outside; recursion must not exhaust the stack.
    if (depth > kMaxDepth) return Error("too deep");
    SkipBlanks();
    size_t size = 0;
    while (size < rest_.size() && IsNameCharacter(rest_[size])) ++size;
    const absl::string_view name = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (name.empty()) return Error("a name or number is missing");
    return Take('(') ? ParseCall<T>(name, depth) : ParseName<T>(name);
  }

  // Whether an expression without a function can give a T.
  template <typename T>
  static bool Gives(Expression::Kind kind) {
    const bool is_tensor = kind == Expression::Kind::kInput || kind == Expression::Kind::kOutput;
    if constexpr (std::is_same_v<T, ShapeRule>) return is_tensor;
    if constexpr (std::is_same_v<T, DtypeRule>)
      return is_tensor || kind == Expression::Kind::kDtype;
    if constexpr (std::is_same_v<T, NumberRule>) {
      return kind == Expression::Kind::kNumber || kind == Expression::Kind::kAttribute;
    }
    return std::is_void_v<T>;
  }

  template <typename T>
  absl::StatusOr<Expression> ParseName(absl::string_view name) const {
    Expression found;
    // Arguments first: a description may use the name of a dtype for one. In place, the input is
    // found; the output is the same tensor.
    if (FindNamed(descriptor_.inputs, name, &found.index)) {
      found.kind = Expression::Kind::kInput;
    } else if (FindNamed(descriptor_.attributes, name, &found.index)) {
      found.kind = Expression::Kind::kAttribute;
    } else if (FindNamed(descriptor_.outputs, name, &found.index)) {
      found.kind = Expression::Kind::kOutput;
    } else if (name == "true" || name == "false") {
      found.kind = Expression::Kind::kNumber;
      found.number = name == "true";
    } else if (absl::SimpleAtoi(name, &found.number)) {
      found.kind = Expression::Kind::kNumber;
    } else if (found.dtype = DtypeOfName(name); found.dtype != ACL_DT_UNDEFINED) {
      found.kind = Expression::Kind::kDtype;
    } else {
      return Error(absl::StrCat("\"", name, "\" is no argument, number or dtype"));
    }
    if (!Gives<T>(found.kind)) {
      return Error(absl::StrCat("\"", name, "\" alone is no ",
                                std::is_same_v<T, CheckRule>   ? "check"
                                : std::is_same_v<T, ShapeRule> ? "shape"
                                : std::is_same_v<T, DtypeRule> ? "dtype"
                                                               : "number"));
    }
    return found;
  }

  template <typename T>
  absl::StatusOr<Expression> ParseCall(absl::string_view name, int depth) {
    Expression call;
    call.kind = Expression::Kind::kCall;
    size_t least = 0;
    if (!FindFunction<T>(name, &call.function, &least)) {
      return Error(absl::StrCat("there is no such rule as ", name, " here"));
    }
    // A call without arguments has no comma to look for.
    if (!Take(')')) {
      do {
        OPSERVE_ASSIGN_OR_RETURN(Expression argument, Parse<void>(depth + 1));
        call.arguments.push_back(std::move(argument));
      } while (Take(','));
      if (!Take(')')) return Error("a \")\" is missing");
    }
    // More than the least are the function's to read: lists of arguments and options.
    if (call.arguments.size() < least) {
      return Error(absl::StrCat(name, " needs ", least, " arguments"));
    }
    return call;
  }

  const absl::string_view text_;
  absl::string_view rest_;
  const OperatorDescriptor& descriptor_;
};

}  // namespace

template <typename T>
absl::StatusOr<Expression> ParseRule(absl::string_view text, const OperatorDescriptor& descriptor) {
  return Parser(text, descriptor).ParseAll<T>();
}

template absl::StatusOr<Expression> ParseRule<ShapeRule>(absl::string_view,
                                                         const OperatorDescriptor&);
template absl::StatusOr<Expression> ParseRule<DtypeRule>(absl::string_view,
                                                         const OperatorDescriptor&);
template absl::StatusOr<Expression> ParseRule<NumberRule>(absl::string_view,
                                                          const OperatorDescriptor&);
template absl::StatusOr<Expression> ParseRule<CheckRule>(absl::string_view,
                                                         const OperatorDescriptor&);

}  // namespace opserve::catalog
