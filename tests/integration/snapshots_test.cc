// Downloads of several tensors: all as they are at one moment, whatever changes them meanwhile.
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "proto/codec/crc32c.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kChunkBytes = 4096;

v1::DownloadRequest RequestFor(const std::vector<std::string>& handles) {
  v1::DownloadRequest request;
  request.mutable_handles()->Add(handles.begin(), handles.end());
  request.set_chunk_bytes(kChunkBytes);
  return request;
}

// Adds 1 to every element of all these tensors, in their own memory or not.
v1::ExecuteRequest Step(const std::vector<std::string>& handles, bool is_in_place) {
  v1::ExecuteRequest request;
  for (const std::string& handle : handles) {
    v1::Invocation* invocation = request.add_invocations();
    invocation->set_operator_(is_in_place ? "InplaceAdd" : "Add");
    v1::NamedTensor* self = invocation->add_inputs();
    self->set_name("self");
    self->mutable_tensor()->set_resident_tensor(handle);
    v1::NamedTensor* other = invocation->add_inputs();
    other->set_name("other");
    other->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    other->mutable_tensor()->add_shape(1);
    other->mutable_tensor()->set_literal(Bytes({1}));
    v1::WantedResult* result = request.add_results();
    result->set_invocation(static_cast<uint32_t>(request.invocations_size() - 1));
    result->mutable_replace()->set_handle(handle);
    if (is_in_place) request.add_donated(handle);
  }
  return request;
}

// A tensor that has arrived.
struct Part {
  v1::DownloadHeader header;
  std::string bytes;
};

struct Snapshot {
  grpc::Status status;
  std::vector<Part> parts;
};

class SnapshotsTest : public ::testing::Test {
 protected:
  ~SnapshotsTest() override {
    ClearFaults();
    daemon_.EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == 0; }))
        << daemon_.HeldByRequests() << " held";
  }

  static Config TwoDevices() {
    Config config = InProcessDaemon::DefaultConfig();
    config.recovery_wait = absl::Milliseconds(1);
    config.resident_max_tensors_per_tenant = 8;
    return config;
  }

  std::string Upload(const UploadPlan& plan) {
    const auto uploaded = calls_.Upload(plan);
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    return uploaded.response.handle();
  }

  // Takes the messages as they come; `on_message` is called after each.
  Snapshot Take(
      const v1::DownloadRequest& request,
      const std::function<void(int number, grpc::ClientContext& context)>& on_message =
          [](int, grpc::ClientContext&) {}) {
    Snapshot snapshot;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
    const auto reader = calls_.tensors().Download(&context, request);
    v1::DownloadResponse message;
    for (int number = 0; reader->Read(&message); ++number) {
      if (message.has_header()) {
        snapshot.parts.push_back({message.header(), ""});
        EXPECT_TRUE(message.data().empty());
      } else {
        EXPECT_EQ(codec::Crc32c(message.data()), message.crc32c());
        snapshot.parts.back().bytes += message.data();
      }
      on_message(number, context);
    }
    snapshot.status = reader->Finish();
    return snapshot;
  }

  double Metric(const char* name, const MetricLabels& labels = {}) {
    return MetricValue(daemon_.daemon(), name, labels);
  }

  double TenantBytes() {
    return Metric("opserve_tenant_memory_bytes", {{"tenant", "default"}, {"kind", "hbm"}});
  }

  // Downloads that have ended so.
  double Ended(const char* result) {
    return Metric("opserve_downloads_total", {{"result", result}});
  }

  // Waits until nothing but resident tensors is held.
  void AwaitRest(int64_t held_by_tensors) {
    EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == held_by_tensors; }))
        << daemon_.HeldByRequests() << " held, " << held_by_tensors << " by tensors";
  }

  InProcessDaemon daemon_{TwoDevices()};
  TensorCalls calls_{daemon_.target()};
};

TEST_F(SnapshotsTest, TensorsComeInTheOrderAskedForEachWithItsHeader) {
  const std::string none = Upload({.bytes = "", .shape = {0, 3}});
  const std::string one = Upload({.bytes = Bytes({7}), .device = 1});
  const std::string several = Upload({.bytes = CountingBytes(2500), .device = 0});
  const std::string exact = Upload({.bytes = CountingBytes(1024)});
  const std::string none_either = Upload({.bytes = "", .shape = {0}});
  const std::vector<std::vector<std::string>> kOrders = {{none, several, none_either, one, exact},
                                                         {one, none, none_either},
                                                         {none, none_either},
                                                         {several, exact},
                                                         {one}};
  for (const std::vector<std::string>& order : kOrders) {
    const Snapshot snapshot = Take(RequestFor(order));

    ASSERT_TRUE(snapshot.status.ok()) << ToStatus(snapshot.status);
    ASSERT_EQ(snapshot.parts.size(), order.size());
    uint64_t total_bytes = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto alone = calls_.Download(order[i]);
      EXPECT_EQ(snapshot.parts[i].bytes, alone.bytes) << i;
      EXPECT_THAT(snapshot.parts[i].header.shape(),
                  ::testing::ElementsAreArray(alone.header.shape()));
      EXPECT_EQ(snapshot.parts[i].header.version(), 1u);
      total_bytes += alone.bytes.size();
    }
    EXPECT_EQ(snapshot.parts[0].header.total_bytes(), total_bytes);
  }
}

TEST_F(SnapshotsTest, AllTensorsAreOfOneStep) {
  const std::vector<std::string> state = {Upload({.bytes = Bytes(std::vector<float>(2500, 1))}),
                                          Upload({.bytes = Bytes({1})}),
                                          Upload({.bytes = Bytes(std::vector<float>(5000, 1))})};
  std::atomic<bool> is_over = false;
  std::thread training([&] {
    TensorCalls calls(daemon_.target());
    for (int step = 0; !is_over; ++step) {
      v1::ExecuteResponse response;
      const grpc::Status status =
          calls.Execute(Step(state, /*is_in_place=*/step % 2 == 0), &response);
      EXPECT_TRUE(status.ok()) << ToStatus(status);
    }
  });
  uint64_t last_version = 0;
  int different = 0;  // snapshots of a later step than the one before
  for (int i = 0; i < 1000 && different < 20; ++i) {
    const Snapshot snapshot = Take(RequestFor(state));
    EXPECT_TRUE(snapshot.status.ok()) << ToStatus(snapshot.status);
    EXPECT_EQ(snapshot.parts.size(), state.size());
    if (HasFailure()) break;
    const uint64_t version = snapshot.parts[0].header.version();
    for (const Part& part : snapshot.parts) {
      EXPECT_EQ(part.header.version(), version);
      EXPECT_THAT(Floats(part.bytes), Each(static_cast<float>(version)));
    }
    if (version > last_version) ++different;
    last_version = version;
  }
  is_over = true;
  training.join();
  EXPECT_EQ(different, 20);
}

TEST_F(SnapshotsTest, RequestsThatChangeItsTensorsDoNotWaitForItsReader) {
  // More than the connection and the daemon hold for a reader that stands still.
  const std::vector<std::string> state = {
      Upload({.bytes = Bytes(std::vector<float>(2 << 20, 1)), .chunk_bytes = 1 << 20}),
      Upload({.bytes = Bytes({1})})};
  const double booked = TenantBytes();
  EXPECT_GE(booked, (8 << 20) + 4);
  for (const bool is_in_place : {true, false}) {
    v1::DownloadRequest request = RequestFor(state);
    request.set_chunk_bytes(1 << 20);
    const float before = is_in_place ? 1 : 2;

    const Snapshot snapshot = Take(request, [&](int number, grpc::ClientContext&) {
      if (number > 0) return;
      v1::ExecuteResponse response;
      const grpc::Status status = calls_.Execute(Step(state, is_in_place), &response);
      EXPECT_TRUE(status.ok()) << ToStatus(status);
      EXPECT_GT(Metric("opserve_download_held_bytes"), 0);
    });
    // What was replaced goes with the download; what replaced it is the tenant's as before.
    EXPECT_TRUE(Await([&] { return TenantBytes() == booked; })) << TenantBytes();

    ASSERT_TRUE(snapshot.status.ok()) << ToStatus(snapshot.status);
    EXPECT_EQ(Metric("opserve_download_held_bytes"), 0);
    for (const Part& part : snapshot.parts) EXPECT_THAT(Floats(part.bytes), Each(before));
    EXPECT_EQ(Floats(calls_.Download(state[1]).bytes)[0], before + 1);
  }

  v1::DownloadRequest request = RequestFor(state);
  Take(request, [](int, grpc::ClientContext& context) { context.TryCancel(); });
  EXPECT_TRUE(Await([&] { return Ended("cancelled") == 1; }));
  EXPECT_EQ(Metric("opserve_download_held_bytes"), 0);
}

TEST_F(SnapshotsTest, MistakesAreNamed) {
  const std::string first = Upload({.bytes = Bytes({1})});
  const std::string second = Upload({.bytes = Bytes({2})});
  v1::DownloadRequest both = RequestFor({first, second});
  both.set_handle(first);
  const struct {
    const char* name;
    v1::DownloadRequest request;
    grpc::StatusCode code;
    const char* in_message;
  } kMistakes[] = {
      {"Unknown", RequestFor({first, "nobody's"}), grpc::StatusCode::NOT_FOUND, "handles[1]: no "},
      {"Empty", RequestFor({"", first}), grpc::StatusCode::NOT_FOUND, "handles[0]: no "},
      {"Twice", RequestFor({first, second, first}), grpc::StatusCode::INVALID_ARGUMENT,
       "handles[2]: the tensor is named twice"},
      {"TooMany", RequestFor(std::vector<std::string>(9, first)),
       grpc::StatusCode::INVALID_ARGUMENT, "there are 9, at most 8 allowed"},
      {"HandleAndHandles", both, grpc::StatusCode::INVALID_ARGUMENT, "handle: "},
      {"None", v1::DownloadRequest(), grpc::StatusCode::NOT_FOUND, "no resident tensor"},
  };
  for (const auto& mistake : kMistakes) {
    const Snapshot snapshot = Take(mistake.request);
    EXPECT_EQ(snapshot.status.error_code(), mistake.code) << mistake.name;
    EXPECT_THAT(snapshot.status.error_message(), HasSubstr(mistake.in_message)) << mistake.name;
    EXPECT_TRUE(snapshot.parts.empty());
  }
  EXPECT_EQ(Take(RequestFor({first, second})).parts.size(), 2u);
}

TEST_F(SnapshotsTest, ATensorThatIsLostWhileTheSnapshotWaitsIsNotSent) {
  const std::vector<std::string> state = {Upload({.bytes = Bytes({1})}),
                                          Upload({.bytes = Bytes({1})})};
  InjectFaults("kernel=aclnnInplaceAdd,hang");
  const auto stub = v1::OperatorService::NewStub(
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials()));
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  grpc::ClientContext context;
  std::thread step([&] {
    v1::ExecuteResponse response;
    EXPECT_FALSE(stub->Execute(&context, Step(state, /*is_in_place=*/true), &response).ok());
  });
  // Its kernel hangs, so that it has both tensors to itself.
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  Snapshot snapshot;
  std::thread reader([&] { snapshot = Take(RequestFor(state)); });
  EXPECT_TRUE(Await([&] { return Metric("opserve_tensor_waiting_requests") == 1; }));

  context.TryCancel();

  step.join();
  reader.join();
  EXPECT_EQ(DetailOf(snapshot.status).reason(), "tensor_lost") << ToStatus(snapshot.status);
  EXPECT_TRUE(snapshot.parts.empty());
}

TEST_F(SnapshotsTest, AClientThatLeavesAfterAnyMessageLeavesNothing) {
  const std::vector<std::string> state = {Upload({.bytes = CountingBytes(2500)}),
                                          Upload({.bytes = "", .shape = {0}}),
                                          Upload({.bytes = CountingBytes(3000)})};
  int num_messages = 0;
  Take(RequestFor(state), [&](int, grpc::ClientContext&) { ++num_messages; });
  EXPECT_EQ(num_messages, 3 + 3 + 3);
  for (int last = 0; last < num_messages; ++last) {
    Take(RequestFor(state), [last](int number, grpc::ClientContext& context) {
      if (number == last) context.TryCancel();
    });
    // What was replaced lives as long as the snapshot has it; see the fixture's end.
    v1::ExecuteResponse response;
    EXPECT_TRUE(calls_.Execute(Step({state[0], state[2]}, /*is_in_place=*/false), &response).ok());
    EXPECT_TRUE(Await([&] { return Metric("opserve_download_held_bytes") == 0; })) << last;
  }
  // The daemon may have sent the last messages before it hears of the end.
  EXPECT_TRUE(Await([&] {
    return Ended("complete") + Ended("cancelled") == num_messages + 1 && Ended("complete") > 0;
  }));
}

TEST_F(SnapshotsTest, WhateverCopyFailsTheNextSnapshotSucceeds) {
  const std::vector<std::string> state = {Upload({.bytes = CountingBytes(2500)}),
                                          Upload({.bytes = CountingBytes(3000)})};
  const int64_t held = daemon_.HeldByRequests();
  for (int nth = 1; nth <= 6; ++nth) {
    SCOPED_TRACE(nth);
    InjectFaults(absl::StrCat("call=aclrtMemcpy,nth=", nth, ",count=1,code=507000"));
    const Snapshot faulty = Take(RequestFor(state));
    ClearFaults();

    EXPECT_EQ(faulty.status.error_code(), grpc::StatusCode::INTERNAL) << ToStatus(faulty.status);
    EXPECT_EQ(Take(RequestFor(state)).parts[1].bytes, CountingBytes(3000));
    AwaitRest(held);
  }
}

TEST_F(SnapshotsTest, ADeviceThatIsLostTakesTheSnapshotWithIt) {
  const std::vector<std::string> state = {
      Upload({.bytes = CountingBytes(2500), .device = 0}),
      Upload({.bytes = CountingBytes(2 << 20), .chunk_bytes = 1 << 20, .device = 1})};
  v1::DownloadRequest request = RequestFor(state);

  const Snapshot snapshot = Take(request, [&](int number, grpc::ClientContext&) {
    if (number == 0) InjectFaults("device=1,lost");
  });

  EXPECT_FALSE(snapshot.status.ok());
  calls_.Await(1, [](const v1::DeviceStatus& device) {
    return device.state() == v1::DeviceStatus::STATE_READY && device.quarantines() > 0;
  });
  const Snapshot next = Take(request);
  EXPECT_EQ(DetailOf(next.status).reason(), "tensor_lost") << ToStatus(next.status);
  EXPECT_THAT(next.status.error_message(), HasSubstr("handles[1]: "));
  EXPECT_EQ(Take(RequestFor({state[0]})).parts[0].bytes, CountingBytes(2500));
}

}  // namespace
}  // namespace opserve::server
