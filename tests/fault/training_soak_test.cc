// Clients of four tenants train on two devices that capture their steps, while devices break, drain
// in turn, hang and run out of memory, captures fail, steps are cancelled, programs are released
// and prepared again, and other clients that share the programs are killed. A client goes on with
// the state that a failed step leaves or, where the daemon says that it is lost, from its last
// snapshot. Every loss has the bits of a training without captures, and in the end nothing is held.
// Lasts OPSERVE_SOAK_SECONDS (default 8), and a few more.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/numeric/bits.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/fault/training.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/two_tenants.h"
#include "tests/seed.h"

namespace opserve {
namespace {

using server::AddTwoTenants;
using server::ClearFaults;
using server::Config;
using server::Fault;
using server::HostCount;
using server::InjectFaults;
using server::InProcessDaemon;
using server::MetricValue;

absl::Duration SoakTime() {
  const char* text = std::getenv("OPSERVE_SOAK_SECONDS");
  int seconds = 8;
  if (text != nullptr && !absl::SimpleAtoi(text, &seconds)) std::abort();
  return absl::Seconds(seconds);
}

// One for each tenant. The last one has captures of 200 KiB.
const Job kJobs[] = {
    {"a", {}, true}, {"b", {}, true}, {"c", {}, false}, {"d", {.in = 64, .out = 256}, true}};
// Their clients are killed. But for the last they have the programs of their tenants' others.
const Job kKilledJobs[] = {{"a", {}, true}, {"b", {}, true}, {"c", {}, false}, {"d", {}, true}};
constexpr uint64_t kCapturedBytes = 256 << 10;
// Enough for the last tenant's training with a tensor of Training::kOtherBytes, but not with
// captures, too.
constexpr uint64_t kTenantBytes = 768 << 10;
// After it nothing is left of a client that was killed.
constexpr absl::Duration kLease = absl::Seconds(3);

// printf %s c | sha256sum, and of d
constexpr char kTwoMoreTenants[] = R"(
        tenant { name: "c"
                 token_sha256: "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6" }
        tenant { name: "d"
                 token_sha256: "18ac3e7343f016890c510e93f935261169d9e3f565436429830faf0934f4f8e4" })";

// The losses of a training without faults, by step.
using Losses = std::array<float, kSteps>;

Training::Observer Expecting(const Losses& losses) {
  return {
      .loss = [&losses](int step, float loss) { EXPECT_EQ(loss, losses[step]) << "step " << step; },
      .wrong = [](const std::string& what) { ADD_FAILURE() << what; }};
}

// A training in a process of its own.
class ClientProcess {
 public:
  ClientProcess(const std::string& target, const Job& job, uint32_t seed) {
    std::string arguments[] = {OPSERVE_BUILD_DIR "/tests/training_client", target, job.tenant,
                               job.donates ? "true" : "false", absl::StrCat(seed)};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    if (posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
      std::perror(argv[0]);
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  ~ClientProcess() {
    Kill();
    close(output_);
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  // Whether it prints something within the time.
  bool HasOutput(absl::Duration time) const {
    pollfd polled = {.fd = output_, .events = POLLIN, .revents = 0};
    return poll(&polled, 1, static_cast<int>(absl::ToInt64Milliseconds(time))) > 0;
  }

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
    pid_ = 0;
  }

  // After its death: the number of losses that it printed, each of which has to be the expected
  // one.
  int64_t Check(const Losses& expected) const {
    std::string text;
    char piece[4096];
    for (ssize_t size = 0; (size = read(output_, piece, sizeof(piece))) > 0;) {
      text.append(piece, static_cast<size_t>(size));
    }
    int64_t losses = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> words = absl::StrSplit(line, ' ');
      uint32_t step = 0;
      uint32_t bits = 0;
      if (!absl::SimpleAtoi(words.first, &step) || !absl::SimpleAtoi(words.second, &bits) ||
          step >= kSteps) {
        ADD_FAILURE() << line;
        continue;
      }
      EXPECT_EQ(absl::bit_cast<float>(bits), expected[step]) << "step " << step;
      ++losses;
    }
    return losses;
  }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
};

// Breaks something, or drains a device: the one that `drains` says, and the other one next.
void TormentOnce(InProcessDaemon& daemon, std::mt19937& random, int* drains) {
  static constexpr const char* kFaults[] = {
      "kernel=*,hang",
      "kernel=*,code=507035",
      "kernel=aclnnApplyAdamWV2,code=507035,count=2",
      "call=aclmdlRICaptureBegin,code=207000",
      "call=aclmdlRICaptureEnd,code=507903,count=2",
      "call=aclmdlRIExecuteAsync,code=507899,count=2",
      "call=aclrtCreateStream,code=207008",
      "call=aclrtMalloc,code=207001,count=3",
      "call=aclrtMemcpy,code=107002",
      "call=aclrtMemcpyAsync,code=107002",
      "call=aclrtStreamAbort,code=107019;kernel=*,hang",
      "device=0,lost",
      "device=1,lost,resets=2",
  };
  const auto choice = random() % (std::size(kFaults) + 5);
  if (choice < std::size(kFaults)) {
    InjectFaults(kFaults[choice]);
  } else {
    daemon.DrainAndResume((*drains)++ % 2);
  }
  if (random() % 3 == 0) ClearFaults();
}

// Streams that could not be stopped, captures that could not be ended, and what these use, stay
// until their device is reset.
void ResetDevices(InProcessDaemon& daemon) {
  daemon.AwaitReady();
  for (const auto& service : daemon.daemon().scheduler().devices()) {
    const uint64_t generation = service->device().generation();
    service->device().Quarantine(Fault::kDevice, "by the test");
    EXPECT_TRUE(Await([&] { return service->device().generation() > generation; }));
  }
  daemon.AwaitReady();
}

uint64_t Replays(const InProcessDaemon& daemon) {
  uint64_t replays = 0;
  for (const auto& device : daemon.daemon().scheduler().devices()) {
    replays += device->captured().replays();
  }
  return replays;
}

// Kills clients of all tenants in turn, in anything that they do, until `is_over`. How many steps
// of theirs were answered.
int64_t KillClients(const std::string& target, const Losses& expected, std::mt19937& random,
                    const absl::Notification& is_over) {
  int64_t steps = 0;
  for (size_t i = 0; !is_over.HasBeenNotified(); ++i) {
    ClientProcess client(target, kKilledJobs[i % std::size(kKilledJobs)],
                         static_cast<uint32_t>(random()));
    // Half of them not before they have trained.
    if (random() % 2 == 0) {
      while (!is_over.HasBeenNotified() && !client.HasOutput(absl::Milliseconds(100))) continue;
    }
    is_over.WaitForNotificationWithTimeout(absl::Milliseconds(random() % 300));
    client.Kill();
    steps += client.Check(expected);
  }
  return steps;
}

// Kills a client of each tenant, with its tensors and its program.
void KillOneClientOfEach(const std::string& target, const Losses& expected) {
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (const Job& job : kKilledJobs) {
    clients.push_back(std::make_unique<ClientProcess>(target, job, 0));
  }
  for (const auto& client : clients) EXPECT_TRUE(client->HasOutput(absl::Minutes(1)));
  for (const auto& client : clients) client->Kill();
  for (const auto& client : clients) client->Check(expected);
}

// Gauges of what clients hold, with nothing taken back for the test's sake. "": none.
std::string WhatIsHeld(const InProcessDaemon& daemon) {
  std::string held;
  const auto add = [&](const char* family, const server::MetricLabels& labels) {
    const double value = MetricValue(daemon.daemon(), family, labels);
    if (value != 0) absl::StrAppend(&held, family, " ", value, "\n");
  };
  for (const char* device : {"0", "1"}) {
    for (const char* family : {"opserve_captured_programs", "opserve_captured_bytes",
                               "opserve_requests_in_flight", "opserve_resident_stuck_bytes"}) {
      add(family, {{"device", device}});
    }
  }
  for (const char* family : {"opserve_prepared_programs", "opserve_prepared_program_bytes",
                             "opserve_resident_moving_bytes", "opserve_tensor_waiting_requests"}) {
    add(family, {});
  }
  for (const Job& job : kJobs) {
    add("opserve_tenant_memory_bytes", {{"tenant", job.tenant}, {"kind", "hbm"}});
  }
  if (const auto total = daemon.daemon().residents().Total(); total.tensors > 0) {
    absl::StrAppend(&held, total.tensors, " resident tensors\n");
  }
  return held;
}

class TrainingSoakTest : public ::testing::Test {
 protected:
  static Config SoakConfig(uint64_t captured_bytes) {
    Config config = InProcessDaemon::DefaultConfig();
    AddTwoTenants(&config);
    EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(kTwoMoreTenants, &config.values));
    config.values.mutable_tenant(3)->mutable_device_memory()->set_hard_bytes(kTenantBytes);
    config.tenants = *server::TenantsFrom(config.values);
    config.captured_max_bytes_per_device = captured_bytes;
    config.execution_timeout = absl::Milliseconds(200);
    config.workspace_floor_bytes = 1 << 20;
    config.workspace_decay = absl::Milliseconds(500);
    config.executor_cache_entries = 16;
    config.resident_max_lease = kLease;
    config.resident_grace = absl::ZeroDuration();
    return config;
  }

  // Of a daemon that captures nothing.
  static Losses LossesOf(const Job& job) {
    Losses losses = {};
    const InProcessDaemon daemon(SoakConfig(0));
    Training training(daemon.target(), job, 0,
                      {.loss = [&losses](int step, float loss) { losses[step] = loss; },
                       .wrong = [](const std::string& what) { ADD_FAILURE() << what; }});
    for (int i = 0; i < kSteps; ++i) EXPECT_TRUE(training.GoOn().ok());
    EXPECT_EQ(Replays(daemon), 0u);
    return losses;
  }

  // The daemons have gone.
  void TearDown() override {
    ClearFaults();
    for (const opserveHostCounter counter :
         {OPSERVE_HOST_ALLOCATIONS, OPSERVE_HOST_STREAMS, OPSERVE_HOST_EVENTS,
          OPSERVE_HOST_PINNED_BYTES, OPSERVE_HOST_TENSORS, OPSERVE_HOST_EXECUTORS,
          OPSERVE_HOST_GRAPHS}) {
      EXPECT_EQ(HostCount(counter), 0) << "counter " << counter;
    }
  }
};

TEST_F(TrainingSoakTest, WhateverHappensLossesAreThoseWithoutCaptures) {
  std::vector<Losses> expected;
  for (const Job& job : kJobs) expected.push_back(LossesOf(job));

  InProcessDaemon daemon(SoakConfig(kCapturedBytes));
  const uint32_t seed = TestSeed(0);
  std::vector<std::unique_ptr<Training>> trainings;
  for (size_t i = 0; i < std::size(kJobs); ++i) {
    trainings.push_back(
        std::make_unique<Training>(daemon.target(), kJobs[i], seed + i, Expecting(expected[i])));
  }
  const auto train = [&trainings](const auto& go_on) {
    std::vector<std::thread> threads;
    for (const auto& training : trainings) {
      threads.emplace_back([&go_on, training = training.get()] { go_on(*training); });
    }
    for (std::thread& thread : threads) thread.join();
  };

  absl::Notification is_over;
  int drains = 0;
  std::thread torment([&] {
    std::mt19937 random(seed + std::size(kJobs));
    while (!is_over.WaitForNotificationWithTimeout(absl::Milliseconds(50))) {
      TormentOnce(daemon, random, &drains);
    }
  });
  int64_t steps_of_killed = 0;
  std::thread killer([&] {
    std::mt19937 random(seed + std::size(kJobs) + 1);
    steps_of_killed = KillClients(daemon.target(), expected[0], random, is_over);
  });
  const absl::Time end = absl::Now() + SoakTime();
  std::atomic<int64_t> failed = 0;
  train([&](Training& training) {
    while (absl::Now() < end) {
      const absl::Status status = training.GoOnSomehow();
      EXPECT_TRUE(IsDocumented(status)) << status;
      failed += !status.ok();
    }
  });
  is_over.Notify();
  torment.join();
  killer.join();
  ClearFaults();
  ResetDevices(daemon);
  const uint64_t replays = Replays(daemon);
  int64_t steps = 0;
  int64_t lost = 0;
  int64_t gone_on_with = 0;
  for (const auto& training : trainings) {
    steps += training->steps_done();
    lost += training->states_lost();
    gone_on_with += training->states_gone_on_with();
  }
  std::fprintf(
      stderr,
      "soak: %ld steps, %lu replayed, %ld failures, %ld states lost, %ld gone on with, %ld "
      "steps of killed clients, %d drains\n",
      steps, replays, failed.load(), lost, gone_on_with, steps_of_killed, drains);
  EXPECT_GT(replays, 0u);
  EXPECT_GT(failed, 0);
  EXPECT_GT(steps_of_killed, 0);

  // Programs that failed too often are captured no more; their successors are.
  for (const auto& training : trainings) training->ReleaseProgram();
  train([](Training& training) {
    // The first step finds that its tensors are lost.
    EXPECT_TRUE(Await([&] { return training.GoOn().ok(); }));
    for (int i = 0; i < 2 * kSteps; ++i) {
      const absl::Status status = training.GoOn();
      EXPECT_TRUE(status.ok()) << status;
    }
  });
  EXPECT_GT(Replays(daemon), replays);

  trainings.clear();
  KillOneClientOfEach(daemon.target(), expected[0]);
  EXPECT_NE(WhatIsHeld(daemon), "");
  // It goes with the leases, as no device is reset any more.
  EXPECT_TRUE(Await([&daemon] { return WhatIsHeld(daemon).empty(); })) << WhatIsHeld(daemon);
  EXPECT_TRUE(Await([&daemon] { return daemon.HeldByRequests() == 0; }))
      << daemon.HeldByRequests() << " held";
}

}  // namespace
}  // namespace opserve
