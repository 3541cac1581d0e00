// Calls of a prepared program at the same time: how many of them are replayed, and what becomes of
// several captured runs of one program.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/adding_program.h"
#include "tests/await.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

// Whether the device runs a kernel, as the host CANN tells.
bool IsAtWork(int32_t device) {
  const auto ask = reinterpret_cast<decltype(&aclrtGetDeviceUtilizationRate)>(
      dlsym(RTLD_DEFAULT, "aclrtGetDeviceUtilizationRate"));
  aclrtUtilizationInfo info = {};
  return ask(device, &info) == ACL_SUCCESS && info.vectorUtilization > 0;
}

class CapturesAtOnceTest : public ::testing::Test {
 protected:
  static constexpr int kAdds = 3;

  // One device with two lanes. The daemon has `device_bytes` of its memory, 0: half of it.
  void Start(uint32_t captures_per_program, uint64_t device_bytes = 0) {
    Config config = InProcessDaemon::DefaultConfig();
    config.workspace_max_bytes = device_bytes;
    config.devices = {0};
    config.captures_per_program = captures_per_program;
    stub_.reset();
    calls_.reset();
    daemon_.reset();
    daemon_ = std::make_unique<InProcessDaemon>(config);
    calls_ = std::make_unique<TensorCalls>(daemon_->target());
    stub_ = NewStub(daemon_->target());
  }
  // At rest, the daemon keeps nothing.
  void End() {
    ClearFaults();
    daemon_->EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_->HeldByRequests() == 0; }))
        << daemon_->HeldByRequests() << " held";
    EXPECT_EQ(Metric("opserve_captured_programs"), 0);
    EXPECT_EQ(Metric("opserve_captured_bytes"), 0);
  }

  DeviceService& service() { return *daemon_->daemon().scheduler().Find(0); }
  const CapturedRuns& captured() { return service().captured(); }
  // Of device 0.
  double Metric(const char* family, MetricLabels labels = {}) {
    labels.emplace_back("device", "0");
    return MetricValue(daemon_->daemon(), family, labels);
  }
  uint32_t CapturedInStatus() {
    return daemon_->client().GetServerStatus()->devices(0).captured_programs();
  }

  // Prepares a program, and uploads its tensor of hundreds. The call adds ones to it.
  v1::ExecuteRequest PrepareCall(int64_t elements) {
    v1::PrepareRequest program = AddingProgram("Add", kAdds, elements);
    program.mutable_program()->add_results()->set_invocation(kAdds - 1);
    v1::PrepareResponse prepared;
    const grpc::Status status = calls_->Prepare(program, &prepared);
    EXPECT_TRUE(status.ok()) << ToStatus(status);
    const auto count = static_cast<size_t>(elements);
    const auto uploaded = calls_->Upload({.bytes = Bytes(std::vector<float>(count, 100))});
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    v1::ExecuteRequest call;
    call.mutable_prepared()->set_program(prepared.handle());
    call.mutable_prepared()->add_residents(uploaded.response.handle());
    call.add_payloads(Bytes(std::vector<float>(count, 1)));
    call.set_want_receipt(true);
    return call;
  }
  // Whether it was replayed.
  bool Run(const v1::ExecuteRequest& call) {
    v1::ExecuteResponse response;
    const grpc::Status status = calls_->Execute(call, &response);
    EXPECT_TRUE(status.ok()) << ToStatus(status);
    if (!status.ok()) return false;
    const std::vector<float> sum = Floats(response.payloads(0));
    EXPECT_EQ(sum, std::vector<float>(sum.size(), 100 + kAdds));
    return response.receipt().replayed();
  }
  // Until the program has two captured runs: the second one is captured while the first is in use.
  void CaptureTwo(const v1::ExecuteRequest& call) {
    // Without the fault: programs whose launches take long are not captured.
    EXPECT_TRUE(Await([&] { return Run(call); }));
    EXPECT_TRUE(Await([&] {
      InjectFaults("kernel=aclnnAdd,slow=100000");
      std::atomic<bool> has_ended = false;
      std::thread slow([&] {
        Run(call);
        has_ended = true;
      });
      EXPECT_TRUE(Await([&] { return IsAtWork(0) || has_ended; }));
      Run(call);
      slow.join();
      ClearFaults();
      return captured().runs() == 2;
    }));
  }

  std::unique_ptr<InProcessDaemon> daemon_;
  std::unique_ptr<TensorCalls> calls_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
};

TEST_F(CapturesAtOnceTest, AsManyCallsAreReplayedAtOnceAsTheSettingSays) {
  for (const uint32_t most : {1, 2}) {
    SCOPED_TRACE(most);
    Start(most);
    const v1::ExecuteRequest call = PrepareCall(16);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(Run(call), i == 2);
    const double bytes = Metric("opserve_captured_bytes");
    EXPECT_GT(bytes, 0);
    InjectFaults("kernel=aclnnAdd,hang");
    grpc::ClientContext context;
    grpc::Status held;
    std::thread caller([&] {
      v1::ExecuteResponse response;
      held = stub_->Execute(&context, call, &response);
    });
    EXPECT_TRUE(Await([] { return IsAtWork(0); }));

    EXPECT_FALSE(Run(call)) << "the captured run is in use";
    EXPECT_EQ(Run(call), most == 2);
    EXPECT_EQ(Run(call), most == 2);

    EXPECT_EQ(Metric("opserve_captures_total", {{"result", "captured"}}), most);
    EXPECT_EQ(Metric("opserve_captured_programs"), most);
    EXPECT_EQ(Metric("opserve_captured_bytes"), most * bytes);
    EXPECT_EQ(CapturedInStatus(), most);
    context.TryCancel();
    caller.join();
    EXPECT_EQ(held.error_code(), grpc::StatusCode::CANCELLED) << ToStatus(held);
    EXPECT_TRUE(Await([&] {
      return Metric("opserve_captures_ended_total", {{"reason", "cancelled"}}) == 1;
    })) << "it was replayed";
    EXPECT_EQ(Metric("opserve_captured_programs"), most - 1);
    EXPECT_EQ(Run(call), most == 2);
    End();
  }
}

TEST_F(CapturesAtOnceTest, AllCapturedRunsOfAProgramEndTogether) {
  // Small, as programs that take long, even if only in a slow build, are not captured.
  constexpr int64_t kElements = 16 << 10;  // 64 KiB
  constexpr uint64_t kDeviceBytes = 2 << 20;
  const struct {
    const char* reason;
    std::function<void()> act;
  } kCases[] = {
      // Two captured runs take 384 KiB.
      {"memory",
       [this] {
         const auto large = calls_->Upload(
             {.bytes = std::string(27 * kElements * sizeof(float), '\0'), .chunk_bytes = 1 << 20});
         ASSERT_TRUE(large.status.ok()) << ToStatus(large.status);
         EXPECT_EQ(calls_->Release(large.response.handle()), 1u);
       }},
      {"drained",
       [this] {
         ASSERT_TRUE(service().BeginDrain().ok());
         EXPECT_TRUE(service().Resume(absl::Now() + absl::Seconds(60)).ok());
       }},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.reason);
    Start(/*captures_per_program=*/2, kDeviceBytes);
    const v1::ExecuteRequest call = PrepareCall(kElements);
    CaptureTwo(call);
    EXPECT_EQ(CapturedInStatus(), 2u);

    c.act();

    EXPECT_EQ(Metric("opserve_captures_ended_total", {{"reason", c.reason}}), 2);
    EXPECT_EQ(Metric("opserve_captured_programs"), 0);
    EXPECT_EQ(Metric("opserve_captured_bytes"), 0);
    EXPECT_TRUE(Await([&] { return Run(call); }));
    End();
  }
}

}  // namespace
}  // namespace opserve::server
