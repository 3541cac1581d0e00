// The rules for older generations are not idle: each refuses some cases of the set, and leaves
// some.
#include "tests/conformance/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace opserve::conformance {
namespace {

using testing::Gt;

const std::string kConformanceSet = OPSERVE_TEST_DATA_DIR "/conformance";

// How many of an operator's value cases a chip runs.
int64_t Accepted(const char* operator_name, const std::string& soc) {
  const std::vector<Case> cases = LoadValueCases(kConformanceSet, operator_name);
  return std::count_if(cases.begin(), cases.end(),
                       [&](const Case& c) { return ExpectedStatus(c, soc) == 0; });
}

TEST(GenerationTest, OlderOnesRunPartOfTheSet) {
  for (const char* operator_name : kOperators) {
    SCOPED_TRACE(operator_name);
    const int64_t all = static_cast<int64_t>(LoadValueCases(kConformanceSet, operator_name).size());
    EXPECT_EQ(Accepted(operator_name, "Ascend910B3"), all);
    EXPECT_EQ(Accepted(operator_name, "Ascend910_9391"), all);
    for (const char* soc : {"Ascend910A", "Ascend310P3"}) {
      const int64_t accepted = Accepted(operator_name, soc);
      EXPECT_THAT(all - accepted, Gt(0));
      if (operator_name == std::string("aclnnKlDivTargetBackward")) {
        EXPECT_EQ(accepted, 0);
      } else {
        EXPECT_THAT(accepted, Gt(0));
      }
    }
  }
}

TEST(GenerationTest, AChipThatNobodyKnowsIsAnError) {
  EXPECT_THROW(ExpectedStatus(LoadValueCases(kConformanceSet, kOperators[0]).at(0), "Ascend950PR"),
               std::invalid_argument);
}

}  // namespace
}  // namespace opserve::conformance
