// What a request would have kept is freed when its client does not want it any more or is gone,
// wherever the request is by then.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/cutting_proxy.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/session_calls.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

constexpr int kInvocations = 3;
// Instead of a number of kernels: they have ended, and the result that travels is copied.
constexpr int kCopying = kInvocations + 1;
constexpr int64_t kElements = 1000;

// Adds a resident tensor to itself and to the sum, again and again, keeps each sum, and wants the
// last one back as well.
v1::ExecuteRequest KeepingRequest(const std::string& handle) {
  v1::ExecuteRequest request;
  for (int i = 0; i < kInvocations; ++i) {
    v1::Invocation* add = request.add_invocations();
    add->set_operator_("Add");
    for (const char* name : {"self", "other"}) {
      v1::NamedTensor* input = add->add_inputs();
      input->set_name(name);
      if (i > 0 && input->name() == "self") {
        input->mutable_tensor()->mutable_invocation_output()->set_invocation(i - 1);
      } else {
        input->mutable_tensor()->set_resident_tensor(handle);
      }
    }
    v1::WantedResult* result = request.add_results();
    result->set_invocation(i);
    result->mutable_keep();
  }
  request.add_results()->set_invocation(kInvocations - 1);
  return request;
}

// Occupies the only lane: its kernel is no other request's.
v1::ExecuteRequest OtherRequest(const std::string& handle) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("Neg");
  v1::NamedTensor* input = invocation->add_inputs();
  input->set_name("self");
  input->mutable_tensor()->set_resident_tensor(handle);
  request.add_results();
  return request;
}

// A client with a connection of its own and one request.
class LeavingClient {
 public:
  LeavingClient(const std::string& address, v1::ExecuteRequest request)
      : proxy_([&] {
          int port = 0;
          EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
          return port;
        }()),
        stub_(NewStub(proxy_.address())),
        request_(std::move(request)) {}
  virtual ~LeavingClient() = default;

  virtual void Send() = 0;
  virtual void Cancel() = 0;
  // Waits for the end of the request. No results: it has no answer.
  virtual v1::ExecuteResponse Answer() = 0;

  // Breaks the connection: the next bytes of either side do not arrive.
  void Disconnect() {
    proxy_.CutAt(0, /*for_good=*/true);
    grpc::ClientContext context;
    v1::GetServerStatusResponse response;
    EXPECT_FALSE(stub_->GetServerStatus(&context, {}, &response).ok());
  }

 protected:
  v1::OperatorService::Stub& stub() { return *stub_; }
  const v1::ExecuteRequest& request() const { return request_; }

 private:
  CuttingProxy proxy_;
  const std::unique_ptr<v1::OperatorService::Stub> stub_;
  const v1::ExecuteRequest request_;
};

class CallingClient final : public LeavingClient {
 public:
  using LeavingClient::LeavingClient;

  void Send() override {
    thread_ = std::thread([this] {
      const grpc::Status status = stub().Execute(&context_, request(), &response_);
      if (!status.ok()) response_.Clear();
    });
  }
  void Cancel() override { context_.TryCancel(); }
  v1::ExecuteResponse Answer() override {
    thread_.join();
    return response_;
  }

 private:
  grpc::ClientContext context_;
  v1::ExecuteResponse response_;
  std::thread thread_;
};

class SessionClient final : public LeavingClient {
 public:
  using LeavingClient::LeavingClient;

  void Send() override { EXPECT_TRUE(session_.Send(RequestFrame(1, request()))); }
  void Cancel() override { EXPECT_TRUE(session_.Send(FrameBytes(kCancelFrame, 1))); }
  v1::ExecuteResponse Answer() override {
    v1::ExecuteResponse response;
    const TestFrame frame = session_.Receive();
    if (frame.kind == kAnswerFrame) {
      EXPECT_TRUE(response.ParseFromString(frame.body));
    }
    return response;
  }

 private:
  TestSession session_{stub()};
};

struct Case {
  const char* name;
  bool is_session;
  bool is_disconnected;  // else it cancels the request
  // Of the request's kernels, those that were launched before; 0: it is queued; or kCopying.
  int launched;
};

class UnwantedResultsTest : public testing::Test {
 protected:
  static Config TestConfig() {
    Config config = InProcessDaemon::OneLane();
    config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
    // The input, and the results of one request: those of two have no room.
    config.resident_max_tensors_per_tenant = 1 + kInvocations;
    return config;
  }
  ~UnwantedResultsTest() override { ClearFaults(); }

  // There is room for the results.
  void KeepAndRelease(const std::string& handle) {
    v1::ExecuteResponse response;
    const grpc::Status status = calls_.Execute(KeepingRequest(handle), &response);
    EXPECT_TRUE(status.ok()) << ToStatus(status);
    for (int i = 0; i < kInvocations && status.ok(); ++i) {
      EXPECT_EQ(calls_.Release(response.results(i).tensor().resident_tensor()), 1u);
    }
    // The lane may still be about to let go of them.
    EXPECT_TRUE(Await([this] {
      return daemon_.daemon().scheduler().devices()[0]->queue().booked_bytes() ==
             daemon_.daemon().residents().Total().bytes;
    }));
  }

  // Gauges of what the tenant and the device have.
  std::string Held() {
    const auto residents = daemon_.daemon().residents().Total();
    const auto& service = *daemon_.daemon().scheduler().devices()[0];
    return absl::StrCat(
        residents.tensors, " tensors of ", residents.bytes, " bytes, ",
        service.queue().booked_bytes(), " booked, ",
        MetricValue(daemon_.daemon(), "opserve_workspace_pool_allocated_bytes", {{"device", "0"}}),
        " allocated, the tenant's ",
        MetricValue(daemon_.daemon(), "opserve_tenant_memory_bytes",
                    {{"tenant", "default"}, {"kind", "hbm"}}));
  }

  InProcessDaemon daemon_{TestConfig()};
  TensorCalls calls_{daemon_.target()};
};

class LeavingTest : public UnwantedResultsTest, public testing::WithParamInterface<Case> {
 protected:
  std::unique_ptr<LeavingClient> NewClient(const v1::ExecuteRequest& request) {
    const std::string& address = daemon_.daemon().addresses()[1];
    if (GetParam().is_session) return std::make_unique<SessionClient>(address, request);
    return std::make_unique<CallingClient>(address, request);
  }
};

INSTANTIATE_TEST_SUITE_P(Ends, LeavingTest,
                         testing::Values(Case{"CancelledCallQueued", false, false, 0},
                                         Case{"CancelledCallRunning", false, false, 1},
                                         Case{"CancelledCallInItsMiddle", false, false, 2},
                                         Case{"CancelledCallInItsLastKernel", false, false, 3},
                                         Case{"CancelledCallCopying", false, false, kCopying},
                                         Case{"CancelledInSessionQueued", true, false, 0},
                                         Case{"CancelledInSessionRunning", true, false, 1},
                                         Case{"CancelledInSessionInItsMiddle", true, false, 2},
                                         Case{"CancelledInSessionInItsLastKernel", true, false, 3},
                                         Case{"CancelledInSessionCopying", true, false, kCopying},
                                         Case{"DisconnectedCallQueued", false, true, 0},
                                         Case{"DisconnectedCallRunning", false, true, 1},
                                         Case{"DisconnectedCallInItsMiddle", false, true, 2},
                                         Case{"DisconnectedCallInItsLastKernel", false, true, 3},
                                         Case{"DisconnectedCallCopying", false, true, kCopying},
                                         Case{"DisconnectedSessionQueued", true, true, 0},
                                         Case{"DisconnectedSessionRunning", true, true, 1},
                                         Case{"DisconnectedSessionInItsMiddle", true, true, 2},
                                         Case{"DisconnectedSessionInItsLastKernel", true, true, 3},
                                         Case{"DisconnectedSessionCopying", true, true, kCopying}),
                         [](const auto& info) { return info.param.name; });

TEST_P(LeavingTest, ResultsAreFreed) {
  const std::string handle = calls_.Upload({.bytes = CountingBytes(kElements)}).response.handle();
  // From now on the daemon knows that the program has a part for each of its kernels.
  InjectFaults("kernel=aclnnAdd,slow=60000,count=all");
  KeepAndRelease(handle);
  const std::string before = Held();
  const std::unique_ptr<LeavingClient> client = NewClient(KeepingRequest(handle));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  std::thread other;
  if (GetParam().launched == 0) {
    InjectFaults("kernel=aclnnNeg,slow=700000");
    other = std::thread([&] {
      v1::ExecuteResponse ignored;
      EXPECT_TRUE(calls_.Execute(OtherRequest(handle), &ignored).ok());
    });
    EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
    client->Send();
    const auto stub = NewStub(daemon_.target());
    EXPECT_TRUE(Await([&] { return CountRequests(*stub) == 2; }));
  } else {
    ClearFaults();
    InjectFaults(GetParam().launched == kCopying
                     ? "call=aclrtMemcpy,slow=700000"
                     : absl::StrCat("kernel=aclnnAdd,slow=700000,nth=", GetParam().launched));
    client->Send();
    const int64_t launched = std::min(GetParam().launched, kInvocations);
    EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) >= launches + launched; }));
  }

  if (GetParam().is_disconnected) {
    client->Disconnect();
  } else {
    client->Cancel();
  }

  EXPECT_EQ(client->Answer().results_size(), 0);
  if (other.joinable()) other.join();
  EXPECT_TRUE(Await([&] { return Held() == before; })) << Held() << ", before: " << before;
  ClearFaults();
  KeepAndRelease(handle);
}

// A client that changes tensors has their handles, and needs to know what they hold.
TEST_F(UnwantedResultsTest, StayWithTensorsThatAreChangedByThen) {
  const std::string handle = calls_.Upload({.bytes = Bytes({1, 2})}).response.handle();
  v1::ExecuteRequest request = KeepingRequest(handle);
  request.mutable_results(0)->clear_keep();
  request.mutable_results(0)->mutable_replace()->set_handle(handle);
  SessionClient client(daemon_.daemon().addresses()[1], request);
  InjectFaults("call=aclrtMemcpy,slow=700000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  client.Send();
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) == launches + kInvocations; }));

  client.Cancel();

  const v1::ExecuteResponse response = client.Answer();
  ClearFaults();
  EXPECT_EQ(calls_.Download(handle).bytes, Bytes({2, 4}));
  ASSERT_EQ(response.results_size(), kInvocations + 1);
  EXPECT_EQ(calls_.Download(response.results(2).tensor().resident_tensor()).bytes, Bytes({4, 8}));
}

}  // namespace
}  // namespace opserve::server
