// The Open Inference Protocol: what is counted of models.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

class InferenceStatisticsTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }
  InProcessDaemon daemon_;
  const std::unique_ptr<InferenceStub> stub_ = NewInferenceStub(daemon_.target());
};

// Check 29.
TEST_F(InferenceStatisticsTest, EverySnapshotIsOfWholeRequests) {
  std::atomic<bool> is_over = false;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      const auto stub = NewInferenceStub(daemon_.target());
      while (!is_over) EXPECT_TRUE(Infer(*stub, OnesInference(i + 1)).status.ok());
    });
  }
  inference::ModelStatistics previous;
  for (int i = 0; i < 300; ++i) {
    const inference::ModelStatistics now = StatisticsOf(*stub_);
    const inference::InferStatistics& stats = now.inference_stats();
    const uint64_t count = stats.success().count();
    EXPECT_EQ(stats.queue().count(), count);
    EXPECT_EQ(stats.compute_input().count(), count);
    EXPECT_EQ(stats.compute_infer().count(), count);
    EXPECT_EQ(stats.compute_output().count(), count);
    EXPECT_EQ(now.inference_count(), count);
    EXPECT_EQ(now.execution_count(), count);
    // The parts of a request are in the snapshot that has the whole.
    EXPECT_LE(stats.queue().ns() + stats.compute_input().ns() + stats.compute_infer().ns() +
                  stats.compute_output().ns(),
              stats.success().ns());
    const inference::InferStatistics& before = previous.inference_stats();
    EXPECT_GE(count, before.success().count());
    EXPECT_GE(stats.success().ns(), before.success().ns());
    EXPECT_GE(stats.queue().ns(), before.queue().ns());
    EXPECT_GE(stats.compute_input().ns(), before.compute_input().ns());
    EXPECT_GE(stats.compute_infer().ns(), before.compute_infer().ns());
    EXPECT_GE(stats.compute_output().ns(), before.compute_output().ns());
    EXPECT_GE(now.last_inference(), previous.last_inference());
    previous = now;
  }
  is_over = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(StatisticsOf(*stub_).inference_stats().success().count(), 0u);
}

TEST_F(InferenceStatisticsTest, CountsWhatWasTriedAndNotWhatWasRefused) {
  ASSERT_TRUE(Infer(*stub_, OnesInference(3)).status.ok());
  ASSERT_TRUE(IsAllOnes(daemon_.client().Execute(OnesRequest(3)), 3));  // the native protocol
  inference::ModelInferRequest bad = OnesInference(3);
  bad.set_raw_input_contents(1, "");
  EXPECT_FALSE(Infer(*stub_, bad).status.ok());
  InjectFaults("kernel=*,code=561003");
  EXPECT_FALSE(Infer(*stub_, OnesInference(3)).status.ok());

  const inference::ModelStatistics statistics = StatisticsOf(*stub_);
  EXPECT_EQ(statistics.name(), "L1LossBackward");
  EXPECT_EQ(statistics.version(), "1");
  EXPECT_EQ(statistics.inference_stats().success().count(), 2u);
  EXPECT_EQ(statistics.inference_stats().fail().count(), 1u);
  EXPECT_GT(statistics.inference_stats().fail().ns(), 0u);
  EXPECT_GT(statistics.last_inference(), 0u);
  ASSERT_EQ(statistics.batch_stats_size(), 1);
  EXPECT_EQ(statistics.batch_stats(0).batch_size(), 1u);
  EXPECT_EQ(statistics.batch_stats(0).compute_infer().count(), 2u);
}

// Check 30.
TEST_F(InferenceStatisticsTest, WithoutANameTheyAreOfAllModels) {
  grpc::ClientContext context;
  inference::ModelStatisticsResponse all;
  ASSERT_TRUE(stub_->ModelStatistics(&context, {}, &all).ok());
  EXPECT_EQ(all.model_stats_size(), static_cast<int>(catalog::AllOperators().size()));

  grpc::ClientContext other_context;
  inference::ModelStatisticsRequest unknown;
  unknown.set_name("NoSuchModel");
  const grpc::Status status = stub_->ModelStatistics(&other_context, unknown, &all);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("requested model 'NoSuchModel' is not available"));
}

}  // namespace
}  // namespace opserve::server
