// Random work from several clients while devices break, drain, hang and run out of memory, and
// clients cancel and vanish: every answer is right or a documented error, and in the end nothing is
// held. Lasts OPSERVE_SOAK_SECONDS (default 15).

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
#include "tests/integration/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"
#include "tests/process_memory.h"

namespace opserve::server {
namespace {

absl::Duration SoakTime() {
  const char* text = std::getenv("OPSERVE_SOAK_SECONDS");
  int seconds = 15;
  if (text != nullptr && !absl::SimpleAtoi(text, &seconds)) std::abort();
  return absl::Seconds(seconds);
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
    ++answers_;
    if (status.ok()) {
      ++right_;
      if (!is_right) ADD_FAILURE() << what << " gave a wrong answer";
      return;
    }
    switch (status.code()) {
      case absl::StatusCode::kCancelled:
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

  // Breaks something every now and then.
  void Torment(InProcessDaemon& daemon) {
    std::mt19937 random(4711);
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
    while (!over_.WaitForNotificationWithTimeout(absl::Milliseconds(50))) {
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
    ClearFaults();
  }

  std::string target_;
  absl::Notification over_;
  std::atomic<int64_t> answers_ = 0;
  std::atomic<int64_t> right_ = 0;
};

TEST_F(SoakTest, WhateverHappensNothingIsLostOrLeaked) {
  InProcessDaemon daemon(SoakConfig());
  target_ = daemon.target();
  std::vector<std::thread> threads;
  for (uint32_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([this, seed] {
      auto client = *Client::Connect(target_);
      std::mt19937 random(seed);
      while (!IsOver()) OneStep(*client, random);
    });
  }
  threads.emplace_back([this, &daemon] { Torment(daemon); });

  // Memory may grow while pools and caches fill; after the first third it may not.
  const absl::Duration total = SoakTime();
  absl::Notification never;
  never.WaitForNotificationWithTimeout(total / 3);
  const int64_t warm_bytes = ResidentBytesOf(getpid());
  never.WaitForNotificationWithTimeout(total * 2 / 3);
  const int64_t last_bytes = ResidentBytesOf(getpid());
  over_.Notify();
  for (std::thread& thread : threads) thread.join();

  daemon.AwaitReady();
  std::fprintf(stderr, "soak: %ld answers, %ld right; resident memory %ld MiB, then %ld MiB\n",
               answers_.load(), right_.load(), warm_bytes >> 20, last_bytes >> 20);
  EXPECT_GT(right_, answers_ / 4);
  if (kMemoryTells) {
    EXPECT_LT(last_bytes - warm_bytes, 64 << 20);
  }
  daemon.EndLeases();
  // The daemon may still be about to see that the last clients vanished.
  EXPECT_TRUE(Await([&daemon] { return daemon.HeldByRequests() == 0; }))
      << daemon.HeldByRequests() << " held";
  EXPECT_TRUE(IsAllOnes(daemon.client().Execute(OnesRequest(1000)), 1000));
}

}  // namespace
}  // namespace opserve::server
