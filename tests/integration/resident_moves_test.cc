// Devices that drain: their resident tensors move to other devices, whatever requests do with them
// and whatever breaks meanwhile, and their handles stay valid.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/device/memory/pinned_pool.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/adding_program.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/tensor_calls.h"
#include "tests/integration/two_tenants.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
// A move copies chunks of 1 MiB: a 64th of the page-locked memory.
constexpr int64_t kTwoChunks = kMiB * 3 / 8;  // elements

v1::NamedTensor Named(const char* name, v1::Tensor tensor) {
  v1::NamedTensor named;
  named.set_name(name);
  *named.mutable_tensor() = std::move(tensor);
  return named;
}

v1::Tensor Resident(const std::string& handle) {
  v1::Tensor tensor;
  tensor.set_resident_tensor(handle);
  return tensor;
}

v1::Tensor Literal(float value) {
  v1::Tensor tensor;
  tensor.set_dtype(v1::DATA_TYPE_FLOAT);
  tensor.add_shape(1);
  tensor.set_literal(Bytes({value}));
  return tensor;
}

v1::Tensor Output(uint32_t invocation) {
  v1::Tensor tensor;
  tensor.mutable_invocation_output()->set_invocation(invocation);
  return tensor;
}

void Add(const char* op, v1::Tensor self, v1::Tensor other, v1::ExecuteRequest* request) {
  v1::Invocation* invocation = request->add_invocations();
  invocation->set_operator_(op);
  *invocation->add_inputs() = Named("self", std::move(self));
  *invocation->add_inputs() = Named("other", std::move(other));
}

// A step of a training: w = 1.01 w + m, m = m + 0.5 in its own memory. It returns w.
v1::ExecuteRequest Step(const std::string& w, const std::string& m, uint64_t number) {
  v1::ExecuteRequest request;
  Add("Mul", Resident(w), Literal(1.01f), &request);
  Add("Add", Output(0), Resident(m), &request);
  Add("InplaceAdd", Resident(m), Literal(0.5f), &request);
  request.add_donated(m);
  for (const auto& [invocation, handle] : {std::pair(1, &w), std::pair(2, &m)}) {
    v1::WantedResult* result = request.add_results();
    result->set_invocation(static_cast<uint32_t>(invocation));
    result->mutable_replace()->set_handle(*handle);
    result->mutable_replace()->set_version(number);
  }
  request.add_results()->set_invocation(1);
  request.mutable_identity()->set_client("its one training");  // 16 bytes
  request.mutable_identity()->set_number(number);
  request.set_want_receipt(true);
  return request;
}

class ResidentMovesTest : public ::testing::Test {
 protected:
  explicit ResidentMovesTest(const Config& config = InProcessDaemon::DefaultConfig())
      : daemon_(config) {}
  ~ResidentMovesTest() override {
    ClearFaults();
    daemon_.EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == 0; }))
        << daemon_.HeldByRequests() << " held";
    for (int32_t device : {0, 1}) {
      EXPECT_EQ(service(device).queue().booked_bytes(), 0u) << device;
      EXPECT_EQ(OnDevice(device).tensors, 0u) << device;
    }
  }

  DeviceService& service(int32_t device) { return *daemon_.daemon().scheduler().Find(device); }
  ResidentTensors::Usage OnDevice(int32_t device) {
    return daemon_.daemon().residents().UsageOfDevice(device);
  }
  absl::Status Drain(int32_t device) {
    const absl::StatusOr<uint32_t> begun = service(device).BeginDrain();
    return begun.ok() ? service(device).AwaitDrained(absl::Now() + absl::Seconds(60))
                      : begun.status();
  }
  absl::Status Resume(int32_t device) {
    return service(device).Resume(absl::Now() + absl::Seconds(60));
  }

  std::string Upload(const std::string& bytes, uint32_t device) {
    const auto uploaded =
        calls_.Upload({.bytes = bytes, .chunk_bytes = uint64_t{1} << 20, .device = device});
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    return uploaded.response.handle();
  }
  uint32_t DeviceOf(const std::string& handle) {
    const auto tensors = daemon_.client().ListTensors();
    for (const TensorInfo& info : *tensors) {
      if (info.tensor.handle == handle) return info.tensor.device;
    }
    return UINT32_MAX;
  }
  v1::DeviceStatus StatusOf(int32_t device) {
    return daemon_.client().GetServerStatus()->devices(device);
  }

  double Metric(const char* name, const MetricLabels& labels = {}) {
    return MetricValue(daemon_.daemon(), name, labels);
  }
  double Moves(const char* result) {
    return Metric("opserve_resident_moves_total", {{"result", result}});
  }
  bool IsMoving() { return Metric("opserve_resident_moving_bytes") > 0; }

  InProcessDaemon daemon_;
  TensorCalls calls_{daemon_.target()};
};

TEST_F(ResidentMovesTest, HandlesStayValidWithTheirElementsAndVersions) {
  const std::string large = CountingBytes(2 * kTwoChunks);
  const std::string empty = Upload("", 0);
  const std::string handle = Upload(large, 0);
  const std::string w = Upload(Bytes({1, 2}), 0);
  const std::string m = Upload(Bytes({3, 4}), 0);
  v1::ExecuteResponse response;
  ASSERT_TRUE(calls_.Execute(Step(w, m, 1), &response).ok());
  EXPECT_EQ(response.receipt().device(), 0u);
  const std::string w_bytes = calls_.Download(w).bytes;
  const uint64_t bytes = OnDevice(0).bytes;

  ASSERT_TRUE(Drain(0).ok());

  EXPECT_EQ(StatusOf(0).state(), v1::DeviceStatus::STATE_DRAINED);
  EXPECT_EQ(calls_.Download(handle).bytes, large);
  EXPECT_EQ(calls_.Download(w).bytes, w_bytes);
  EXPECT_EQ(calls_.Download(w).header.version(), 2u);
  EXPECT_TRUE(calls_.Download(empty).status.ok());
  EXPECT_EQ(DeviceOf(handle), 1u);
  EXPECT_EQ(OnDevice(0).tensors, 0u);
  EXPECT_EQ(OnDevice(1).tensors, 4u);
  EXPECT_EQ(OnDevice(1).bytes, bytes);
  EXPECT_EQ(service(0).queue().booked_bytes(), 0u);
  EXPECT_EQ(service(0).device().memory().statistics().allocated_bytes, 0u);
  EXPECT_EQ(Moves("moved"), 1);
  EXPECT_EQ(Metric("opserve_resident_moved_bytes_total"), bytes);
  EXPECT_EQ(Metric("opserve_resident_moving_bytes"), 0);
  ASSERT_TRUE(calls_.Execute(Step(w, m, 2), &response).ok());
  EXPECT_EQ(response.receipt().device(), 1u);
  EXPECT_EQ(calls_.Release(handle), 1u);
}

// It also names a tensor itself, and is replayed where the device can.
TEST_F(ResidentMovesTest, PreparedProgramsGoOnUnderTheirHandlesOnTheOtherDevice) {
  const std::string w = Upload(Bytes({1, 2}), 0);
  const std::string named = Upload(Bytes({10, 20}), 0);
  v1::PrepareRequest request = AddingProgram("Add", 3, 2);
  v1::ExecuteRequest* program = request.mutable_program();
  Add("Add", Output(2), Resident(named), program);
  v1::WantedResult* result = program->add_results();
  result->set_invocation(3);
  result->mutable_replace()->set_program_input(1);
  program->add_results()->set_invocation(3);
  v1::PrepareResponse prepared;
  ASSERT_TRUE(calls_.Prepare(request, &prepared).ok());
  v1::ExecuteRequest call;
  call.mutable_prepared()->set_program(prepared.handle());
  call.mutable_prepared()->add_residents(w);
  call.add_payloads(Bytes({1, 1}));
  call.set_want_receipt(true);
  std::vector<float> expected = {1, 2};
  for (const uint32_t device : {0u, 1u, 0u}) {
    SCOPED_TRACE(device);
    for (int step = 0; step < 4; ++step) {
      v1::ExecuteResponse response;
      const grpc::Status status = calls_.Execute(call, &response);
      ASSERT_TRUE(status.ok()) << ToStatus(status);
      for (size_t i = 0; i < 2; ++i) expected[i] += 3 + 10 * static_cast<float>(i + 1);
      EXPECT_EQ(response.payloads(0), Bytes(expected));
      EXPECT_EQ(response.receipt().device(), device);
    }
    ASSERT_TRUE(Drain(static_cast<int32_t>(device)).ok());
    ASSERT_TRUE(Resume(static_cast<int32_t>(device)).ok());
  }
  EXPECT_EQ(Metric("opserve_prepared_program_events_total", {{"event", "unknown"}}), 0);
}

TEST_F(ResidentMovesTest, TensorsOfTwoDevicesAreNotUsedTogether) {
  const std::string w = Upload(Bytes({1}), 0);
  const std::string m = Upload(Bytes({1}), 1);
  v1::ExecuteResponse response;

  const grpc::Status apart = calls_.Execute(Step(w, m, 1), &response);

  EXPECT_EQ(apart.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(apart.error_message(), HasSubstr("upload them to one device"));
  ASSERT_TRUE(Drain(1).ok());
  EXPECT_TRUE(calls_.Execute(Step(w, m, 1), &response).ok());
}

TEST_F(ResidentMovesTest, ATrainingWithStepsInFlightHasTheBitsOfAnUndisturbedOne) {
  constexpr uint64_t kSteps = 400;
  constexpr uint64_t kAhead = 8;
  const std::vector<float> start(1000, 0.25f);
  const auto train = [&](const char* name, const std::function<void(uint64_t answered)>& after) {
    const std::string w = Upload(Bytes(start), 0);
    const std::string m = Upload(Bytes(start), 0);
    std::vector<std::string> losses(kSteps + 1);
    const auto stub = NewStub(daemon_.target());
    TestStream stream(*stub);
    uint64_t answered = 0;
    const auto receive = [&] {
      const v1::ExecuteStreamResponse answer = stream.Receive();
      ASSERT_TRUE(answer.has_response()) << answer.DebugString();
      losses[answer.id()] = answer.payloads(0);
      after(++answered);
    };
    for (uint64_t step = 1; step <= kSteps && !HasFatalFailure(); ++step) {
      v1::ExecuteStreamRequest sent;
      sent.set_id(step);
      *sent.mutable_request() = Step(w, m, step);
      sent.mutable_request()->mutable_identity()->set_client(absl::StrCat(name, ": a training"));
      sent.mutable_request()->mutable_identity()->mutable_client()->resize(16);
      EXPECT_TRUE(stream.Send(sent));
      if (step > kAhead) receive();
    }
    while (answered < kSteps && !HasFatalFailure()) receive();
    stream.SendNoMore();
    EXPECT_TRUE(stream.Finish().ok());
    losses.push_back(calls_.Download(m).bytes);
    calls_.Release(w);
    calls_.Release(m);
    return losses;
  };
  const std::vector<std::string> undisturbed = train("still", [](uint64_t) {});

  // The drains begin while steps are in flight, and end so.
  const std::vector<std::string> moved = train("moved", [&](uint64_t answered) {
    const auto device = static_cast<int32_t>((answered / 50 + 1) % 2);
    if (answered == kSteps || answered < 50) return;
    if (answered % 50 == 0) {
      EXPECT_TRUE(service(device).BeginDrain().ok());
    }
    if (answered % 50 != 40) return;
    EXPECT_TRUE(service(device).AwaitDrained(absl::Now() + absl::Seconds(60)).ok());
    EXPECT_TRUE(Resume(device).ok());
  });

  EXPECT_TRUE(moved == undisturbed);
  EXPECT_EQ(Moves("moved"), kSteps / 50 - 1);
}

TEST_F(ResidentMovesTest, ADownloadInProgressReadsWhatItHas) {
  const std::string bytes = CountingBytes(2 * kMiB);
  const std::string handle = Upload(bytes, 0);
  v1::DownloadRequest request;
  request.set_handle(handle);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  const auto reader = calls_.tensors().Download(&context, request);
  v1::DownloadResponse message;
  ASSERT_TRUE(reader->Read(&message));
  std::string received = message.data();

  ASSERT_TRUE(Await([&] { return Drain(0).ok(); }));
  EXPECT_EQ(DeviceOf(handle), 1u);

  while (reader->Read(&message)) received += message.data();
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << ToStatus(status);
  EXPECT_TRUE(received == bytes);
  EXPECT_TRUE(calls_.Download(handle).bytes == bytes);
}

TEST_F(ResidentMovesTest, ResultsThatRequestsInFlightKeepMoveToo) {
  v1::ExecuteRequest keep;
  Add("Add", Literal(1), Literal(2), &keep);
  keep.add_results()->mutable_keep();
  keep.set_want_receipt(true);
  InjectFaults("kernel=aclnnAdd,slow=100000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  v1::ExecuteResponse response;
  grpc::Status status;
  std::thread request([&] {
    TensorCalls calls(daemon_.target());
    status = calls.Execute(keep, &response);
  });
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));

  const absl::Status drained = Drain(0);

  EXPECT_TRUE(drained.ok()) << drained;
  EXPECT_EQ(OnDevice(0).tensors, 0u);
  request.join();
  ASSERT_TRUE(status.ok()) << ToStatus(status);
  EXPECT_EQ(response.receipt().device(), 0u);
  const std::string& handle = response.results(0).tensor().resident_tensor();
  EXPECT_EQ(DeviceOf(handle), 1u);
  EXPECT_THAT(Floats(calls_.Download(handle).bytes), ElementsAre(3));
}

TEST_F(ResidentMovesTest, TensorsWithoutRoomElsewhereStayUntilThereIsSome) {
  const std::string bytes(20 * kMiB, 'x');  // of the 32 MiB that each device has
  const std::string handle = Upload(bytes, 0);
  const std::string other = Upload(bytes, 1);
  const std::string handle_of_one = Upload(Bytes({1}), 1);

  ASSERT_TRUE(Drain(0).ok());

  const grpc::Status refused = calls_.Download(handle).status;
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE) << ToStatus(refused);
  EXPECT_EQ(DetailOf(refused).reason(), "draining");
  v1::ExecuteResponse response;
  EXPECT_EQ(DetailOf(calls_.Execute(Step(handle, handle_of_one, 1), &response)).reason(),
            "draining");
  EXPECT_TRUE(calls_.Renew(handle).ok());
  EXPECT_EQ(StatusOf(0).state(), v1::DeviceStatus::STATE_DRAINED);
  EXPECT_THAT(StatusOf(0).state_reason(),
              HasSubstr("1 of 20971520 bytes have no place on another device"));
  EXPECT_EQ(Metric("opserve_resident_stuck_bytes", {{"device", "0"}}), 20.0 * kMiB);
  EXPECT_EQ(Moves("no_room"), 1);
  EXPECT_EQ(calls_.Release(other), 1u);
  EXPECT_TRUE(Await([&] { return DeviceOf(handle) == 1; }));
  EXPECT_TRUE(calls_.Download(handle).bytes == bytes);
  EXPECT_EQ(Metric("opserve_resident_stuck_bytes", {{"device", "0"}}), 0);
  EXPECT_EQ(Moves("no_room"), 1);
  EXPECT_EQ(Moves("moved"), 1);
}

TEST_F(ResidentMovesTest, WithoutAnotherDeviceTensorsWaitForTheirOwn) {
  const std::string w = Upload(Bytes({1}), 0);
  const std::string m = Upload(Bytes({1}), 0);
  ASSERT_TRUE(Drain(1).ok());

  ASSERT_TRUE(Drain(0).ok());

  v1::ExecuteResponse response;
  EXPECT_EQ(DetailOf(calls_.Execute(Step(w, m, 1), &response)).reason(), "draining");
  EXPECT_EQ(Moves("no_device"), 1);
  ASSERT_TRUE(Resume(0).ok());
  EXPECT_TRUE(calls_.Execute(Step(w, m, 1), &response).ok());
  // Another drain is a new one, which the other device can help.
  ASSERT_TRUE(Resume(1).ok());
  ASSERT_TRUE(Drain(0).ok());
  EXPECT_TRUE(calls_.Execute(Step(w, m, 2), &response).ok());
  EXPECT_EQ(response.receipt().device(), 1u);
}

TEST_F(ResidentMovesTest, WhicheverCopyFailsNothingIsLost) {
  const std::string bytes = CountingBytes(kTwoChunks);
  const std::string first = Upload(bytes, 0);
  const std::string second = Upload(Bytes({1, 2}), 0);
  int32_t device = 0;
  bool has_failed = true;
  int nth = 1;
  // Each copy of the move in turn, and then none.
  for (; has_failed && nth < 20; ++nth) {
    SCOPED_TRACE(nth);
    const double failed = Moves("failed");
    InjectFaults(absl::StrCat("call=aclrtMemcpy,code=507000,nth=", nth));

    const absl::Status drained = Drain(device);

    ClearFaults();
    EXPECT_TRUE(drained.ok()) << drained;
    has_failed = Moves("failed") > failed;
    EXPECT_EQ(OnDevice(device).tensors, 0u);
    EXPECT_EQ(service(device).queue().booked_bytes(), 0u);
    EXPECT_TRUE(calls_.Download(first).bytes == bytes);
    EXPECT_THAT(Floats(calls_.Download(second).bytes), ElementsAre(1, 2));
    ASSERT_TRUE(Resume(device).ok());
    device = 1 - device;
  }
  EXPECT_EQ(nth, 2 * (2 + 1) + 2);  // to the host and to the device, by chunk
  for (const char* function : {"aclrtMalloc", "aclrtMallocHost"}) {
    SCOPED_TRACE(function);
    EXPECT_TRUE(service(1 - device).TrimPool(absl::Now() + absl::Seconds(60)).ok());
    daemon_.daemon().pinned().Close();
    InjectFaults(absl::StrCat("call=", function, ",code=207001"));
    EXPECT_TRUE(Drain(device).ok());
    ClearFaults();
    EXPECT_TRUE(Await([&] { return OnDevice(device).tensors == 0; }));
    EXPECT_TRUE(calls_.Download(first).bytes == bytes);
    ASSERT_TRUE(Resume(device).ok());
    device = 1 - device;
  }
}

TEST_F(ResidentMovesTest, ATargetThatIsLostIsTriedAgainOrReplaced) {
  const std::string bytes = CountingBytes(kTwoChunks);
  const std::string handle = Upload(bytes, 0);
  InjectFaults("copies,rate=8M");
  ASSERT_TRUE(service(0).BeginDrain().ok());
  EXPECT_TRUE(Await([this] { return IsMoving(); }));

  InjectFaults("device=1,lost");

  EXPECT_TRUE(Await([this] { return Moves("failed") > 0; }));
  ClearFaults();
  EXPECT_TRUE(Await([&] { return DeviceOf(handle) == 1; }));
  EXPECT_TRUE(calls_.Download(handle).bytes == bytes);
  EXPECT_EQ(OnDevice(0).tensors, 0u);
}

TEST_F(ResidentMovesTest, ASourceThatIsLostSaysSoOfItsTensors) {
  const std::string handle = Upload(CountingBytes(kTwoChunks), 0);
  const uint64_t generation = service(0).device().generation();
  InjectFaults("copies,rate=8M");
  ASSERT_TRUE(service(0).BeginDrain().ok());
  EXPECT_TRUE(Await([this] { return IsMoving(); }));

  InjectFaults("device=0,lost");

  EXPECT_TRUE(Await([&] { return service(0).device().generation() > generation; }));
  ClearFaults();
  EXPECT_TRUE(Await([this] { return !IsMoving(); }));
  EXPECT_EQ(DetailOf(calls_.Download(handle).status).reason(), "tensor_lost");
  EXPECT_EQ(OnDevice(0).tensors + OnDevice(1).tensors, 0u);
  EXPECT_TRUE(Await([this] { return service(1).queue().booked_bytes() == 0; }));
  EXPECT_EQ(Moves("moved"), 0);
}

class TwoTenantsMoveTest : public ResidentMovesTest {
 protected:
  TwoTenantsMoveTest() : ResidentMovesTest(TwoTenants()) {}

  static Config TwoTenants() {
    Config config = InProcessDaemon::DefaultConfig();
    AddTwoTenants(&config);
    return config;
  }

  // A client of each tenant, with a tensor on device 0.
  struct Holder {
    std::unique_ptr<Client> client;
    std::vector<float> values;
    std::string handle;
  };
  std::vector<Holder> HoldersOf(int64_t elements) {
    std::vector<Holder> holders;
    for (const char* tenant : {"a", "b"}) {
      Holder& holder = holders.emplace_back();
      holder.client = *Client::Connect(daemon_.target(), {.token = tenant});
      holder.values.assign(static_cast<size_t>(elements), tenant[0]);
      holder.handle =
          holder.client->Upload(Tensor::Of<float>({elements}, holder.values), {.device = 0})
              ->handle;
    }
    return holders;
  }
  void ExpectAllThere(std::vector<Holder>& holders) {
    for (Holder& holder : holders) {
      const auto result = holder.client->Download(holder.handle);
      ASSERT_TRUE(result.ok()) << result.status();
      const auto values = *result->values<float>();
      EXPECT_TRUE(std::equal(values.begin(), values.end(), holder.values.begin()));
    }
  }
};

TEST_F(TwoTenantsMoveTest, EachTenantsTensorsMoveByThemselves) {
  std::vector<Holder> holders = HoldersOf(1000);

  ASSERT_TRUE(Drain(0).ok());

  EXPECT_EQ(Moves("moved"), 2);
  EXPECT_EQ(OnDevice(0).tensors, 0u);
  for (const uint32_t tenant : daemon_.daemon().residents().TenantsOn(1)) {
    EXPECT_EQ(daemon_.daemon().residents().UsageOn(1, tenant).bytes, 4000u);
    EXPECT_EQ(daemon_.daemon().residents().UsageOfTenant(tenant).bytes, 4000u);
  }
  ExpectAllThere(holders);
}

TEST_F(TwoTenantsMoveTest, ResumingStopsAfterThePresentTenant) {
  // A tenant takes longer than the golden cases, whose copies are as slow: the device is resumed
  // after them.
  std::vector<Holder> holders = HoldersOf(8 * kTwoChunks);
  InjectFaults("copies,rate=8M");
  ASSERT_TRUE(service(0).BeginDrain().ok());
  EXPECT_TRUE(Await([this] { return IsMoving(); }));

  ASSERT_TRUE(Resume(0).ok());

  EXPECT_TRUE(Await([this] { return !IsMoving(); }));
  ClearFaults();
  EXPECT_EQ(Moves("moved"), 1);
  EXPECT_EQ(OnDevice(0).tensors, 1u);
  EXPECT_EQ(OnDevice(1).tensors, 1u);
  ExpectAllThere(holders);
}

}  // namespace
}  // namespace opserve::server
