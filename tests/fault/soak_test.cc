// Random work from several clients while devices break, drain, hang and run out of memory, and
// clients cancel and vanish: every answer is right or a documented error, and in the end nothing is
// held. Lasts OPSERVE_SOAK_SECONDS (default 12), and a few more.
//
// Now and then all of it rests, nothing may be held, and the live bytes of the heap are counted:
// they may not grow with the time, which only half an hour tells, nor in the end, without faults,
// with the requests.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cpp/execute_stream.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/process_memory.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Less than an object of 64 bytes with each request of one of the four kinds; 1 to 4 were seen.
constexpr double kMostBytesARequest = 10;
constexpr double kMostBytesAnHour = kMiB;
constexpr absl::Duration kTellsHours = absl::Minutes(30);

absl::Duration SoakTime() {
  const char* text = std::getenv("OPSERVE_SOAK_SECONDS");
  int seconds = 12;
  if (text != nullptr && !absl::SimpleAtoi(text, &seconds)) std::abort();
  return absl::Seconds(seconds);
}

// The heap when nothing happens.
struct HeapSample {
  double hours = 0;
  double requests = 0;
  double bytes = 0;
};

// Bytes for a unit of `of`: the median of the slopes between any two samples (Theil and Sen), which
// a few that are far off do not change.
double SlopeOf(const std::vector<HeapSample>& samples, double HeapSample::*of) {
  std::vector<double> slopes;
  for (size_t j = 1; j < samples.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const double run = samples[j].*of - samples[i].*of;
      if (run > 0) slopes.push_back((samples[j].bytes - samples[i].bytes) / run);
    }
  }
  if (slopes.empty()) return 0;
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle;
}

using HostCounts = std::array<int64_t, OPSERVE_HOST_LAUNCHES>;  // what lives, not what happened

HostCounts CountHost() {
  HostCounts counts;
  for (int i = 0; i < OPSERVE_HOST_LAUNCHES; ++i) {
    counts[i] = HostCount(static_cast<opserveHostCounter>(i));
  }
  return counts;
}

class SoakTest : public ::testing::Test {
 protected:
  static Config SoakConfig() {
    Config config = InProcessDaemon::DefaultConfig();
    config.execution_timeout = absl::Milliseconds(200);
    config.workspace_floor_bytes = 4 << 20;
    config.workspace_decay = absl::Milliseconds(500);
    config.executor_cache_entries = 16;
    config.resident_max_lease = absl::Seconds(2);
    config.resident_grace = absl::ZeroDuration();
    config.queue_capacity_total = 32;
    return config;
  }

  // Counts an outcome; fails the test if it is neither right nor documented.
  void Judge(const char* what, const absl::Status& status, bool is_right) {
    ++answers_;
    if (status.ok()) {
      ++right_;
      if (!is_right) ADD_FAILURE() << what << " gave a wrong answer";
      return;
    }
    switch (status.code()) {
      case absl::StatusCode::kCancelled:  // the client did not want the answer
        ++unwanted_;
        return;
      case absl::StatusCode::kUnavailable:
        if (absl::StrContains(status.message(), "no device is ready")) ++refused_;
        return;
      case absl::StatusCode::kDeadlineExceeded:
      case absl::StatusCode::kResourceExhausted:
      case absl::StatusCode::kInternal:            // an injected fault of a kernel
      case absl::StatusCode::kNotFound:            // a lease that has ended
      case absl::StatusCode::kFailedPrecondition:  // a tensor lost with its device
        return;
      default:
        ADD_FAILURE() << what << ": " << status;
    }
  }

  void OneStep(Client& client, std::mt19937& random) {
    const auto pick = [&random](int most) { return static_cast<int>(random() % (most + 1)); };
    const int64_t count = int64_t{1} << pick(16);
    Request request = OnesRequest(count);
    request.timeout = pick(9) == 0 ? absl::Milliseconds(1 + pick(20)) : absl::Seconds(20);
    switch (pick(4)) {
      case 0: {  // cancelled at any moment
        absl::Notification done;
        absl::StatusOr<Response> response;
        CallHandle call = client.ExecuteAsync(request, [&](absl::StatusOr<Response> result) {
          response = std::move(result);
          done.Notify();
        });
        done.WaitForNotificationWithTimeout(absl::Microseconds(pick(2000)));
        call.Cancel();
        done.WaitForNotification();
        Judge("cancelled call", response.status(), IsAllOnes(response, count));
        return;
      }
      case 1: {  // vanishes while the call runs
        auto other = *Client::Connect(target_);
        auto future = other->ExecuteAsync(request);
        other.reset();
        const auto response = future.get();
        Judge("call of a client that vanished", response.status(), IsAllOnes(response, count));
        return;
      }
      case 2: {
        auto stream = *client.OpenStream({.window = 8, .timeout = absl::Seconds(20)});
        std::vector<std::future<absl::StatusOr<Response>>> answers;
        const int requests = pick(12);
        for (int i = 0; i < requests; ++i) answers.push_back(stream->Execute(request));
        if (pick(7) == 0) stream.reset();
        for (auto& answer : answers) {
          const auto response = answer.get();
          Judge("streamed request", response.status(), IsAllOnes(response, count));
        }
        return;
      }
      case 3: {
        const auto resident =
            client.Upload(Tensor::Owning<float>({count}, std::vector<float>(count, 3)),
                          {.lease = absl::Seconds(1), .chunk_bytes = 10000});
        Judge("upload", resident.status(), true);
        if (!resident.ok()) return;
        request.invocations[0].inputs[1].value = *resident;
        const auto response = client.Execute(request);
        Judge("call with a resident tensor", response.status(), IsAllOnes(response, count));
        const auto downloaded = client.Download(resident->handle);
        Judge("download", downloaded.status(),
              downloaded.ok() && *downloaded->values<float>() == std::vector<float>(count, 3));
        if (pick(1) == 0) client.Release({resident->handle}).IgnoreError();
        return;
      }
      default: {
        const auto response = client.Execute(request);
        Judge("call", response.status(), IsAllOnes(response, count));
      }
    }
  }

  // One thing more that breaks.
  static void TormentOnce(InProcessDaemon& daemon, std::mt19937& random) {
    static constexpr const char* kFaults[] = {
        "kernel=*,hang",
        "kernel=*,slow=3000,count=20",
        "kernel=*,code=507035",
        "kernel=*,code=507035,count=4",
        "call=aclrtMalloc,code=207001,count=3",
        "call=aclrtMallocHost,code=207001",
        "call=aclrtMemcpyAsync,code=107002",
        "call=aclrtStreamAbort,code=107019;kernel=*,hang",
        "call=aclSetAclOpExecutorRepeatable,code=561000,count=10",
        "device=0,lost",
        "device=1,lost,resets=2",
        "call=aclrtCreateStream,code=207008;device=1,lost",
    };
    const auto choice = random() % (std::size(kFaults) + 2);
    if (choice < std::size(kFaults)) {
      InjectFaults(kFaults[choice]);
    } else {
      daemon.DrainAndResume(static_cast<int32_t>(random() % 2));
    }
    if (random() % 4 == 0) ClearFaults();
  }

  // Clients and faults in any mixture until `end`.
  void Load(InProcessDaemon& daemon, absl::Time end) {
    std::vector<std::thread> threads;
    for (std::mt19937& random : clients_) {
      threads.emplace_back([this, end, &random] {
        const auto client = *Client::Connect(target_);
        while (absl::Now() < end) OneStep(*client, random);
      });
    }
    absl::Notification is_over;
    std::thread torment([this, &daemon, &is_over] {
      while (!is_over.WaitForNotificationWithTimeout(absl::Milliseconds(100))) {
        TormentOnce(daemon, torment_);
      }
    });
    for (std::thread& thread : threads) thread.join();
    is_over.Notify();
    torment.join();
  }

  // Live bytes of the heap with `connections` alone, once nothing happens.
  static double AwaitQuietHeap(InProcessDaemon& daemon, int connections) {
    // The daemon may still be about to see that clients vanished.
    EXPECT_TRUE(Await([&daemon] { return daemon.HeldByRequests() == 0; }))
        << daemon.HeldByRequests() << " held";
    const MetricLabels labels = {{"listener", "unix"}, {"state", "identified"}};
    EXPECT_TRUE(Await([&daemon, &labels, connections] {
      return MetricValue(daemon.daemon(), "opserve_connections", labels) == connections;
    })) << MetricValue(daemon.daemon(), "opserve_connections", labels)
        << " connections";
    // gRPC's threads put away what was left.
    int64_t bytes = 0;
    int looks = 0;
    EXPECT_TRUE(Await([&bytes, &looks] {
      const int64_t before = std::exchange(bytes, LiveHeapBytes());
      looks = std::abs(bytes - before) < 1024 ? looks + 1 : 0;
      return looks == 20;
    })) << "the heap changes without requests";
    return static_cast<double>(bytes);
  }

  // No faults any more, devices that serve, and nothing that requests or clients hold.
  HeapSample Rest(InProcessDaemon& daemon) {
    ClearFaults();
    // A device may be lost without anybody having noticed, until all lanes are used.
    EXPECT_TRUE(Await([&daemon] {
      daemon.AwaitReady();
      // A new connection may not begin with many calls at once.
      if (!daemon.client().GetServerStatus().ok()) return false;
      std::vector<std::future<absl::StatusOr<Response>>> answers;
      for (int i = 0; i < 16; ++i) answers.push_back(daemon.client().ExecuteAsync(OnesRequest(10)));
      int right = 0;
      for (auto& answer : answers) right += IsAllOnes(answer.get(), 10) ? 1 : 0;
      return right == 16;
    }));
    daemon.EndLeases();
    return {.hours = absl::ToDoubleHours(absl::Now() - start_),
            .bytes = AwaitQuietHeap(daemon, /*connections=*/1)};
  }

  // What the heap grows by with a request when none meets a fault, in bytes. Among faults a run of
  // seconds cannot tell: so much comes and goes.
  double GrowthWithoutFaults(InProcessDaemon& daemon) {
    constexpr int kKinds = 4;
    constexpr int kBatches = 7;
    constexpr int kRounds = kMemoryTells ? 200 : 100;  // of a batch; sanitizers are slow
    const auto client = *Client::Connect(target_);
    const auto stream = *client->OpenStream();
    const Request request = OnesRequest(10);
    const Tensor tensor = Tensor::Owning<float>({10}, std::vector<float>(10, 3));
    int right = 0;  // a machine that stands still may let some take too long
    std::vector<HeapSample> samples;
    for (int batch = 0; batch < kBatches; ++batch) {
      for (int i = 0; i < kRounds; ++i) {
        right += IsAllOnes(client->Execute(request), 10) ? 1 : 0;
        right += IsAllOnes(stream->Execute(request).get(), 10) ? 1 : 0;
        absl::Notification cancelled;
        client->ExecuteAsync(request, [&](const absl::StatusOr<Response>&) { cancelled.Notify(); })
            .Cancel();
        cancelled.WaitForNotification();
        const auto resident = client->Upload(tensor);
        right += resident.ok() && client->Release({resident->handle}).ok() ? 1 : 0;
      }
      const double requests = kKinds * kRounds * batch;
      samples.push_back({.requests = requests, .bytes = AwaitQuietHeap(daemon, /*connections=*/2)});
    }
    EXPECT_GE(right, 0.9 * (kKinds - 1) * kBatches * kRounds) << "of those not cancelled";
    samples.erase(samples.begin());  // what is made once
    return SlopeOf(samples, &HeapSample::requests);
  }

  const absl::Time start_ = absl::Now();
  std::string target_;
  std::vector<std::mt19937> clients_;
  std::mt19937 torment_;
  std::atomic<int64_t> answers_ = 0;
  std::atomic<int64_t> right_ = 0;
  std::atomic<int64_t> unwanted_ = 0;
  std::atomic<int64_t> refused_ = 0;  // while no device is ready
};

TEST_F(SoakTest, WhateverHappensNothingIsLostOrLeaked) {
  {
    InProcessDaemon daemon(SoakConfig());
    target_ = daemon.target();
    const uint32_t seed = TestSeed(0);
    for (uint32_t i = 0; i < 4; ++i) clients_.emplace_back(seed + i);
    torment_.seed(seed + 4);

    // Memory may grow while pools and caches fill; after the first third it may not.
    const absl::Duration total = SoakTime();
    const absl::Duration period = std::max(absl::Milliseconds(500), total / 200);
    std::vector<HeapSample> samples;
    int64_t warm_bytes = 0;
    for (absl::Time next = start_ + total / 3; next <= start_ + total; next += period) {
      Load(daemon, next);
      samples.push_back(Rest(daemon));
      if (samples.size() == 1) warm_bytes = ResidentBytesOf(getpid());
    }
    const int64_t last_bytes = ResidentBytesOf(getpid());

    const double per_request = GrowthWithoutFaults(daemon);
    const double per_hour = SlopeOf(samples, &HeapSample::hours);
    std::fprintf(stderr,
                 "soak: %ld answers, %ld right (%.1f %%), %ld unwanted, %ld refused; heap %+.1f "
                 "bytes a request, %+.2f MiB an hour; resident memory %ld MiB, then %ld MiB\n",
                 answers_.load(), right_.load(), 100.0 * right_ / answers_, unwanted_.load(),
                 refused_.load(), per_request, per_hour / kMiB, warm_bytes / kMiB,
                 last_bytes / kMiB);
    // How many calls are cancelled before they are answered, or refused until a device is ready
    // again, is a matter of the machine's speed.
    EXPECT_GE(right_, 0.7 * (answers_ - unwanted_ - refused_));
    EXPECT_LE(per_request, kMostBytesARequest);
    if (total >= kTellsHours) {
      EXPECT_LE(per_hour, kMostBytesAnHour);
    }
    if (kMemoryTells) {
      EXPECT_LE(last_bytes - warm_bytes, 16 * kMiB);
    }
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(1000)), 1000));
  }
  EXPECT_EQ(CountHost(), HostCounts());  // as before the daemon
}

}  // namespace
}  // namespace opserve::server

int main(int argc, char** argv) {
  opserve::CountHeapWithoutThreadCaches(argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
