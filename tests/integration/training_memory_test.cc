// The device memory that a training with AdamW takes at most.
#include <memory>
#include <string>
#include <vector>

#include "client/cpp/prepared_program.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/training_step.h"

namespace opserve {
namespace {

using server::Config;
using server::InProcessDaemon;
using Inputs = std::vector<PreparedProgram::Input>;

constexpr int64_t kBatch = 4;
// Three such tensors, of 10.55 MiB, nearly fill one of the regions of 32 MiB that the pool takes of
// a device: parts of regions that nothing fits in are no matter of the step. In blocks of the next
// size class, 11 MiB, they would need a second region, and leave no room for the gradient.
constexpr int64_t kIn = 1350;
constexpr int64_t kOut = 2048;
constexpr uint64_t kParameterBytes = kIn * kOut * sizeof(float);

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

// With memory for a parameter, both moments, its gradient, and 5 % beside them. Nothing is
// captured: a capture's arena is beside what a step needs.
TEST(TrainingMemoryTest, AStepOfAdamWNeedsNoSecondCopyOfParametersAndState) {
  constexpr uint64_t kNeeded = 4 * kParameterBytes;
  constexpr uint64_t kAllowed = kNeeded + kNeeded / 20;
  Config config = InProcessDaemon::OneLane();
  config.workspace_max_bytes = kAllowed;
  config.captured_max_bytes_per_device = 0;
  InProcessDaemon daemon(config);
  Client& client = daemon.client();
  const std::vector<float> x(kBatch * kIn, 1.0f / kIn);
  const std::vector<float> target(kBatch * kOut, 1);
  const std::vector<int64_t> none = {0};
  const std::vector<float> zeros(kIn * kOut, 0);
  Inputs inputs = {Tensor::Of<float>({kBatch, kIn}, x), Tensor::Of<float>({kBatch, kOut}, target)};
  inputs.emplace_back(OrDie(client.Upload(Tensor::Of<int64_t>({1}, none))));
  for (int i = 0; i < 3; ++i) {
    inputs.emplace_back(OrDie(client.Upload(Tensor::Of<float>({kIn, kOut}, zeros))));
  }
  const PreparedProgram step = OrDie(client.Prepare(
      AdamWStep({.batch = kBatch, .in = kIn, .out = kOut}, /*donates=*/true).request()));
  const auto& memory = daemon.daemon().scheduler().Find(0)->device().memory();
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<Response> response = step(inputs);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_LE(memory.statistics().peak_bytes, kAllowed);
  }
  // The gradient is on the device, too.
  EXPECT_GE(memory.statistics().peak_bytes, kNeeded);
}

}  // namespace
}  // namespace opserve
