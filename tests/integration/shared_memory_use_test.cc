// Ranges that requests name: which are refused, and how long a region that is in use stays.
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/message.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/session_calls.h"
#include "tests/integration/shared_memory_calls.h"
#include "tests/integration/shared_memory_requests.h"
#include "tests/integration/tensor_calls.h"

extern char** environ;

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kElements = 1000;
constexpr uint64_t kTensorBytes = kElements * sizeof(float);
constexpr uint64_t kRegionBytes = 1 << 20;

struct Baseline {
  int64_t descriptors = 0;
  int mappings = 0;  // of files in memory
  int64_t registrations = 0;
  friend bool operator==(const Baseline&, const Baseline&) = default;
};

Baseline Now() {
  Baseline now;
  now.descriptors = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  now.mappings = CountMemoryMappings();
  now.registrations = HostCount(OPSERVE_HOST_REGISTERED_REGIONS);
  return now;
}

// OnesRequest with its tensor `self` in `range`.
Request WithInput(const SharedRange& range, int64_t count = kElements) {
  Request request = OnesRequest(count);
  request.invocations[0].inputs[1].value = SharedTensor{v1::DATA_TYPE_FLOAT, {count}, range};
  return request;
}

class UseTest : public ::testing::Test {
 protected:
  // The client is connected.
  void SetUp() override { ASSERT_TRUE(daemon_.client().Execute(OnesRequest(1)).ok()); }
  void TearDown() override { ClearFaults(); }

  static Request WithResult(const SharedRange& range, int64_t count = kElements) {
    Request request = OnesRequest(count);
    request.destinations = {range};
    return request;
  }

  // The status of a request that must be refused before anything is launched.
  absl::Status Refusal(const Request& request) {
    const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
    const absl::Status status = daemon_.client().Execute(request).status();
    EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches);
    return status;
  }
  void ExpectInvalid(const Request& request, const char* message) {
    const absl::Status status = Refusal(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(ReasonOf(status), "shm_invalid") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
  uint32_t Executing() {
    uint32_t executing = 0;
    for (const auto& device : daemon_.daemon().scheduler().devices()) {
      executing += device->executing();
    }
    return executing;
  }

  InProcessDaemon daemon_{WithSharedMemory()};
  const std::unique_ptr<SharedMemory> memory_ = *SharedMemory::Open(daemon_.target());
  std::unique_ptr<opserve::SharedRegion> region_ = *memory_->CreateRegion(kRegionBytes);
};

// S8. Regions of other connections are as unknown as those that never were.
TEST_F(UseTest, OnlyRegionsOfTheNamedConnectionAreFound) {
  SharedMemorySocket other(daemon_.target());
  other.Register({.id = 77, .size = kRegionBytes});
  std::vector<std::string> texts;
  for (const uint64_t id : {uint64_t{77}, uint64_t{78}, uint64_t{0}, UINT64_MAX}) {
    SharedRange range = region_->Range(0, kTensorBytes);
    range.region = id;
    for (const Request& request : {WithInput(range), WithResult(range)}) {
      const absl::Status status = Refusal(request);
      EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
      EXPECT_EQ(ReasonOf(status), "shm_invalid");
    }
    texts.emplace_back(Refusal(WithInput(range)).message());
  }
  EXPECT_THAT(texts, ::testing::Each(texts.front()));
}

// S15.
TEST_F(UseTest, OnlyKeysOfTheCallersConnectionsAreTaken) {
  SharedMemorySocket closed(daemon_.target());
  closed.Register({.id = 1, .size = kRegionBytes});
  closed.Close();
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon_.daemon(), "opserve_shm_regions", {{"tenant", "default"}}) == 1;
  }));
  const Baseline before = Now();
  SharedRange range = region_->Range(0, kTensorBytes);
  std::string forged = range.connection;
  forged[7] ^= 1;
  std::vector<std::string> texts;
  for (const std::string& key : {std::string(), range.connection.substr(1), range.connection + "x",
                                 std::string(4000, 'k'), forged, closed.key()}) {
    range.connection = key;
    ExpectInvalid(WithInput(range), "");
    ExpectInvalid(WithResult(range), "");
    texts.emplace_back(Refusal(WithInput(range)).message());
  }
  EXPECT_THAT(texts, ::testing::Each(texts.front()));
  EXPECT_EQ(Now().mappings, before.mappings);
  EXPECT_EQ(Now().registrations, before.registrations);
}

// S15 and S8, of another tenant: its key is a forged one.
TEST(UseByTenantsTest, AnotherTenantsKeyIsLikeOneThatNeverWas) {
  Config config = WithSharedMemory();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(tenant { name: "a"
                  token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
         tenant { name: "b" }
         anonymous_tenant: "b")",
      &config.values));
  config.tenants = *TenantsFrom(config.values);
  InProcessDaemon daemon(config);
  SharedMemorySocket a(daemon.target());
  ASSERT_FALSE(a.Register({.id = 1, .token = "a"}).has_error());
  std::vector<std::string> texts;
  for (const std::string& key : {a.key(), std::string(16, 'k')}) {
    Request request = OnesRequest(10);
    request.destinations = {SharedRange{.connection = key, .region = 1, .size = 40}};
    const absl::Status status = daemon.client().Execute(request).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    texts.emplace_back(status.message());
  }
  EXPECT_EQ(texts[0], texts[1]);
}

// S9.
TEST_F(UseTest, RangesStayInsideTheirRegionsAndFitTheirTensors) {
  const uint64_t end = memory_->ListRegions()->at(0).size;
  for (const uint64_t offset : {end - kTensorBytes + 4, end, end + 4, UINT64_MAX - 3,
                                UINT64_MAX - kTensorBytes + 1, uint64_t{1} << 63}) {
    ExpectInvalid(WithInput(region_->Range(offset, kTensorBytes)), "leaves its region");
    ExpectInvalid(WithResult(region_->Range(offset, kTensorBytes)), "leaves its region");
  }
  EXPECT_TRUE(
      daemon_.client().Execute(WithInput(region_->Range(end - kTensorBytes, kTensorBytes))).ok());
  for (const uint64_t size : {uint64_t{0}, kTensorBytes - 1, kTensorBytes + 1, UINT64_MAX}) {
    ExpectInvalid(WithInput(region_->Range(0, size)), "takes 4000");
    ExpectInvalid(WithResult(region_->Range(0, size)), "takes 4000");
  }
  for (const uint64_t offset : {1, 2, 3, 4001}) {
    ExpectInvalid(WithInput(region_->Range(offset, kTensorBytes)), "multiple of 4");
    ExpectInvalid(WithResult(region_->Range(offset, kTensorBytes)), "multiple of 4");
  }
  // A view stays inside its range.
  Request request = WithInput(region_->Range(0, kTensorBytes));
  auto& view = std::get<SharedTensor>(request.invocations[0].inputs[1].value);
  view.strides = {2};
  ExpectInvalid(request, "takes at least 7996");
}

TEST_F(UseTest, ResultsOverlapNeitherInputsNorEachOther) {
  const auto overlapping = {int64_t{0}, int64_t{4}, int64_t{-4}, int64_t{kTensorBytes} - 4,
                            4 - int64_t{kTensorBytes}};
  constexpr int64_t kInput = 40'000;
  for (const int64_t distance : overlapping) {
    Request request = WithInput(region_->Range(kInput, kTensorBytes));
    request.destinations = {region_->Range(kInput + distance, kTensorBytes)};
    ExpectInvalid(request, "overlaps that of an input");

    request = OnesRequest(kElements);
    request.invocations.push_back(request.invocations[0]);
    request.results = {{.invocation = 0}, {.invocation = 1}};
    request.destinations = {region_->Range(kInput, kTensorBytes),
                            region_->Range(kInput + distance, kTensorBytes)};
    ExpectInvalid(request, "overlaps that of another result");
  }
  for (const int64_t distance : {int64_t{kTensorBytes}, -int64_t{kTensorBytes}}) {
    Request request = WithInput(region_->Range(kInput, kTensorBytes));
    request.destinations = {region_->Range(kInput + distance, kTensorBytes)};
    EXPECT_TRUE(daemon_.client().Execute(request).ok());
  }
  // Inputs may be the same memory, or parts of each other.
  Request request = WithInput(region_->Range(kInput, kTensorBytes));
  request.invocations[0].inputs[2].value =
      SharedTensor{v1::DATA_TYPE_FLOAT, {kElements}, region_->Range(kInput + 64, kTensorBytes)};
  request.invocations[0].inputs[0].value =
      SharedTensor{v1::DATA_TYPE_FLOAT, {kElements}, region_->Range(kInput, kTensorBytes)};
  EXPECT_TRUE(daemon_.client().Execute(request).ok());
}

// One file may be registered twice.
TEST_F(UseTest, ResultsDoNotOverlapInputsInAnotherRegionOfTheFile) {
  SharedMemorySocket socket(daemon_.target());
  const FileDescriptor fd = SealedFile(4 * kPageBytes);
  socket.Register({.id = 1, .offset = 0, .size = 3 * kPageBytes}, fd.get());
  socket.Register({.id = 2, .offset = kPageBytes, .size = 3 * kPageBytes}, fd.get());
  const auto range = [&](uint64_t region, uint64_t offset) {
    return SharedRange{socket.key(), region, offset, kTensorBytes};
  };
  Request request = WithInput(range(1, kPageBytes));
  request.destinations = {range(2, 0)};
  ExpectInvalid(request, "overlaps that of an input");
  request.destinations = {range(2, kPageBytes)};
  // The test's client has no such region to find the result in; the daemon has run it.
  EXPECT_EQ(daemon_.client().Execute(request).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(UseTest, AnIdempotencyKeyDoesNotGoWithSharedMemory) {
  Request request = WithInput(region_->Range(0, kTensorBytes));
  request.idempotency_key = "key";
  ExpectInvalid(request, "idempotency_key");
}

// The identity says which request it is, so the contents are not compared; they may have changed.
TEST_F(UseTest, ARepetitionOfANumberedRequestGetsTheFirstAnswerWhateverTheMemoryHasNow) {
  Layout layout(region_.get());
  const SharedRange range = layout.Put(Tensor::Owning<float>({2}, {1, 2})).range;
  const auto write = [&](std::vector<float> values) {
    std::memcpy(layout.At(range), values.data(), range.size);
  };
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("Add");
  for (const char* name : {"self", "other"}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->add_shape(2);
    EncodeRange(range, input->mutable_tensor()->mutable_shared_memory());
  }
  request.add_results();
  request.add_results()->mutable_keep();
  request.mutable_identity()->set_client(std::string(16, 'c'));
  request.mutable_identity()->set_number(1);
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  const auto stub = NewStub(daemon_.target());
  TensorCalls calls(daemon_.target());
  TestSession session(*stub);
  const auto by_session = [&](uint64_t frame) {
    v1::ExecuteResponse response;
    EXPECT_TRUE(session.Send(RequestFrame(frame, request)));
    EXPECT_TRUE(response.ParseFromString(session.Receive().body));
    return response;
  };

  const v1::ExecuteResponse first = by_session(1);
  write({10, 20});
  v1::ExecuteResponse by_call;
  const grpc::Status status = calls.Execute(request, &by_call);
  write({100, 200});
  const v1::ExecuteResponse last = by_session(2);

  EXPECT_EQ(first.payloads(0), Bytes({2, 4}));
  ASSERT_TRUE(status.ok()) << ToStatus(status);
  EXPECT_EQ(by_call.SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(last.SerializeAsString(), first.SerializeAsString());
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES), launches + 1);
  EXPECT_EQ(daemon_.daemon().residents().Total().tensors, 1u);
  EXPECT_EQ(calls.Download(first.results(1).tensor().resident_tensor()).bytes, Bytes({2, 4}));

  // The next request reads what is there now.
  request.mutable_identity()->set_number(2);
  EXPECT_EQ(by_session(3).payloads(0), Bytes({200, 400}));
  daemon_.EndLeases();
}

TEST(UseLimitsTest, LimitsOfRequestsHoldForSharedMemoryToo) {
  Config config = WithSharedMemory();
  config.max_tensor_bytes = kTensorBytes;
  InProcessDaemon daemon(config);
  const auto memory = *SharedMemory::Open(daemon.target());
  const auto region = *memory->CreateRegion(kRegionBytes);
  const absl::Status status =
      daemon.client()
          .Execute(WithInput(region->Range(0, kTensorBytes + 4), kElements + 1))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), "too_large");
}

// S11. Whoever writes while a request runs may spoil that request, and nobody else's.
TEST_F(UseTest, MemoryThatChangesMeanwhileHarmsNobodyElse) {
  Layout layout(region_.get());
  const Request shared = layout.Put(OnesRequest(kElements), kTensorBytes);
  std::atomic<bool> is_over = false;
  std::thread scribbler([&] {
    auto* const bytes = reinterpret_cast<volatile uint8_t*>(region_->bytes().data());
    for (uint64_t i = 0; !is_over; ++i) bytes[i * 7919 % 20'000] = static_cast<uint8_t>(i);
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(daemon_.client().Execute(shared).ok());
    EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(OnesRequest(kElements)), kElements));
  }
  is_over = true;
  scribbler.join();
}

// S13.
TEST_F(UseTest, ARegionThatIsUnregisteredIsThereUntilItsLastRequestEnds) {
  const Baseline before = Now();
  SharedMemorySocket socket(daemon_.target());
  const FileDescriptor fd = SealedFile(kRegionBytes);
  ASSERT_FALSE(socket.Register({.id = 1, .size = kRegionBytes}, fd.get()).has_error());
  const Request request = WithInput({socket.key(), 1, 0, kTensorBytes});
  InjectFaults("kernel=*,slow=100000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  auto running = daemon_.client().ExecuteAsync(request);
  ASSERT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) == launches + 1; }));

  EXPECT_FALSE(socket.Unregister(1).has_error());

  EXPECT_EQ(Refusal(request).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Now().mappings, before.mappings + 1);
  EXPECT_TRUE(running.get().ok());
  EXPECT_TRUE(Await([&] { return Now().mappings == before.mappings; }));
  EXPECT_EQ(Now().registrations, before.registrations);
}

TEST_F(UseTest, NothingStaysOfConnectionsThatEnd) {
  const Baseline before = Now();
  for (int i = 0; i < 50; ++i) {
    SharedMemorySocket socket(daemon_.target());
    for (uint64_t id = 0; id < 4; ++id) socket.Register({.id = id, .size = kRegionBytes});
    // The result is in a region that this process does not know.
    EXPECT_TRUE(daemon_.client().Execute(WithInput({socket.key(), 2, 0, kTensorBytes})).ok());
  }
  EXPECT_TRUE(Await([&] { return Now() == before; }));
}

TEST_F(UseTest, RegionsOfACancelledRequestGo) {
  const Baseline before = Now();
  {
    SharedMemorySocket socket(daemon_.target());
    socket.Register({.id = 1, .size = kRegionBytes});
    InjectFaults("kernel=*,hang");
    Request request = WithResult({socket.key(), 1, 0, kTensorBytes});
    request.timeout = absl::Milliseconds(200);
    EXPECT_FALSE(daemon_.client().Execute(request).ok());
  }
  EXPECT_TRUE(Await([&] { return Now() == before; }));
  EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == 0; }));
}

// The client of the test below, in a process of its own: sends requests on shared memory until it
// is killed.
TEST(Child, DISABLED_SendsRequests) {
  const auto client = *Client::Connect(std::getenv("OPSERVE_TEST_TARGET"));
  const auto memory = *SharedMemory::Open(std::getenv("OPSERVE_TEST_TARGET"));
  const auto region = *memory->CreateRegion(kRegionBytes);
  Layout layout(region.get());
  const Request request = layout.Put(OnesRequest(kElements), kTensorBytes);
  while (client->Execute(request).ok()) {
  }
}

// S14.
TEST_F(UseTest, NothingStaysOfAClientThatWasKilled) {
  const Baseline before = Now();
  const double regions =
      MetricValue(daemon_.daemon(), "opserve_shm_regions", {{"tenant", "default"}});
  InjectFaults("kernel=*,count=all,slow=50000");
  setenv("OPSERVE_TEST_TARGET", daemon_.target().c_str(), 1);
  for (int round = 0; round < 2; ++round) {
    std::string filter = "--gtest_filter=Child.*";
    std::string disabled = "--gtest_also_run_disabled_tests";
    char* arguments[] = {program_invocation_name, filter.data(), disabled.data(), nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ), 0);
    ASSERT_TRUE(Await([&] { return Executing() == 1; }));
    EXPECT_EQ(Now().mappings, before.mappings + 1);

    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);

    EXPECT_TRUE(Await([&] { return Now() == before; }));
    EXPECT_EQ(MetricValue(daemon_.daemon(), "opserve_shm_regions", {{"tenant", "default"}}),
              regions);
  }
  ClearFaults();
  EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(OnesRequest(kElements)), kElements));
}

// A daemon may end while regions are in use.
TEST(SharedMemoryShutdownTest, ADaemonThatEndsLeavesNothing) {
  const Baseline before = Now();
  {
    Config config = WithSharedMemory();
    config.drain_timeout = absl::ZeroDuration();
    auto daemon = std::make_unique<InProcessDaemon>(config);
    const auto client = *Client::Connect(daemon->target(), {.retry = {.max_attempts = 1}});
    const auto memory = *SharedMemory::Open(daemon->target());
    const auto region = *memory->CreateRegion(kRegionBytes);
    Layout layout(region.get());
    InjectFaults("kernel=*,count=all,slow=50000");
    auto running = client->ExecuteAsync(layout.Put(OnesRequest(kElements), kTensorBytes));
    EXPECT_TRUE(Await([&] {
      return daemon->daemon().scheduler().devices()[0]->executing() +
                 daemon->daemon().scheduler().devices()[1]->executing() ==
             1;
    }));
    daemon.reset();
    running.wait();
    ClearFaults();
    EXPECT_FALSE(memory->ListRegions().ok());
    EXPECT_EQ(memory->CreateRegion(1).status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Now().mappings, before.mappings);
  EXPECT_EQ(Now().registrations, before.registrations);
}

}  // namespace
}  // namespace opserve::server
