#include "ops/catalog/golden_rules.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/catalog/dtypes.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

std::string TextOf(const Spec& spec) {
  return absl::StrCat(DtypeName(spec.dtype), " ", ShapeText(spec.shape));
}

std::string TextOf(const Problem& problem) {
  return absl::StrCat("the rules refuse it: ", problem.argument,
                      problem.argument.empty() ? "" : ": ", problem.text);
}

}  // namespace

std::string ContradictionOf(const OperatorDescriptor& descriptor, const GoldenCase& golden) {
  std::vector<Spec> tensors;
  std::vector<uint32_t> ends;
  // As CallSpec has them: all tensors in a row, and the end of each input.
  for (const std::vector<GoldenCase::Tensor>& input : golden.inputs) {
    for (const GoldenCase::Tensor& tensor : input) tensors.push_back(tensor.spec);
    ends.push_back(static_cast<uint32_t>(tensors.size()));
  }
  const CallSpec call{tensors, ends, golden.attributes};
  // As the daemon runs golden cases: the outputs that the case has, in the dtypes that it has.
  absl::InlinedVector<bool, 4> wanted;
  absl::InlinedVector<std::optional<aclDataType>, 4> asked;
  for (size_t i = 0; i < golden.outputs.size(); ++i) {
    const std::vector<GoldenCase::Tensor>& output = golden.outputs[i];
    const bool has_choice = !output.empty() && !descriptor.outputs[i].dtypes.empty();
    // A list may have no tensors and still be an output.
    wanted.push_back(!output.empty() || descriptor.outputs[i].is_list);
    asked.push_back(has_choice ? std::optional(output.front().spec.dtype) : std::nullopt);
  }
  Judge judge(descriptor, call, Names::kCatalogue);
  Results results;
  if (!judge.Check() || !judge.Infer(wanted, asked, &results) || !judge.CheckForDaemon(results)) {
    return TextOf(judge.problem());
  }
  for (size_t i = 0; i < golden.outputs.size(); ++i) {
    const uint32_t begin = i == 0 ? 0 : results.ends[i - 1];
    const std::vector<GoldenCase::Tensor>& expected = golden.outputs[i];
    const std::string& name = descriptor.outputs[i].name;
    if (results.ends[i] - begin != expected.size()) {
      return absl::StrCat("the rules give ", results.ends[i] - begin, " tensors as ", name,
                          ", it has ", expected.size());
    }
    for (size_t t = 0; t < expected.size(); ++t) {
      const Spec& given = results.tensors[begin + t];
      if (given == expected[t].spec) continue;
      return absl::StrCat("the rules give ", TextOf(given), " as ", name, ", it has ",
                          TextOf(expected[t].spec));
    }
  }
  return "";
}

}  // namespace opserve::catalog
