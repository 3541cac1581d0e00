// The daemon as clients see it: programs, deadlines, faults, overload, health.

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

class DaemonTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }
};

TEST_F(DaemonTest, AProgramGivesWhatItsStepsGive) {
  InProcessDaemon daemon;
  const Tensor student = Tensor::Owning<float>({2, 3}, {-0.5, -1.5, -2.5, -0.1, -3.5, -4.0});
  const Tensor teacher = Tensor::Owning<float>({2, 3}, {0.2, 0.3, 0.5, 0.7, 0.2, 0.1});
  const Invocation kl = {.operator_name = "KlDivBackward",
                         .inputs = {{"grad_output", Tensor::Owning<float>({}, {1.0f})},
                                    {"self", student},
                                    {"target", teacher}},
                         .attributes = {{"reduction", "batchmean"}}};
  const auto softmax = [&](auto grad_output) {
    return Invocation{.operator_name = "LogSoftmaxBackward",
                      .inputs = {{"grad_output", grad_output}, {"output", student}}};
  };

  const auto both =
      daemon.client().Execute({.invocations = {kl, softmax(OutputOf{.invocation = 0})},
                               .results = {{.invocation = 1}, {.invocation = 0}},
                               .want_receipt = true});
  const auto first = daemon.client().Execute(kl);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto intermediate = *first->results[0].values<float>();
  const auto second = daemon.client().Execute(
      softmax(Tensor::Owning<float>({2, 3}, {intermediate.begin(), intermediate.end()})));

  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(both->results.size(), 2u);
  EXPECT_EQ(*both->results[0].values<float>(), *second->results[0].values<float>());
  EXPECT_EQ(*both->results[1].values<float>(), intermediate);
  // The intermediate came back because it was asked for, but it did not go out again, and student
  // went once for both steps.
  EXPECT_EQ(both->receipt->copied_to_device_bytes(), 4u + 2 * 24u);
}

TEST_F(DaemonTest, StagesOfAReceiptSumToItsTotal) {
  InProcessDaemon daemon;
  Request request = OnesRequest(1000);
  request.want_receipt = true;

  const auto response = daemon.client().Execute(request);

  ASSERT_TRUE(response.ok()) << response.status();
  const v1::Receipt& r = *response->receipt;
  EXPECT_EQ(r.read_ns() + r.validate_ns() + r.queue_ns() + r.h2d_ns() + r.prepare_ns() +
                r.execute_ns() + r.d2h_ns() + r.write_ns(),
            r.total_ns());
  EXPECT_EQ(r.copied_to_device_bytes(), 8004u);
  EXPECT_EQ(r.copied_from_device_bytes(), 4000u);
}

TEST_F(DaemonTest, EqualRequestsGiveEqualBytesOnEveryDeviceUnderLoad) {
  InProcessDaemon daemon;
  constexpr int64_t kRows = 300;
  std::vector<float> target(kRows * 1000);
  for (size_t i = 0; i < target.size(); ++i) target[i] = static_cast<float>(i % 977) * 1e-3f;
  const Request request = {
      .invocations = {{.operator_name = "KlDivBackward",
                       .inputs = {{"grad_output", Tensor::Owning<float>({}, {0.7f})},
                                  {"self", Tensor::Owning<float>({1000}, std::vector<float>(1000))},
                                  {"target", Tensor::Owning<float>({kRows, 1000}, target)}},
                       .attributes = {{"log_target", true}}}}};
  const auto expected = daemon.client().Execute(request);
  ASSERT_TRUE(expected.ok()) << expected.status();

  std::vector<std::future<absl::StatusOr<Response>>> pending;
  for (int i = 0; i < 24; ++i) pending.push_back(daemon.client().ExecuteAsync(request));

  for (auto& response : pending) {
    const auto actual = response.get();
    ASSERT_TRUE(actual.ok()) << actual.status();
    EXPECT_EQ(actual->results[0].bytes(), expected->results[0].bytes());
  }
}

TEST_F(DaemonTest, AFailedKernelFailsItsRequestOnly) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  ASSERT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  InjectFaults("kernel=aclnnL1LossBackward,code=507035");

  const auto failed = daemon.client().Execute(OnesRequest(10));

  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(DetailOf(failed.status()).acl_error(), 507035);
  EXPECT_EQ(DetailOf(failed.status()).operator_(), "L1LossBackward");
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(DaemonTest, AHungKernelIsAbortedAndTheLaneGoesOn) {
  Config config = InProcessDaemon::OneLane();
  config.execution_timeout = absl::Milliseconds(200);
  InProcessDaemon daemon(config);
  InjectFaults("kernel=*,hang");

  const auto failed = daemon.client().Execute(OnesRequest(10));

  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.status().message()), HasSubstr("did not finish within 200ms"));
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(DaemonTest, AKernelThatCannotBeStoppedDoesNotKeepTheDaemonFromEnding) {
  {
    Config config = InProcessDaemon::OneLane();
    config.execution_timeout = absl::Milliseconds(200);
    InProcessDaemon daemon(config);
    InjectFaults("call=aclrtStreamAbort,code=107019;kernel=*,hang");
    EXPECT_EQ(daemon.client().Execute(OnesRequest(10)).status().code(),
              absl::StatusCode::kInternal);
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  }
  EXPECT_TRUE(IsAllOnes(InProcessDaemon().client().Execute(OnesRequest(10)), 10));
}

TEST_F(DaemonTest, ALostDeviceIsUnavailableAndTheOtherServes) {
  InProcessDaemon daemon;
  InjectFaults("device=0,lost");

  int unavailable = 0;
  for (int i = 0; i < 10; ++i) {
    const auto response = daemon.client().Execute(OnesRequest(10));
    if (response.ok()) continue;
    ++unavailable;
    EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable) << response.status();
    EXPECT_EQ(DetailOf(response.status()).reason(), "device_unavailable");
  }

  EXPECT_LE(unavailable, 2);  // what the lanes of the lost device found out
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  daemon.AwaitReady();
  const v1::DeviceStatus device = daemon.client().GetServerStatus()->devices(0);
  EXPECT_EQ(device.state(), v1::DeviceStatus::STATE_READY);
  EXPECT_EQ(device.quarantines(), 1u);
}

TEST_F(DaemonTest, MemoryThatRunsOutRefusesOneRequest) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  // What the golden values left in the pool would do.
  ASSERT_TRUE(daemon.daemon().scheduler().Find(0)->TrimPool(absl::InfiniteFuture()).ok());
  InjectFaults("call=aclrtMalloc,count=all,code=207001");

  const auto refused = daemon.client().Execute(OnesRequest(10));

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(refused.status()).reason(), "device_memory");
  ClearFaults();
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(DaemonTest, AFullQueueRefusesWithAHintWhenToComeBack) {
  Config config = InProcessDaemon::OneLane();
  config.queue_capacity_total = 2;
  config.execution_timeout = absl::Milliseconds(500);
  InProcessDaemon daemon(config);
  InjectFaults("kernel=*,hang");
  std::vector<std::future<absl::StatusOr<Response>>> pending;

  // One runs and hangs, two wait; with more, somebody is refused.
  for (int i = 0; i < 6; ++i) pending.push_back(daemon.client().ExecuteAsync(OnesRequest(10)));

  int refused = 0;
  for (auto& response : pending) {
    const absl::Status status = response.get().status();
    if (status.code() != absl::StatusCode::kResourceExhausted) continue;
    ++refused;
    EXPECT_EQ(DetailOf(status).reason(), "queue_full");
    EXPECT_GE(DetailOf(status).retry_pushback_ms(), 10);
  }
  EXPECT_GE(refused, 3);
}

TEST_F(DaemonTest, WhatExpiresOrIsCancelledInTheQueueIsNeverLaunched) {
  Config config = InProcessDaemon::OneLane();
  config.execution_timeout = absl::Seconds(2);
  InProcessDaemon daemon(config);
  InjectFaults("kernel=*,hang");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  auto hanging = daemon.client().ExecuteAsync(OnesRequest(10));
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));

  Request expiring = OnesRequest(10);
  expiring.timeout = absl::Milliseconds(50);
  auto expired = daemon.client().ExecuteAsync(expiring);
  std::promise<absl::Status> cancelled;
  daemon.client()
      .ExecuteAsync(
          OnesRequest(10),
          [&](absl::StatusOr<Response> response) { cancelled.set_value(response.status()); })
      .Cancel();

  EXPECT_EQ(expired.get().status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(cancelled.get_future().get().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(hanging.get().status().code(), absl::StatusCode::kInternal);
  // The lane takes requests in order: once this one is through, so are those before it.
  ASSERT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(10)), 10));
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches + 2);  // the hanging one and this one
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

TEST_F(DaemonTest, ManyClientsAtOnceEachGetTheirAnswer) {
  InProcessDaemon daemon;
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const int64_t count = 1 + (t * 7919 + i * 104729) % 50000;
        right += IsAllOnes(daemon.client().Execute(OnesRequest(count)), count);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(right, 6 * 40);
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

// Calls a unary method with serialised messages: for services whose classes are not linked here.
absl::StatusOr<std::string> CallRaw(const std::string& target, const std::string& method,
                                    const std::string& request) {
  const auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
  grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer> stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::Slice slice(request);
  auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  return Bytes(response);
}

TEST_F(DaemonTest, TheStandardHealthServiceSaysServing) {
  InProcessDaemon daemon;
  // HealthCheckRequest{service}; HealthCheckResponse{status: SERVING}
  for (const std::string& request :
       {std::string(), absl::StrCat("\x0a\x1a", "opserve.v1.OperatorService")}) {
    const auto answer = CallRaw(daemon.target(), "/grpc.health.v1.Health/Check", request);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(*answer, "\x08\x01");
  }
}

TEST_F(DaemonTest, ReflectionListsTheService) {
  InProcessDaemon daemon;
  grpc::GenericStub stub(grpc::CreateChannel(daemon.target(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  ASSERT_TRUE(wait());
  const grpc::Slice list_services("\x3a\x01*");  // ServerReflectionRequest{list_services: "*"}
  call->Write(grpc::ByteBuffer(&list_services, 1), nullptr);
  ASSERT_TRUE(wait());
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  ASSERT_TRUE(wait());
  call->WritesDone(nullptr);
  ASSERT_TRUE(wait());
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(wait());

  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(Bytes(response), HasSubstr("opserve.v1.OperatorService"));
}

TEST_F(DaemonTest, MalformedBytesAreAnInvalidArgument) {
  InProcessDaemon daemon;
  for (const char* bytes : {"\x0a", "\x7a\x7f", "no message"}) {
    const auto answer = CallRaw(daemon.target(), "/opserve.v1.OperatorService/Execute", bytes);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument) << answer.status();
  }
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

}  // namespace
}  // namespace opserve::server
