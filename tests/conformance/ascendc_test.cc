// Runs the conformance cases of aclnnKlDivTargetBackward through our Ascend C kernel on emulated
// cores.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/conformance/ascendc_call.h"
#include "tests/conformance/case.h"
#include "tests/conformance/compare.h"

namespace opserve::conformance {
namespace {

const std::string kCases = OPSERVE_TEST_DATA_DIR "/conformance";
constexpr const char* kOperator = "aclnnKlDivTargetBackward";

// Local memory as an A2 has it, and so little that every case needs many tiles.
constexpr size_t kLarge = 192 * 1024;
constexpr size_t kSmall = 24 * 1024;

class AscendcConformanceTest : public testing::TestWithParam<size_t> {};

TEST_P(AscendcConformanceTest, ValuesAreRightAndTheSameOnAnyNumberOfCores) {
  const std::vector<Case> cases = LoadValueCases(kCases, kOperator);
  EXPECT_EQ(cases.size(), 156u);
  for (const Case& value_case : cases) {
    SCOPED_TRACE(value_case.id);
    const std::string elements = AscendcRun(value_case, {1, GetParam()});
    EXPECT_EQ(CompareElements(value_case, elements), "");
    for (const int64_t num_cores : {3, 48}) {
      for (const bool last_core_first : {false, true}) {
        EXPECT_TRUE(AscendcRun(value_case, {num_cores, GetParam(), last_core_first}) == elements)
            << num_cores << " cores" << (last_core_first ? ", the last one first" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(UnifiedBuffers, AscendcConformanceTest, testing::Values(kLarge, kSmall),
                         [](const auto& info) { return info.param == kLarge ? "Large" : "Small"; });

TEST(AscendcStatusTest, StageOneRefusesWhatTheOperatorRefuses) {
  const std::vector<Case> cases = LoadStatusCases(kCases, kOperator);
  EXPECT_EQ(cases.size(), 106u);
  for (const Case& status_case : cases) {
    EXPECT_EQ(AscendcStageOne(status_case), status_case.expected_status) << status_case.id;
  }
}

}  // namespace
}  // namespace opserve::conformance
