// Prepared programs that a daemon captures and replays: a training with AdamW, whatever ends a
// capture, and memory that somebody else wants.
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/prepared_program.h"
#include "client/cpp/program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/run/prepared_programs.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/two_tenants.h"
#include "tests/training_step.h"

namespace opserve {
namespace {

using server::CapturedRuns;
using server::ClearFaults;
using server::Config;
using server::DeviceService;
using server::HostCount;
using server::InjectFaults;
using server::InProcessDaemon;
using ::testing::Each;
using Inputs = std::vector<PreparedProgram::Input>;

template <typename T>
T OrAbort(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

// A tensor refers to its elements, so they stay.
Tensor Filled(int64_t count, float value) {
  static auto* const all = new std::map<std::pair<int64_t, float>, std::vector<float>>;
  std::vector<float>& elements = (*all)[{count, value}];
  elements.assign(static_cast<size_t>(count), value);
  return Tensor::Of<float>({count}, elements);
}

// Adds its payload `adds` times to its resident tensor, both of `count` FLOATs, and returns the
// first element of the sum.
Program Chain(int adds, int64_t count) {
  Program p;
  const InputOf x = p.Input(v1::DATA_TYPE_FLOAT, {count});
  const InputOf w = p.Input(v1::DATA_TYPE_FLOAT, {count});
  OutputOf sum = p.Add(w, x);
  for (int i = 1; i < adds; ++i) sum = p.Add(sum, x);
  p.Return(p.Adds(View{.base = sum, .dtype = v1::DATA_TYPE_FLOAT, .shape = {1}, .strides = {1}},
                  {.other = 0.0}));
  return p;
}

class CapturedProgramsTest : public ::testing::Test {
 protected:
  static Config Capturing() {
    Config config = InProcessDaemon::OneLane();
    config.captured_max_bytes_per_device = uint64_t{1} << 30;
    return config;
  }
  void Start(const Config& config = Capturing()) {
    daemon_.reset();
    daemon_ = std::make_unique<InProcessDaemon>(config);
  }
  void SetUp() override { Start(); }
  void TearDown() override {
    ClearFaults();
    daemon_->EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_->HeldByRequests() == 0; }))
        << daemon_->HeldByRequests() << " held";
  }

  Client& client() { return daemon_->client(); }
  DeviceService& service() { return *daemon_->daemon().scheduler().Find(0); }
  const CapturedRuns& captured() { return service().captured(); }

  struct Call {
    absl::StatusOr<Response> response = absl::UnknownError("not run");
    bool is_replayed = false;
    int64_t launches = 0;  // charged
    float first = 0;       // element of the first result
  };
  static Call Run(const PreparedProgram& program, const Inputs& inputs) {
    const int64_t launches = HostCount(OPSERVE_HOST_CHARGED_LAUNCHES);
    Call call{program(inputs, {.want_receipt = true})};
    call.launches = HostCount(OPSERVE_HOST_CHARGED_LAUNCHES) - launches;
    if (!call.response.ok()) return call;
    call.is_replayed = call.response->receipt->replayed();
    call.first = OrAbort(call.response->results[0].values<float>()).front();
    return call;
  }

  std::unique_ptr<InProcessDaemon> daemon_;
};

// Long programs are waited for in slices and not captured, until their launches are known to be
// short.
TEST_F(CapturedProgramsTest, FiveHundredNodesAreOneLaunch) {
  constexpr int kNodes = 500;
  const PreparedProgram program = OrAbort(client().Prepare(Chain(kNodes - 1, 16).request()));
  const Inputs inputs = {Filled(16, 1), OrAbort(client().Upload(Filled(16, 100)))};
  const Call launched = Run(program, inputs);
  ASSERT_TRUE(launched.response.ok()) << launched.response.status();
  EXPECT_EQ(launched.launches, kNodes);
  EXPECT_EQ(launched.first, 599);
  Call replayed = launched;
  EXPECT_TRUE(Await([&] {
    replayed = Run(program, inputs);
    return replayed.is_replayed;
  }));
  EXPECT_EQ(replayed.launches, 1);
  EXPECT_GE(launched.launches, 10 * replayed.launches);
  EXPECT_EQ(replayed.first, launched.first);
  EXPECT_EQ(replayed.response->receipt->plan_misses(), 0u);
  EXPECT_EQ(replayed.response->receipt->plan_hits(), static_cast<uint32_t>(kNodes));
}

TEST_F(CapturedProgramsTest, StepsOfAdamWAreReplayedFromTheThirdOn) {
  constexpr int kSteps = 6;
  constexpr TrainingShape kShape;
  std::vector<std::vector<float>> all_losses;
  std::vector<std::string> parameters;
  for (const uint64_t limit : {uint64_t{0}, uint64_t{1} << 20}) {
    for (const bool donates : {false, true}) {
      SCOPED_TRACE(testing::Message() << limit << " bytes, " << donates);
      Config config = InProcessDaemon::OneLane();
      config.captured_max_bytes_per_device = limit;
      Start(config);
      const PreparedProgram step = OrAbort(client().Prepare(AdamWStep(kShape, donates).request()));
      std::vector<float> values(kShape.in * kShape.out);
      for (size_t i = 0; i < values.size(); ++i) values[i] = 0.1f * static_cast<float>(i);
      const std::vector<float> zeros(values.size());
      const std::vector<int64_t> none = {0};
      Inputs inputs(2);
      inputs.emplace_back(OrAbort(client().Upload(Tensor::Of<int64_t>({1}, none))));
      for (const std::vector<float>& elements : {values, zeros, zeros}) {
        inputs.emplace_back(
            OrAbort(client().Upload(Tensor::Of<float>({kShape.in, kShape.out}, elements))));
      }
      std::vector<float>& losses = all_losses.emplace_back();
      for (int i = 1; i <= kSteps; ++i) {
        const std::vector<float> x(kShape.batch * kShape.in, 0.5f + static_cast<float>(i));
        const std::vector<float> target(kShape.batch * kShape.out, static_cast<float>(i));
        inputs[0] = Tensor::Of<float>({kShape.batch, kShape.in}, x);
        inputs[1] = Tensor::Of<float>({kShape.batch, kShape.out}, target);
        const Call call = Run(step, inputs);
        ASSERT_TRUE(call.response.ok()) << call.response.status();
        losses.push_back(call.first);
        EXPECT_EQ(call.is_replayed, limit > 0 && i > 2) << "step " << i;
      }
      const auto w = OrAbort(client().Download(std::get<ResidentTensor>(inputs[3]).handle));
      const auto elements = OrAbort(w.values<float>());
      parameters.emplace_back(reinterpret_cast<const char*>(elements.data()),
                              elements.size() * sizeof(float));
      const auto steps = OrAbort(client().Download(std::get<ResidentTensor>(inputs[2]).handle));
      EXPECT_THAT(OrAbort(steps.values<int64_t>()), Each(kSteps));
    }
  }
  EXPECT_THAT(all_losses, Each(all_losses[0]));
  EXPECT_THAT(parameters, Each(parameters[0])) << "the same bits";
}

TEST_F(CapturedProgramsTest, ACaptureEndsWithWhatItNeeds) {
  const auto status = [this] { return OrAbort(client().GetServerStatus()).devices(0); };
  const struct {
    const char* name;
    CapturedRuns::End end;
    std::function<void(std::optional<PreparedProgram>& program, ResidentTensor& w)> act;
  } kCases[] = {
      {"the program is released", CapturedRuns::kReleased,
       [this](auto& program, auto&) {
         program.reset();
         daemon_->daemon().prepared().Expire(absl::InfiniteFuture());
       }},
      {"a tensor is released", CapturedRuns::kContents,
       [this](auto&, auto& w) {
         OrAbort(client().Release({w.handle}));
         w = OrAbort(client().Upload(Filled(16, 100)));
       }},
      {"the device drains", CapturedRuns::kDrained,
       [this](auto&, auto&) {
         OrAbort(service().BeginDrain());
         EXPECT_TRUE(service().Resume(absl::Now() + absl::Seconds(60)).ok());
       }},
      {"the device is lost", CapturedRuns::kClosed,
       [this](auto&, auto& w) {
         InjectFaults("device=0,lost");
         client().Upload(Filled(16, 100)).IgnoreError();
         ClearFaults();
         EXPECT_TRUE(Await([this] {
           daemon_->AwaitReady();
           return captured().ends(CapturedRuns::kClosed) == 1;
         }));
         w = OrAbort(client().Upload(Filled(16, 100)));
       }},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    Start();
    std::optional<PreparedProgram> program = OrAbort(client().Prepare(Chain(3, 16).request()));
    ResidentTensor w = OrAbort(client().Upload(Filled(16, 100)));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(*program, {Filled(16, 1), w}).is_replayed, i == 2);
    EXPECT_EQ(status().captured_programs(), 1u);
    EXPECT_EQ(status().captured_bytes(), static_cast<uint64_t>(captured().bytes()));
    EXPECT_GT(captured().bytes(), 0);

    c.act(program, w);

    EXPECT_TRUE(Await([&] { return captured().ends(c.end) == 1; }));
    EXPECT_EQ(status().captured_programs(), 0u);
    EXPECT_EQ(captured().bytes(), 0);
    if (!program) continue;
    EXPECT_TRUE(Await([&] {
      const Call call = Run(*program, {Filled(16, 1), w});
      EXPECT_EQ(call.first, 103) << call.response.status();
      return call.is_replayed || !call.response.ok();
    }));
  }
}

// The daemon has 2 MiB of device memory. A program with 384 KiB is captured: small, as programs
// that take long, even if only in a slow build, are not captured.
TEST_F(CapturedProgramsTest, CapturedMemoryGoesFirst) {
  constexpr int64_t kCount = 32 << 10;  // 128 KiB
  Config config = Capturing();
  config.workspace_max_bytes = 2 << 20;
  Start(config);
  const PreparedProgram program = OrAbort(client().Prepare(Chain(2, kCount).request()));
  const ResidentTensor w = OrAbort(client().Upload(Filled(kCount, 100)));
  const auto capture = [&] {
    EXPECT_TRUE(Await([&] {
      const Call call = Run(program, {Filled(kCount, 1), w});
      EXPECT_EQ(call.first, 102) << call.response.status();
      return call.is_replayed || !call.response.ok();
    }));
    EXPECT_GE(captured().bytes(), 256 << 10);
  };
  capture();
  // An upload is not refused for it.
  {
    const ResidentTensor large = OrAbort(client().Upload(Filled(13 * kCount, 1)));
    EXPECT_EQ(captured().ends(CapturedRuns::kMemory), 1u);
    EXPECT_EQ(OrAbort(client().Release({large.handle})), 1u);
  }
  capture();
  // Nor does a request wait for it.
  Program other;
  const OutputOf sum = other.Adds(Filled(6 * kCount, 1), {.other = 1.0});
  other.Return(
      other.Adds(View{.base = sum, .dtype = v1::DATA_TYPE_FLOAT, .shape = {1}, .strides = {1}},
                 {.other = 0.0}));
  const auto response = client().Execute(other.request());
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(OrAbort(response->results[0].values<float>()).front(), 2);
  EXPECT_EQ(captured().ends(CapturedRuns::kMemory), 2u);
  EXPECT_EQ(captured().bytes(), 0);
}

// The tenant's limit has room for its tensor, what a run takes, and an upload of that size, but not
// for the capture besides, not even while the capture runs.
TEST_F(CapturedProgramsTest, ATenantNearItsLimitIsRefusedNothing) {
  constexpr int64_t kCount = 64 << 10;
  constexpr uint64_t kTensorBytes = kCount * sizeof(float);
  uint64_t hard_bytes = 0;
  for (const bool is_limited : {false, true}) {
    SCOPED_TRACE(is_limited);
    Config config = Capturing();
    server::AddTwoTenants(&config);
    if (is_limited) {
      for (auto& tenant : *config.values.mutable_tenant()) {
        tenant.mutable_device_memory()->set_hard_bytes(hard_bytes);
      }
      config.tenants = *server::TenantsFrom(config.values);
    }
    Start(config);
    const PreparedProgram program = OrAbort(client().Prepare(Chain(2, kCount).request()));
    const ResidentTensor w = OrAbort(client().Upload(Filled(kCount, 100)));
    const Inputs inputs = {Filled(kCount, 1), w};
    EXPECT_TRUE(Await([&] { return Run(program, inputs).is_replayed; }));
    const auto run_bytes = static_cast<int64_t>(captured().bytes());
    hard_bytes = kTensorBytes + 2 * run_bytes;
    if (!is_limited) continue;
    InjectFaults("kernel=aclnnAdd,slow=300000");
    Call slow;
    std::thread caller([&] { slow = Run(program, inputs); });
    EXPECT_TRUE(Await([&] { return service().executing() == 1; }));
    const auto other = client().Upload(Filled(run_bytes / int64_t{sizeof(float)}, 1));
    EXPECT_TRUE(other.ok()) << other.status();
    caller.join();
    ClearFaults();
    EXPECT_EQ(slow.first, 102) << slow.response.status();
    EXPECT_TRUE(slow.is_replayed);
    EXPECT_EQ(captured().ends(CapturedRuns::kMemory), 1u);
    EXPECT_EQ(Run(program, inputs).first, 102);
  }
}

// Each call that a capture and a replay make fails once; the request is right all the same.
TEST_F(CapturedProgramsTest, WhateverFailsTheProgramRuns) {
  for (const char* function :
       {"aclmdlRICaptureBegin", "aclmdlRICaptureEnd", "aclmdlRIExecuteAsync", "aclmdlRIDestroy"}) {
    for (const int code : {107002, 207001, 361001, 507010}) {
      for (int nth = 1; nth <= 2; ++nth) {
        SCOPED_TRACE(testing::Message() << function << " " << code << " " << nth);
        const PreparedProgram program = OrAbort(client().Prepare(Chain(3, 16).request()));
        const ResidentTensor w = OrAbort(client().Upload(Filled(16, 100)));
        InjectFaults(absl::StrCat("call=", function, ",code=", code, ",nth=", nth));
        for (int i = 0; i < 5; ++i) {
          const Call call = Run(program, {Filled(16, 1), w});
          EXPECT_EQ(call.first, 103) << call.response.status();
        }
        ClearFaults();
        EXPECT_EQ(service().device().quarantines().total(), 0u);
      }
    }
  }
}

}  // namespace
}  // namespace opserve
