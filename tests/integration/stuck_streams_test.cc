// Streams that cannot be stopped. What is queued on one may run until the device is reset, so
// nothing that it uses may serve other requests before.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/training_step.h"

namespace opserve {
namespace {

using server::ClearFaults;
using server::Config;
using server::InjectFaults;
using server::InProcessDaemon;

constexpr TrainingShape kShape = {.batch = 4, .in = 64, .out = 64};
constexpr int64_t kElements = kShape.in * kShape.out;

Tensor Filled(std::vector<int64_t> shape, float value) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return Tensor::Owning<float>(std::move(shape), std::vector<float>(count, value));
}

class StuckStreamsTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr absl::Duration kTimeout = absl::Seconds(1);
  Config ShortWaits() const {
    Config config = InProcessDaemon::OneLane();
    config.execution_timeout = kTimeout;
    config.captured_max_bytes_per_device = GetParam() ? uint64_t{1} << 30 : 0;
    return config;
  }
  ~StuckStreamsTest() override {
    ClearFaults();
    daemon_.EndLeases();
  }

  InProcessDaemon daemon_{ShortWaits()};
  Client& client_ = daemon_.client();
};

// A step of training is given up before AdamW works in its tensors, which it does later; they are
// released, and their memory must not become another tenant's.
TEST_P(StuckStreamsTest, KeepTheTensorsThatTheyMayWrite) {
  const bool is_replayed = GetParam();
  const PreparedProgram step = *client_.Prepare(AdamWStep(kShape, /*donates=*/true).request());
  std::vector<PreparedProgram::Input> inputs = {Filled({kShape.batch, kShape.in}, 1),
                                                Filled({kShape.batch, kShape.out}, 2)};
  std::vector<std::string> handles;
  const auto upload = [&](const Tensor& tensor) {
    const ResidentTensor resident = *client_.Upload(tensor);
    handles.push_back(resident.handle);
    inputs.emplace_back(resident);
  };
  upload(Tensor::Owning<int64_t>({1}, std::vector<int64_t>{0}));
  for (int i = 0; i < 3; ++i) upload(Filled({kShape.in, kShape.out}, 0));
  // Until it is captured, or its parts are known to be short and are launched together.
  int runs = 0;
  EXPECT_TRUE(Await([&] {
    const auto response = step(inputs, {.want_receipt = true});
    EXPECT_TRUE(response.ok()) << response.status();
    return is_replayed ? response.ok() && response->receipt->replayed() : ++runs == 5;
  }));

  InjectFaults("call=aclrtStreamAbort,code=107019,count=all;kernel=aclnnMatmul,slow=3000000");
  EXPECT_FALSE(step(inputs).ok());
  ClearFaults();
  client_.Release(handles).IgnoreError();  // some are broken, and gone already
  const auto& memory = daemon_.daemon().scheduler().Find(0)->device().memory();
  // The request may have them a moment longer than its answer takes.
  EXPECT_TRUE(Await([&memory] {
    return memory.statistics().retired_bytes >= 3 * kElements * sizeof(float);
  })) << memory.statistics().retired_bytes;

  std::vector<ResidentTensor> others;
  for (int i = 0; i < 16; ++i) {
    others.push_back(*client_.Upload(Filled({kShape.in, kShape.out}, 5)));
  }
  // By then the slow kernel has ended, and the device has run what is queued behind it.
  const absl::Time end = absl::Now() + absl::Seconds(3);
  do {
    for (const ResidentTensor& other : others) {
      const auto tensor = client_.Download(other.handle);
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      const auto values = *tensor->values<float>();
      ASSERT_EQ(std::vector<float>(values.begin(), values.end()), std::vector<float>(kElements, 5));
    }
  } while (absl::Now() < end);
  EXPECT_EQ(daemon_.daemon().scheduler().Find(0)->device().generation(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Runs, StuckStreamsTest, ::testing::Bool(),
                         [](const auto& run) { return run.param ? "Replayed" : "Launched"; });

}  // namespace
}  // namespace opserve
