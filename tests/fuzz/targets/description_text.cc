// Texts of operator packs: a mistake is told with its line, and whatever is accepted can be asked
// about calls of any metadata.
//
// Input: the text.
#include "ops/catalog/description_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "google/protobuf/stubs/logging.h"
#include "ops/catalog/attribute_values.h"
#include "ops/catalog/rules.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::catalog {
namespace {

using fuzz::Check;

constexpr int kCalls = 8;

// A call that the rules may be asked about: accepted dtypes, attributes in range.
class RandomCall {
 public:
  RandomCall(const OperatorDescriptor& op, std::mt19937& random) : op_(op), random_(random) {
    for (const InputDescriptor& input : op.inputs) {
      const int least = input.is_optional || input.is_list ? 0 : 1;
      const int count = least + Pick(input.is_list ? 4 : 2 - least);
      for (int i = 0; i < count; ++i) tensors_.push_back({OneOf(input.dtypes), RandomShape()});
      ends_.push_back(static_cast<uint32_t>(tensors_.size()));
    }
    for (const AttributeDescriptor& attribute : op.attributes) {
      AttributeValue value = RandomValue(attribute.type);
      if (attribute.is_optional && Pick(3) == 0) value = {};
      attributes_.push_back(ProblemOf(attribute, value).empty() ? value : attribute.default_value);
    }
  }

  void Judge() {
    // A required attribute without a default has a value in every call.
    for (size_t i = 0; i < attributes_.size(); ++i) {
      if (attributes_[i].index() == 0 && !op_.attributes[i].is_optional) return;
    }
    const CallSpec call{tensors_, ends_, attributes_};
    class Judge judge(op_, call, Names::kCatalogue);
    std::vector<std::optional<aclDataType>> asked;
    absl::InlinedVector<bool, 4> wanted;
    for (const OutputDescriptor& output : op_.outputs) {
      wanted.push_back(!output.is_masked() || Pick(2) == 0);
      const bool asks = !output.dtypes.empty() && Pick(2) == 0;
      asked.push_back(asks ? std::optional(OneOf(output.dtypes)) : std::nullopt);
    }
    Results results;
    if (!judge.Check() || !judge.Infer(wanted, asked, &results) || !judge.CheckForDaemon(results)) {
      Check(!judge.problem().text.empty(), "a refusal says why");
      return;
    }
    Check(results.ends.size() == op_.outputs.size(), "each output has its tensors");
    for (const Spec& spec : results.tensors) {
      Check(spec.dtype != ACL_DT_UNDEFINED && spec.shape.size() <= 8, "it is a tensor");
      Check(std::all_of(spec.shape.begin(), spec.shape.end(), [](int64_t n) { return n >= 0; }),
            "it has extents");
      Check(CountElements(spec.shape) <= INT64_MAX / 8, "its size can be counted");
    }
    const int64_t work = judge.CountWork(results);
    Check(work >= 0, "work can be counted");
    Check(judge.CountCharge(work, results) >= 0, "and charged");
  }

 private:
  int Pick(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }

  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Pick(static_cast<int>(values.size())))];
  }

  int64_t RandomNumber() {
    static const std::vector<int64_t> kNumbers = {
        0, 1, -1, 2, 3, -2, 7, 100, int64_t{1} << 20, int64_t{1} << 40, INT64_MAX, INT64_MIN};
    return OneOf(kNumbers);
  }

  Shape RandomShape() {
    static const std::vector<int64_t> kExtents = {0, 1, 1, 2, 2, 3, 4, int64_t{1} << 20};
    Shape shape(static_cast<size_t>(Pick(9)));
    for (int64_t& extent : shape) extent = OneOf(kExtents);
    if (CountElements(shape) > INT64_MAX / 8) shape.clear();
    return shape;
  }

  AttributeValue RandomValue(AttributeType type) {
    switch (type) {
      case AttributeType::kInt64:
        return RandomNumber();
      case AttributeType::kBool:
        return Pick(2) == 0;
      case AttributeType::kDouble:
        return static_cast<double>(RandomNumber());
      case AttributeType::kText:
        return std::string("none");
      case AttributeType::kDtype:
        return ACL_FLOAT;
      case AttributeType::kScalar:
        return Pick(2) == 0 ? Scalar{ACL_INT64, RandomNumber()}
                            : Scalar{ACL_FLOAT, static_cast<double>(RandomNumber())};
      case AttributeType::kInt64s: {
        std::vector<int64_t> numbers(static_cast<size_t>(Pick(10)));
        for (int64_t& number : numbers) number = RandomNumber();
        return numbers;
      }
      case AttributeType::kBools:
        return std::vector<bool>(static_cast<size_t>(Pick(5)), true);
      case AttributeType::kDoubles:
        return std::vector<double>(static_cast<size_t>(Pick(5)), 1.5);
    }
    return {};
  }

  const OperatorDescriptor& op_;
  std::mt19937& random_;
  std::vector<Spec> tensors_;
  std::vector<uint32_t> ends_;
  std::vector<AttributeValue> attributes_;
};

void Read(const std::string& text) {
  const auto descriptions = ReadDescriptions(text, "pack");
  if (!descriptions.ok()) {
    Check(descriptions.status().code() == absl::StatusCode::kInvalidArgument,
          "it is the text's fault");
    absl::string_view message = descriptions.status().message();
    Check(absl::StartsWith(message, "pack:") && message.size() > 5 && message[5] >= '1' &&
              message[5] <= '9',
          "an error has its line");
    return;
  }
  std::mt19937 random(static_cast<uint32_t>(text.size()));
  for (const DescribedOperator& described : descriptions->operators) {
    Check(described.line > 0, "an operator has its line");
    Check(!described.descriptor.golden.empty(), "an operator has a golden case");
    for (int i = 0; i < kCalls; ++i) RandomCall(described.descriptor, random).Judge();
  }
}

}  // namespace
}  // namespace opserve::catalog

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of its warnings
  static_cast<void>(quiet);
  opserve::catalog::Read(std::string(opserve::fuzz::ToText(data, size)));
  return 0;
}
