// Runs the conformance set through the C ABI, on the generation that OPSERVE_HOST_SOC names.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/conformance/c_abi_call.h"
#include "tests/conformance/case.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device_fixture.h"
#include "tests/conformance/generation.h"

namespace opserve::conformance {
namespace {

const std::string kData = OPSERVE_TEST_DATA_DIR "/conformance";

// The descriptors of a case, with one device address each.
class Descriptors {
 public:
  Descriptors(const Case& of, const std::vector<void*>& addresses, void* output_address) {
    for (size_t i = 0; i < of.inputs.size(); ++i) {
      inputs.push_back(CreateDescriptor(of.inputs[i], addresses[i]));
    }
    output = CreateDescriptor(of.output, output_address);
  }
  ~Descriptors() {
    for (const aclTensor* input : inputs) EXPECT_EQ(aclDestroyTensor(input), 0);
    EXPECT_EQ(aclDestroyTensor(output), 0);
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  std::vector<aclTensor*> inputs;
  aclTensor* output = nullptr;
};

class ConformanceTest : public DeviceTest, public testing::WithParamInterface<const char*> {
 protected:
  // Runs both stages and checks everything a value case promises.
  void RunValueCase(const Case& value_case) {
    std::vector<DeviceBuffer> inputs;
    std::vector<void*> addresses;
    for (const std::optional<Tensor>& input : value_case.inputs) {
      addresses.push_back(inputs.emplace_back(input->storage).address());
    }
    DeviceBuffer output(std::string(value_case.output->storage_bytes(), kGuardByte));
    const Descriptors descriptors(value_case, addresses, output.address());

    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(
        StageOne(value_case, descriptors.inputs, descriptors.output, &workspace_size, &executor),
        0);
    const DeviceBuffer workspace(workspace_size);
    ASSERT_EQ(StageTwo(value_case, workspace_size == 0 ? nullptr : workspace.address(),
                       workspace_size, executor, stream_),
              0);
    ASSERT_EQ(aclrtSynchronizeStream(stream_), 0);

    EXPECT_EQ(CompareStorage(value_case, output.Read()), "");
    for (size_t i = 0; i < inputs.size(); ++i) {
      EXPECT_EQ(inputs[i].Read(), value_case.inputs[i]->storage)
          << value_case.inputs[i]->name << " was changed";
    }
  }

  // Runs stage one; stage two as well where nothing is to be computed.
  void RunStatusCase(const Case& status_case) {
    // Stage one must not read device memory: these addresses lead nowhere.
    void* const nowhere = reinterpret_cast<void*>(0x40);
    const Descriptors descriptors(status_case,
                                  std::vector<void*>(status_case.inputs.size(), nowhere), nowhere);
    for (size_t i = 0; i < status_case.inputs.size(); ++i) {
      ASSERT_EQ(descriptors.inputs[i] != nullptr, status_case.inputs[i].has_value());
    }

    uint64_t workspace_size = 0;
    aclOpExecutor* executor = nullptr;
    const aclnnStatus status =
        StageOne(status_case, descriptors.inputs, descriptors.output,
                 status_case.workspace_size_is_null ? nullptr : &workspace_size,
                 status_case.executor_is_null ? nullptr : &executor);

    ASSERT_EQ(status, ExpectedStatus(status_case, aclrtGetSocName()));
    if (status != 0) {
      EXPECT_EQ(executor, nullptr) << "a failed stage one left an executor";
      EXPECT_NE(aclGetRecentErrMsg(), nullptr);
      return;
    }
    ASSERT_NE(executor, nullptr);
    if (!status_case.expected_workspace) {
      EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
      return;
    }
    EXPECT_EQ(workspace_size, *status_case.expected_workspace);
    EXPECT_EQ(StageTwo(status_case, nullptr, 0, executor, stream_), 0);
    EXPECT_EQ(aclrtSynchronizeStream(stream_), 0);
  }
};

TEST_P(ConformanceTest, Values) {
  for (const Case& value_case : LoadValueCases(kData, GetParam())) {
    SCOPED_TRACE(value_case.id);
    if (ExpectedStatus(value_case, aclrtGetSocName()) == 0) {
      RunValueCase(value_case);
    } else {
      RunStatusCase(value_case);
    }
  }
}

TEST_P(ConformanceTest, Statuses) {
  for (const Case& status_case : LoadStatusCases(kData, GetParam())) {
    SCOPED_TRACE(status_case.id);
    RunStatusCase(status_case);
  }
}

// Where the exit for empty calls stands among the checks of types.
TEST_P(ConformanceTest, EmptyCallsOfEachType) {
  int num_empty = 0;
  for (Case status_case : LoadStatusCases(kData, GetParam())) {
    const auto is_empty = [](const auto& tensor) { return tensor && tensor->num_elements() == 0; };
    if (status_case.expected_status != 0 ||
        std::none_of(status_case.inputs.begin(), status_case.inputs.end(), is_empty)) {
      continue;
    }
    ++num_empty;
    for (const char* dtype : {"FLOAT", "FLOAT16", "BF16"}) {
      SCOPED_TRACE(status_case.id + " of " + dtype);
      for (std::optional<Tensor>& input : status_case.inputs) input->dtype = dtype;
      status_case.output->dtype = dtype;
      RunStatusCase(status_case);
    }
  }
  EXPECT_GT(num_empty, 0);
}

INSTANTIATE_TEST_SUITE_P(Operators, ConformanceTest, testing::ValuesIn(kOperators),
                         [](const auto& info) { return std::string(info.param); });

TEST(ConformanceSetTest, IsComplete) {
  size_t num_values = 0;
  size_t num_statuses = 0;
  for (const char* operator_name : kOperators) {
    num_values += LoadValueCases(kData, operator_name).size();
    num_statuses += LoadStatusCases(kData, operator_name).size();
  }

  EXPECT_EQ(num_values, 804u);
  EXPECT_EQ(num_statuses, 466u);
}

}  // namespace
}  // namespace opserve::conformance
