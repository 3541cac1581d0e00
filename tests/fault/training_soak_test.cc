// Clients of two tenants train on two devices that capture their steps, while devices break, drain,
// hang and run out of memory, captures fail, steps are cancelled, and programs are released and
// prepared again. A client whose step fails goes on from its last snapshot. Every loss has the bits
// of a training without captures, and in the end nothing is held. Lasts OPSERVE_SOAK_SECONDS
// (default 8), and a few more.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cpp/prepared_program.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/two_tenants.h"
#include "tests/seed.h"
#include "tests/training_step.h"

namespace opserve {
namespace {

using server::AddTwoTenants;
using server::ClearFaults;
using server::Config;
using server::Fault;
using server::HostCount;
using server::InjectFaults;
using server::InProcessDaemon;
using server::MetricValue;

constexpr int kSteps = 64;  // of a training; then it begins anew
constexpr int kSnapshotEvery = 8;

absl::Duration SoakTime() {
  const char* text = std::getenv("OPSERVE_SOAK_SECONDS");
  int seconds = 8;
  if (text != nullptr && !absl::SimpleAtoi(text, &seconds)) std::abort();
  return absl::Seconds(seconds);
}

struct Job {
  const char* tenant;
  TrainingShape shape;
  bool donates;
};
// The first two have the same program. The last one has captures of 200 KiB.
const Job kJobs[] = {
    {"a", {}, true}, {"a", {}, true}, {"b", {}, false}, {"b", {.in = 64, .out = 256}, true}};
constexpr uint64_t kCapturedBytes = 256 << 10;
// Enough for the tenant's trainings with a tensor of kOtherBytes, but not with captures, too.
constexpr uint64_t kTenantBytes = 768 << 10;
constexpr int64_t kOtherBytes = 192 << 10;

// What tensors a training has on the device: steps done, w and its moments.
struct Snapshot {
  int step = 0;
  std::vector<int64_t> done;
  std::array<std::vector<float>, 3> parameters;
};

class Training {
 public:
  Training(const std::string& target, const Job& job, uint32_t seed)
      : job_(job),
        client_(*Client::Connect(target, {.token = job.tenant})),
        random_(seed),
        losses_(kSteps) {}
  ~Training() { GiveTensorsUp(); }

  // A step, or what has to come before it. Errors: of a call.
  absl::Status GoOn(absl::Duration timeout = absl::Seconds(20)) {
    if (!program_) program_ = *client_->Prepare(AdamWStep(job_.shape, job_.donates).request());
    if (inputs_.empty()) OPSERVE_RETURN_IF_ERROR(Restore());
    const auto f = static_cast<float>(step_ % 7);
    const std::vector<float> x(job_.shape.batch * job_.shape.in, 0.5f + f / 8);
    const std::vector<float> y(job_.shape.batch * job_.shape.out, f);
    inputs_[0] = Tensor::Of<float>({job_.shape.batch, job_.shape.in}, x);
    inputs_[1] = Tensor::Of<float>({job_.shape.batch, job_.shape.out}, y);
    const auto response = (*program_)(inputs_, {.timeout = timeout});
    if (!response.ok()) {
      // Whether its tensors are lost is not asked.
      GiveTensorsUp();
      return response.status();
    }
    ++steps_done_;
    OPSERVE_ASSIGN_OR_RETURN(const auto loss, response->results[0].values<float>());
    losses_[step_++] = loss.front();
    if (expected_ != nullptr) {
      EXPECT_EQ(losses_[step_ - 1], (*expected_)[step_ - 1]) << "step " << step_;
    }
    if (step_ == kSteps) {
      GiveTensorsUp();
      snapshot_ = {};
    } else if (step_ % kSnapshotEvery == 0) {
      return Save();
    }
    return absl::OkStatus();
  }

  // Something that clients do. Errors: of a call.
  absl::Status GoOnSomehow() {
    switch (random_() % 24) {
      case 0:
        program_.reset();
        break;
      case 1:
        return GoOn(absl::Milliseconds(1 + random_() % 3));  // ends anywhere in the step
      case 2: {
        const auto other = client_->Upload(
            Tensor::Owning<float>({kOtherBytes / 4}, std::vector<float>(kOtherBytes / 4, 1)));
        if (!other.ok()) return other.status();
        const absl::Status status = GoOn();
        client_->Release({other->handle}).IgnoreError();
        return status;
      }
      default:
        break;
    }
    return GoOn();
  }

  void Expect(const std::vector<float>* losses) { expected_ = losses; }
  void ReleaseProgram() { program_.reset(); }
  const std::vector<float>& losses() const { return losses_; }
  int64_t steps_done() const { return steps_done_; }

 private:
  absl::Status Restore() {
    step_ = snapshot_.step;
    std::vector<PreparedProgram::Input> inputs(2);
    const std::vector<int64_t> none = {0};
    const std::vector<int64_t>& done = step_ == 0 ? none : snapshot_.done;
    OPSERVE_ASSIGN_OR_RETURN(ResidentTensor tensor,
                             client_->Upload(Tensor::Of<int64_t>({1}, done)));
    inputs.emplace_back(std::move(tensor));
    inputs_ = inputs;  // so that they are given up if the others cannot be had
    for (size_t i = 0; i < 3; ++i) {
      std::vector<float> values = snapshot_.parameters[i];
      if (step_ == 0) {
        values.assign(job_.shape.in * job_.shape.out, 0);
        for (size_t j = 0; j < values.size() && i == 0; ++j) {
          values[j] = 0.01f * static_cast<float>(j % 31);
        }
      }
      auto uploaded = client_->Upload(Tensor::Of<float>({job_.shape.in, job_.shape.out}, values));
      if (!uploaded.ok()) {
        GiveTensorsUp();
        return uploaded.status();
      }
      inputs_.emplace_back(*std::move(uploaded));
    }
    return absl::OkStatus();
  }

  absl::Status Save() {
    Snapshot snapshot;
    snapshot.step = step_;
    for (size_t i = 0; i < 4; ++i) {
      const auto result = client_->Download(std::get<ResidentTensor>(inputs_[2 + i]).handle);
      if (!result.ok()) {
        GiveTensorsUp();
        return result.status();
      }
      if (i == 0) {
        OPSERVE_ASSIGN_OR_RETURN(const auto done, result->values<int64_t>());
        snapshot.done.assign(done.begin(), done.end());
      } else {
        OPSERVE_ASSIGN_OR_RETURN(const auto values, result->values<float>());
        snapshot.parameters[i - 1].assign(values.begin(), values.end());
      }
    }
    EXPECT_EQ(snapshot.done[0], step_);
    snapshot_ = std::move(snapshot);
    return absl::OkStatus();
  }

  void GiveTensorsUp() {
    std::vector<std::string> handles;
    for (const PreparedProgram::Input& input : inputs_) {
      if (const auto* tensor = std::get_if<ResidentTensor>(&input))
        handles.push_back(tensor->handle);
    }
    if (!handles.empty()) client_->Release(handles).IgnoreError();
    inputs_.clear();
  }

  const Job& job_;
  const std::unique_ptr<Client> client_;
  std::mt19937 random_;
  std::optional<PreparedProgram> program_;
  std::vector<PreparedProgram::Input> inputs_;  // empty: not uploaded
  Snapshot snapshot_;
  int step_ = 0;
  int64_t steps_done_ = 0;
  std::vector<float> losses_;
  const std::vector<float>* expected_ = nullptr;
};

// What devices, drains and cancelled steps may bring about.
bool IsDocumented(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kInternal:            // an injected fault
    case absl::StatusCode::kNotFound:            // a tensor that was lost
    case absl::StatusCode::kFailedPrecondition:  // likewise
      return true;
    default:
      return false;
  }
}

void TormentOnce(InProcessDaemon& daemon, std::mt19937& random) {
  static constexpr const char* kFaults[] = {
      "kernel=*,hang",
      "kernel=*,code=507035",
      "kernel=aclnnApplyAdamWV2,code=507035,count=2",
      "call=aclmdlRICaptureBegin,code=207000",
      "call=aclmdlRICaptureEnd,code=507903,count=2",
      "call=aclmdlRIExecuteAsync,code=507899,count=2",
      "call=aclrtCreateStream,code=207008",
      "call=aclrtMalloc,code=207001,count=3",
      "call=aclrtMemcpy,code=107002",
      "call=aclrtMemcpyAsync,code=107002",
      "call=aclrtStreamAbort,code=107019;kernel=*,hang",
      "device=0,lost",
      "device=1,lost,resets=2",
  };
  const auto choice = random() % (std::size(kFaults) + 5);
  if (choice < std::size(kFaults)) {
    InjectFaults(kFaults[choice]);
  } else {
    daemon.DrainAndResume(static_cast<int32_t>(choice % 2));
  }
  if (random() % 3 == 0) ClearFaults();
}

// Streams that could not be stopped, captures that could not be ended, and what these use, stay
// until their device is reset.
void ResetDevices(InProcessDaemon& daemon) {
  daemon.AwaitReady();
  for (const auto& service : daemon.daemon().scheduler().devices()) {
    const uint64_t generation = service->device().generation();
    service->device().Quarantine(Fault::kDevice, "by the test");
    EXPECT_TRUE(Await([&] { return service->device().generation() > generation; }));
  }
  daemon.AwaitReady();
}

uint64_t Replays(const InProcessDaemon& daemon) {
  uint64_t replays = 0;
  for (const auto& device : daemon.daemon().scheduler().devices()) {
    replays += device->captured().replays();
  }
  return replays;
}

// The gauges, with nothing taken back for the test's sake.
double CapturedBytesAndPrograms(const InProcessDaemon& daemon) {
  double sum = 0;
  for (const char* device : {"0", "1"}) {
    for (const char* family : {"opserve_captured_programs", "opserve_captured_bytes"}) {
      sum += MetricValue(daemon.daemon(), family, {{"device", device}});
    }
  }
  return sum;
}

class TrainingSoakTest : public ::testing::Test {
 protected:
  static Config SoakConfig(uint64_t captured_bytes) {
    Config config = InProcessDaemon::DefaultConfig();
    AddTwoTenants(&config);
    config.values.mutable_tenant(1)->mutable_device_memory()->set_hard_bytes(kTenantBytes);
    config.tenants = *server::TenantsFrom(config.values);
    config.captured_max_bytes_per_device = captured_bytes;
    config.execution_timeout = absl::Milliseconds(200);
    config.workspace_floor_bytes = 1 << 20;
    config.workspace_decay = absl::Milliseconds(500);
    config.executor_cache_entries = 16;
    return config;
  }

  // Of a daemon that captures nothing.
  static std::vector<float> LossesOf(const Job& job) {
    const InProcessDaemon daemon(SoakConfig(0));
    Training training(daemon.target(), job, 0);
    for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(training.GoOn().ok());
    EXPECT_EQ(Replays(daemon), 0u);
    return training.losses();
  }

  // The daemons have gone.
  void TearDown() override {
    ClearFaults();
    for (const opserveHostCounter counter :
         {OPSERVE_HOST_ALLOCATIONS, OPSERVE_HOST_STREAMS, OPSERVE_HOST_EVENTS,
          OPSERVE_HOST_PINNED_BYTES, OPSERVE_HOST_TENSORS, OPSERVE_HOST_EXECUTORS,
          OPSERVE_HOST_GRAPHS}) {
      EXPECT_EQ(HostCount(counter), 0) << "counter " << counter;
    }
  }
};

TEST_F(TrainingSoakTest, WhateverHappensLossesAreThoseWithoutCaptures) {
  std::vector<std::vector<float>> expected;
  for (const Job& job : kJobs) expected.push_back(LossesOf(job));

  InProcessDaemon daemon(SoakConfig(kCapturedBytes));
  const uint32_t seed = TestSeed(0);
  std::vector<std::unique_ptr<Training>> trainings;
  for (size_t i = 0; i < std::size(kJobs); ++i) {
    trainings.push_back(std::make_unique<Training>(daemon.target(), kJobs[i], seed + i));
    trainings.back()->Expect(&expected[i]);
  }
  const auto train = [&trainings](const auto& go_on) {
    std::vector<std::thread> threads;
    for (const auto& training : trainings) {
      threads.emplace_back([&go_on, training = training.get()] { go_on(*training); });
    }
    for (std::thread& thread : threads) thread.join();
  };

  absl::Notification is_over;
  std::thread torment([&] {
    std::mt19937 random(seed + std::size(kJobs));
    while (!is_over.WaitForNotificationWithTimeout(absl::Milliseconds(50))) {
      TormentOnce(daemon, random);
    }
  });
  const absl::Time end = absl::Now() + SoakTime();
  std::atomic<int64_t> failed = 0;
  train([&](Training& training) {
    while (absl::Now() < end) {
      const absl::Status status = training.GoOnSomehow();
      EXPECT_TRUE(IsDocumented(status)) << status;
      failed += !status.ok();
    }
  });
  is_over.Notify();
  torment.join();
  ClearFaults();
  ResetDevices(daemon);
  const uint64_t replays = Replays(daemon);
  int64_t steps = 0;
  for (const auto& training : trainings) steps += training->steps_done();
  std::fprintf(stderr, "soak: %ld steps, %lu replayed, %ld failures\n", steps, replays,
               failed.load());
  EXPECT_GT(replays, 0u);
  EXPECT_GT(failed, 0);

  // Programs that failed too often are captured no more; their successors are.
  for (const auto& training : trainings) training->ReleaseProgram();
  train([](Training& training) {
    // The first step finds that its tensors are lost.
    EXPECT_TRUE(Await([&] { return training.GoOn().ok(); }));
    for (int i = 0; i < 2 * kSteps; ++i) {
      const absl::Status status = training.GoOn();
      EXPECT_TRUE(status.ok()) << status;
    }
  });
  EXPECT_GT(Replays(daemon), replays);

  trainings.clear();
  EXPECT_TRUE(Await([&daemon] { return CapturedBytesAndPrograms(daemon) == 0; }))
      << CapturedBytesAndPrograms(daemon);
  EXPECT_TRUE(Await([&daemon] { return daemon.HeldByRequests() == 0; }))
      << daemon.HeldByRequests() << " held";
}

}  // namespace
}  // namespace opserve
