// The judge of calls: evaluates an operator's rules on a call's metadata. The daemon makes precise
// errors of its findings, the host CANN's stage one its status and text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::catalog {

// A rule that a call breaks.
struct Problem {
  std::string argument;     // empty: the call as a whole
  std::string text;         // "shape [2] does not broadcast with self [3]"
  bool is_missing = false;  // an argument that must not be left out here
};

// Metadata of a call. The tensors of all inputs stand one after the other: those of input i are
// [ends[i - 1], ends[i]), none where an optional one is left out.
struct CallSpec {
  absl::Span<const Spec> tensors;
  absl::Span<const uint32_t> ends;
  absl::Span<const AttributeValue> attributes;  // all, in the descriptor's order

  absl::Span<const Spec> input(size_t index) const {
    const uint32_t begin = index == 0 ? 0 : ends[index - 1];
    return tensors.subspan(begin, ends[index] - begin);
  }
};

// The results of a call: the specs of all wanted outputs' tensors, laid out as CallSpec's inputs.
struct Results {
  absl::InlinedVector<Spec, 2> tensors;
  absl::InlinedVector<uint32_t, 2> ends;
};

// Which names problems use: the catalogue's ("grad_output") or the declaration's ("gradOutput").
enum class Names { kCatalogue, kVendor };

// Used by one thread. Holds references to its arguments.
class Judge {
 public:
  Judge(const OperatorDescriptor& op, const CallSpec& call, Names names)
      : op_(op), call_(call), names_(names) {}

  // The operator's checks of its inputs and attributes, in order. Requires accepted dtypes and
  // attributes in range.
  bool Check() { return CheckAll(op_.checks); }
  // Those of them that name outputs. `results`: of Infer, with the dtypes that the caller gives.
  bool CheckResults(const Results& results);
  // CheckResults, and the checks that only the daemon makes.
  bool CheckForDaemon(const Results& results);

  // Dtypes and shapes of the outputs. `wanted` and `asked` are by output: whether it is wanted, and
  // the dtype that the caller asks for, if any. Requires Check().
  bool Infer(absl::Span<const bool> wanted, absl::Span<const std::optional<aclDataType>> asked,
             Results* results);

  // Work of a call, by which the daemon estimates its time. Storage does not matter: a stride of 0
  // lets few bytes stand for any number of elements. Elementwise operators and sums count the
  // elements of the broadcast shape, products m * n * k, windows outputs times taps. INT64_MAX if
  // it is more. Requires `results` of Infer.
  int64_t CountWork(const Results& results);
  // That work in elements, so that one limit holds for all operators: 256 steps of a matrix product
  // count as one, and up to 16 of a window, one for each channel; at least the largest tensor's.
  int64_t CountCharge(int64_t work, const Results& results);

  // The fault found by Check, Infer or CheckForDaemon when it returned false.
  const Problem& problem() const { return problem_; }

  // For rule functions.

  const OperatorDescriptor& op() const { return op_; }
  const CallSpec& call() const { return call_; }
  // Records the problem and returns false. `at`: the argument; nothing: the whole call.
  bool Fail(const Expression& at, std::string text);
  bool Fail(std::string text);
  // The argument is left out and must not be; nothing: one of several.
  bool FailMissing(const Expression& at, std::string text);
  std::string NameOf(const Expression& argument) const;
  // "self", "self and target", "self, target and weight".
  std::string NamesOf(absl::Span<const Expression> arguments) const;

  // Evaluation of arguments.
  bool IsAbsent(const Expression& tensor) const;
  // Tensors of an input or output: one, or those of a list.
  absl::Span<const Spec> TensorsOf(const Expression& tensor) const;
  // The value of an attribute; std::monostate: of anything else.
  const AttributeValue& ValueOf(const Expression& attribute) const;
  // The tensor of an input, or that of a list which belongs to the output being inferred.
  const Spec& SpecOf(const Expression& tensor) const;
  bool ShapeOf(const Expression& expression, Shape* shape);
  bool DtypeOf(const Expression& expression, aclDataType* dtype);
  bool NumberOf(const Expression& expression, int64_t* number);
  // A list of integers: an attribute that is one, or a single number.
  bool NumbersOf(const Expression& expression, std::vector<int64_t>* numbers);
  // The position of the tensor being inferred in its list.
  size_t item() const { return item_; }

 private:
  bool CheckAll(const std::vector<Expression>& checks);

  const OperatorDescriptor& op_;
  const CallSpec& call_;
  const Names names_;
  Problem problem_;
  size_t item_ = 0;
  const Results* results_ = nullptr;
};

// Common shape of two shapes aligned at the last axis, where extents match if equal or if one is 1
// (1 against 0 gives 0). False if they do not broadcast; `result` is then unspecified.
bool Broadcast(absl::Span<const int64_t> a, absl::Span<const int64_t> b, Shape* result);

// "[2,3]".
std::string ShapeText(absl::Span<const int64_t> shape);

// Elements of a shape; INT64_MAX if there are more.
int64_t CountElements(absl::Span<const int64_t> shape);

// "INT32, INT64 or BOOL".
std::string DtypeList(absl::Span<const aclDataType> dtypes);

}  // namespace opserve::catalog
