#include "tests/conformance/generation.h"

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <vector>

namespace opserve::conformance {
namespace {

constexpr int32_t kInvalid = 161002;

// Atlas training (910) and inference (310P) products. MseLossBackward is in no document; it is
// taken to be like L1LossBackward.
struct OlderRule {
  const char* operator_name;
  std::set<std::string> refused;  // types; empty: every call
  bool all;                       // whether all inputs must be of them, or one is enough
  bool output_too;                // whether the output's type counts like an input's
  bool empty_call_precedes;       // whether a call without elements is accepted before that
};

const std::array<OlderRule, 5>& OlderRules() {
  static const std::array<OlderRule, 5> rules = {{
      {"aclnnKlDivBackward", {"BF16", "DOUBLE"}, false, true, false},
      {"aclnnKlDivTargetBackward", {}, false, false, false},
      {"aclnnL1LossBackward", {"BF16"}, true, false, false},  // the type they promote to
      {"aclnnLogSoftmaxBackward", {"BF16"}, false, false, true},
      {"aclnnMseLossBackward", {"BF16"}, true, false, false},
  }};
  return rules;
}

bool IsOlder(const std::string& soc) {
  static const std::set<std::string> newer = {"Ascend910B3", "Ascend910_9391"};
  static const std::set<std::string> older = {"Ascend910A", "Ascend310P3"};
  if (!newer.contains(soc) && !older.contains(soc)) {
    throw std::invalid_argument("of which generation is " + soc + "?");
  }
  return older.contains(soc);
}

bool IsRefused(const OlderRule& rule, const Case& of) {
  if (rule.refused.empty()) return true;
  const auto is_empty = [](const std::optional<Tensor>& t) { return t->num_elements() == 0; };
  if (rule.empty_call_precedes && std::any_of(of.inputs.begin(), of.inputs.end(), is_empty)) {
    return false;
  }
  std::vector<std::string> types;
  for (const std::optional<Tensor>& input : of.inputs) types.push_back(input->dtype);
  if (rule.output_too) types.push_back(of.output->dtype);
  const auto is_refused = [&](const std::string& type) { return rule.refused.contains(type); };
  return rule.all ? std::all_of(types.begin(), types.end(), is_refused)
                  : std::any_of(types.begin(), types.end(), is_refused);
}

}  // namespace

int32_t ExpectedStatus(const Case& of, const std::string& soc) {
  // What Atlas A2 refuses is refused everywhere.
  if (of.expected_status != 0 || !IsOlder(soc)) return of.expected_status;
  for (const OlderRule& rule : OlderRules()) {
    if (rule.operator_name == of.operator_name) return IsRefused(rule, of) ? kInvalid : 0;
  }
  throw std::invalid_argument("unknown operator " + of.operator_name);
}

}  // namespace opserve::conformance
