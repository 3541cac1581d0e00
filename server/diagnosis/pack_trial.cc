#include "server/diagnosis/pack_trial.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/device/device.h"
#include "server/device/device_ids.h"
#include "server/device/stream_lane.h"
#include "server/run/golden_values.h"

namespace opserve::server {
namespace {

constexpr size_t kTrialPinnedBytes = 64 << 20;
constexpr size_t kTrialPlans = 16;
// Before each line that tells the next step, and each that tells why a pack is refused.
constexpr absl::string_view kStep = "trying: ";
constexpr absl::string_view kRefused = "refused (";
// Ends the line of a pack that passed.
constexpr absl::string_view kServed = " can be served";
// Of a child's output the end is kept.
constexpr size_t kKeptOutput = 16 << 10;
// How long a killed process may take to end; one that waits in a driver may never do so.
constexpr absl::Duration kEndTime = absl::Seconds(2);

absl::Status Refused(PackRefusal refusal, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat(kRefused, PackRefusalName(refusal), "): ", problem));
}

// Tells the steps of a trial, and ends the process if they take too long together.
class Steps {
 public:
  explicit Steps(std::FILE* out)
      : out_(out), watch_([this] {
          if (!is_over_.WaitForNotificationWithTimeout(kPackTrialTime)) End();
        }) {}
  ~Steps() {
    is_over_.Notify();
    watch_.join();
  }

  void Begin(const std::string& step) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    step_ = step;
    std::fprintf(out_, "%s%s\n", std::string(kStep).c_str(), step.c_str());
    std::fflush(out_);
  }

 private:
  [[noreturn]] void End() ABSL_LOCKS_EXCLUDED(mutex_) {
    // A function that hangs cannot be stopped, only its process. _exit runs no destructors, which
    // would wait for it.
    absl::MutexLock lock(&mutex_);
    std::fprintf(
        stderr, "opserved: %s\n",
        std::string(Refused(PackRefusal::kHang, absl::StrCat(step_, ": did not end within ",
                                                             absl::FormatDuration(kPackTrialTime)))
                        .message())
            .c_str());
    std::fflush(stderr);
    _exit(2);
  }

  std::FILE* const out_;
  absl::Mutex mutex_;
  std::string step_ ABSL_GUARDED_BY(mutex_) = "start";
  absl::Notification is_over_;
  std::thread watch_;
};

// Why an operator that ran as `finding` says is not served; OK: it is right.
absl::Status Judge(const OperatorPack& pack, const PackOperator& op,
                   const absl::StatusOr<GoldenFinding>& finding) {
  const std::string place = absl::StrCat(pack.PlaceOf(op), op.descriptor->name, ": ");
  if (!finding.ok()) {
    return Refused(PackRefusal::kFailed, absl::StrCat(place, finding.status().message()));
  }
  switch (finding->verdict) {
    case GoldenVerdict::kRight:
      return absl::OkStatus();
    case GoldenVerdict::kWrong:
      return Refused(PackRefusal::kWrong, absl::StrCat(place, finding->problem));
    case GoldenVerdict::kUnsupported:
      break;
  }
  return Refused(PackRefusal::kUnsupported, absl::StrCat(place, finding->problem));
}

// The end of a process's output, and how the process ended.
struct ChildEnd {
  std::string output;
  bool is_late = false;
  int status = -1;  // of waitpid; -1: it could not be ended
};

// Reads until the other end is closed or the time is over, which it returns as false.
bool ReadUntil(int descriptor, absl::Time deadline, std::string* output) {
  std::array<char, 4096> buffer;
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    pollfd wanted = {.fd = descriptor, .events = POLLIN, .revents = 0};
    // Rounded up, so that the last wait does not spin.
    const int ready = poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t size = read(descriptor, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return true;
    output->append(buffer.data(), static_cast<size_t>(size));
    if (output->size() > kKeptOutput) output->erase(0, output->size() - kKeptOutput);
  }
}

// Ends the process and gives its status. One that has ended by itself keeps its own.
int EndProcess(pid_t process) {
  // As kill(process, SIGKILL), which the seccomp profile does not allow. The main thread has the
  // process's id, and the signal ends all threads.
  syscall(SYS_tgkill, process, process, SIGKILL);
  const absl::Time deadline = absl::Now() + kEndTime;
  while (absl::Now() < deadline) {
    int status = 0;
    const pid_t ended = waitpid(process, &status, WNOHANG);
    if (ended == process) return status;
    if (ended < 0 && errno != EINTR) return -1;
    poll(nullptr, 0, /*timeout=*/5);  // there is no wait with a time limit
  }
  return -1;
}

absl::StatusOr<ChildEnd> RunChild(const std::vector<std::string>& words, absl::Duration time) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "pipe2");
  const auto close_it = absl::MakeCleanup([&ends] { close(ends[0]); });
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Both go into one pipe: errors of libraries stand between the steps that they belong to.
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;  // the daemon blocks those that end it
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t process = 0;
  const int error =
      posix_spawn(&process, words[0].c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  // The child's copies are left, so reading ends when the child does.
  close(ends[1]);
  if (error != 0) return absl::ErrnoToStatus(error, words[0]);
  ChildEnd end;
  end.is_late = !ReadUntil(ends[0], absl::Now() + time, &end.output);
  end.status = EndProcess(process);
  return end;
}

// The last line that begins with `prefix`, without it; "": there is none.
std::string LastLine(absl::string_view output, absl::string_view prefix) {
  std::string last;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    // A later line is nearer to the end of the trial.
    if (absl::ConsumePrefix(&line, prefix)) last = std::string(line);
  }
  return last;
}

// From the surest sign to the weakest: no end in time, a signal, the trial's own line, the exit
// code.
void RefuseBy(const ChildEnd& end, absl::Duration time, OperatorPack* pack) {
  const std::string step = LastLine(end.output, kStep);
  const std::string place = step.empty() ? absl::StrCat(pack->path, ": start of the trial") : step;
  if (end.is_late) {
    pack->Refuse(PackRefusal::kHang,
                 absl::StrCat(place, ": did not end within ", absl::FormatDuration(time)));
    return;
  }
  if (end.status >= 0 && WIFSIGNALED(end.status)) {
    const int number = WTERMSIG(end.status);
    pack->Refuse(PackRefusal::kCrash,
                 absl::StrCat(place, ": ended by signal ", number, ", ", strsignal(number)));
    return;
  }
  // "opserved: refused (wrong): PATH:LINE: ..."
  std::string message = LastLine(end.output, "opserved: ");
  absl::string_view rest = message;
  if (absl::ConsumePrefix(&rest, kRefused)) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(rest, absl::MaxSplits("): ", 1));
    pack->Refuse(PackRefusalOfName(parts.first), absl::CHexEscape(parts.second));
    return;
  }
  if (message.empty()) {
    message = end.status >= 0 && WIFEXITED(end.status)
                  ? absl::StrCat("ended with exit code ", WEXITSTATUS(end.status))
                  : "could not be ended";
  }
  pack->Refuse(PackRefusal::kTrial, absl::StrCat(place, ": ", absl::CHexEscape(message)));
}

}  // namespace

absl::Status TryPacks(const Config& config, std::vector<OperatorPack> packs, std::FILE* out) {
  // Each step is told before it begins, so that the parent can name the one that crashed or hung.
  Steps steps(out);
  const std::string first = packs.empty() ? "" : absl::StrCat(packs.front().path, ": ");
  steps.Begin(absl::StrCat(first, "loading the ACL libraries"));
  OPSERVE_ASSIGN_OR_RETURN(const std::unique_ptr<AclLibrary> acl,
                           AclLibrary::Load(config.acl_library_dir));
  OPSERVE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, DeviceIds(*acl, config.devices));
  steps.Begin(absl::StrCat(first, "loading its library"));
  const OperatorTable operators(*acl, std::move(packs));
  for (const OperatorPack& pack : operators.packs()) {
    if (pack.is_refused()) return Refused(pack.refusal, pack.problem);
  }
  steps.Begin(absl::StrCat(first, "opening device ", ids.front()));
  Device device(*acl, ids.front());
  OPSERVE_RETURN_IF_ERROR(device.Open());
  OPSERVE_ASSIGN_OR_RETURN(const std::unique_ptr<StreamLane> lane, StreamLane::Create(device, 0));
  PlanCacheCounters counters(operators.operators().size());
  PlanCache plans(*acl, kTrialPlans, counters);
  const auto pinned = PinnedPool::Create(*acl, kTrialPinnedBytes);
  const WorkspaceLimits limits;
  LaneContext context{*lane, plans, *pinned, limits, kPackTrialTime};
  const auto close_it = absl::MakeCleanup([&pinned] { pinned->Close(); });
  for (const OperatorPack& pack : operators.packs()) {
    for (const PackOperator& op : pack.operators) {
      steps.Begin(absl::StrCat(pack.PlaceOf(op), op.descriptor->name, ": golden case"));
      const LoadedOperator& loaded = *operators.Find(op.descriptor->name);
      OPSERVE_RETURN_IF_ERROR(Judge(pack, op, CheckGoldenValue(loaded, context)));
    }
    std::fprintf(out, "%s: %zu operators%s\n", pack.path.c_str(), pack.operators.size(),
                 std::string(kServed).c_str());
  }
  return absl::OkStatus();
}

void TryPackInChild(const std::string& program, const Config& config, absl::Duration time,
                    OperatorPack* pack) {
  std::vector<std::string> words = {
      program, absl::StrCat("--check_operator_pack=", pack->path),
      absl::StrCat("--acl_library_dir=", config.values.acl_library_dir()),
      absl::StrCat("--max_pack_operators=", config.max_pack_operators)};
  if (!config.devices.empty()) {
    words.push_back(absl::StrCat("--device=", absl::StrJoin(config.devices, ",")));
  }
  const absl::StatusOr<ChildEnd> end = RunChild(words, time);
  if (!end.ok()) {
    pack->Refuse(PackRefusal::kTrial,
                 absl::StrCat(pack->path, ": cannot be tried: ", end.status().message()));
    return;
  }
  // A library that calls exit() has proved nothing.
  const std::string last = LastLine(end->output, absl::StrCat(pack->path, ": "));
  const bool is_right = !end->is_late && end->status >= 0 && WIFEXITED(end->status) &&
                        WEXITSTATUS(end->status) == 0 && absl::EndsWith(last, kServed);
  if (!is_right) RefuseBy(*end, time, pack);
}

}  // namespace opserve::server
