// Random work from several clients while devices break, drain, hang and run out of memory, and
// clients cancel and vanish: every answer is right or a documented error, and in the end nothing is
// held. Lasts OPSERVE_SOAK_SECONDS (default 15).
//
// Now and then all of it rests, nothing may be held, and the live bytes of the heap are counted; in
// the end it tells the growth of the heap.

#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/cpp/execute_stream.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"
#include "tests/process_memory.h"

namespace opserve::server {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

absl::Duration SoakTime() {
  const char* text = std::getenv("OPSERVE_SOAK_SECONDS");
  int seconds = 15;
  if (text != nullptr && !absl::SimpleAtoi(text, &seconds)) std::abort();
  return absl::Seconds(seconds);
}

// Live bytes of this process's heap.
int64_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}

// The heap when nothing happens.
struct HeapSample {
  absl::Time time;
  int64_t answers = 0;
  int64_t bytes = 0;
};

// The slope of the line with the least squares, in bytes for a unit of `of`.
double SlopeOf(const std::vector<HeapSample>& samples, double (*of)(const HeapSample&)) {
  const auto count = static_cast<double>(samples.size());
  double mean_x = 0;
  double mean_y = 0;
  for (const HeapSample& sample : samples) {
    mean_x += of(sample) / count;
    mean_y += static_cast<double>(sample.bytes) / count;
  }
  double xy = 0;
  double xx = 0;
  for (const HeapSample& sample : samples) {
    const double x = of(sample) - mean_x;
    xy += x * (static_cast<double>(sample.bytes) - mean_y);
    xx += x * x;
  }
  return xy / xx;
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

  bool IsOver() const { return over_.HasBeenNotified(); }

  // Counts an outcome; fails the test if it is neither right nor documented.
  void Judge(const char* what, const absl::Status& status, bool is_right) {
    if (absl::IsCancelled(status)) return;  // the client did not want the answer
    ++answers_;
    if (status.ok()) {
      ++right_;
      if (!is_right) ADD_FAILURE() << what << " gave a wrong answer";
      return;
    }
    switch (status.code()) {
      case absl::StatusCode::kDeadlineExceeded:
      case absl::StatusCode::kResourceExhausted:
      case absl::StatusCode::kUnavailable:
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
        for (int spin = pick(2000); spin > 0; --spin)
          std::atomic_signal_fence(std::memory_order_seq_cst);
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
        if (pick(3) == 0) stream.reset();
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
      DeviceService* device = daemon.daemon().scheduler().Find(static_cast<int>(random() % 2));
      device->BeginDrain().IgnoreError();
      device->AwaitDrained(absl::Now() + absl::Milliseconds(100)).IgnoreError();
      device->Resume(absl::Now() + absl::Seconds(5)).IgnoreError();
    }
    if (random() % 4 == 0) ClearFaults();
  }

  // Clients and faults in any mixture until it is over.
  std::vector<std::thread> StartLoad(InProcessDaemon& daemon) {
    std::vector<std::thread> threads;
    for (uint32_t seed = 0; seed < 4; ++seed) {
      threads.emplace_back([this, seed] {
        auto client = *Client::Connect(target_);
        std::mt19937 random(seed);
        while (!IsOver()) {
          absl::ReaderMutexLock working(&rest_);
          OneStep(*client, random);
        }
      });
    }
    threads.emplace_back([this, &daemon] {
      std::mt19937 random(4711);
      while (!over_.WaitForNotificationWithTimeout(absl::Milliseconds(100))) {
        absl::ReaderMutexLock working(&rest_);
        TormentOnce(daemon, random);
      }
    });
    return threads;
  }

  // Stops everything for a moment: no faults, devices that serve, and nothing that requests hold.
  HeapSample Rest(InProcessDaemon& daemon) {
    absl::WriterMutexLock resting(&rest_);
    ClearFaults();
    daemon.AwaitReady();
    daemon.EndLeases();
    // The daemon may still be about to see that the last clients vanished.
    EXPECT_TRUE(Await([&daemon] { return daemon.HeldByRequests() == 0; }))
        << daemon.HeldByRequests() << " held";
    return {absl::Now(), answers_.load(), HeapBytes()};
  }

  std::string target_;
  absl::Mutex rest_;  // held by those that do something; alone, by the one that has them rest
  absl::Notification over_;
  std::atomic<int64_t> answers_ = 0;
  std::atomic<int64_t> right_ = 0;
};

TEST_F(SoakTest, WhateverHappensNothingIsLostOrLeaked) {
  {
    InProcessDaemon daemon(SoakConfig());
    target_ = daemon.target();
    std::vector<std::thread> threads = StartLoad(daemon);

    // Memory may grow while pools and caches fill; after the first third it may not.
    const absl::Duration total = SoakTime();
    const absl::Time start = absl::Now();
    const absl::Duration period = std::max(absl::Milliseconds(500), total / 200);
    std::vector<HeapSample> samples;
    int64_t warm_bytes = 0;
    for (absl::Time next = start + total / 3; next <= start + total; next += period) {
      absl::Notification never;
      never.WaitForNotificationWithTimeout(next - absl::Now());
      samples.push_back(Rest(daemon));
      if (samples.size() == 1) warm_bytes = ResidentBytesOf(getpid());
    }
    const int64_t last_bytes = ResidentBytesOf(getpid());
    over_.Notify();
    for (std::thread& thread : threads) thread.join();
    Rest(daemon);

    const double per_answer = SlopeOf(
        samples, [](const HeapSample& sample) { return static_cast<double>(sample.answers); });
    const double per_hour = SlopeOf(samples, [](const HeapSample& sample) {
      return absl::ToDoubleSeconds(sample.time - absl::UnixEpoch()) / 3600;
    });
    std::fprintf(stderr,
                 "soak: %ld answers, %ld right (%.1f %%); heap %+.1f bytes an answer, %+.2f MiB an "
                 "hour; resident memory %ld MiB, then %ld MiB\n",
                 answers_.load(), right_.load(), 100.0 * right_ / answers_, per_answer,
                 per_hour / kMiB, warm_bytes / kMiB, last_bytes / kMiB);
    EXPECT_GE(right_, 0.7 * answers_);
    if (kMemoryTells) {
      EXPECT_LE(last_bytes - warm_bytes, 16 * kMiB);
    }
    EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(1000)), 1000));
  }
  EXPECT_EQ(CountHost(), HostCounts());  // as before the daemon
}

}  // namespace
}  // namespace opserve::server
