#include "server/diagnosis/self_test.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "server/build_commit.h"
#include "server/device/acl/acl_library.h"
#include "server/device/device_ids.h"
#include "server/diagnosis/devices.h"
#include "server/diagnosis/libraries.h"
#include "server/diagnosis/machine.h"
#include "server/program/operator_table.h"

namespace opserve::server {
namespace {

// Limit of one call: a report about a hanging kernel should not take half a minute.
constexpr absl::Duration kLongestCall = absl::Seconds(10);
// Opening an NPU takes seconds; a device that hangs in every call takes several times kLongestCall.
constexpr absl::Duration kDeviceTime = absl::Minutes(3);
constexpr absl::Duration kLibraryTime = absl::Minutes(1);

// Runs `step` on a thread of its own, and ends the process if it does not end in `time`.
template <typename Step>
void RunWithin(absl::Duration time, Report* report, Step step) {
  absl::Notification done;
  std::thread thread([&] {
    step();
    done.Notify();
  });
  if (!done.WaitForNotificationWithTimeout(time)) {
    report->Add(Verdict::kProblem, "no answer",
                absl::StrCat(report->step(), " did not return within ", absl::FormatDuration(time)),
                "see npu-smi info and dmesg; the device or the machine needs a reset");
    // The thread cannot be ended, and destructors would wait for it.
    report->Finish();
    _exit(1);
  }
  thread.join();
}

}  // namespace

bool RunSelfTest(const Config& config, std::vector<OperatorPack> packs, uint32_t streams,
                 Report::Format format, std::FILE* out) {
  Report report(format, out);
  report.Begin("opserved");
  report.Add(Verdict::kOk, "version", absl::StrCat(OPSERVE_VERSION, ", commit ", kBuildCommit));
  // Named libraries are CANN's; without a name the host CANN computes.
  CheckMachine({.needs_npu = !config.values.acl_library_dir().empty(),
                .pinned_bytes = config.pinned_pool_bytes,
                .connections = config.max_connections},
               &report);

  report.Begin("ACL libraries");
  absl::StatusOr<std::unique_ptr<AclLibrary>> acl;
  RunWithin(kLibraryTime, &report, [&] {
    report.SetStep("loading the libraries and aclInit");
    acl = AclLibrary::Load(config.acl_library_dir);
  });
  if (!acl.ok()) {
    report.AddResult(acl.status(), "load", "", "");
    return report.Finish();
  }
  // Loads the libraries of packs that have passed their trials in other processes.
  const OperatorTable operators(**acl, std::move(packs));
  CheckLibraries(**acl, operators, &report);
  const absl::StatusOr<std::vector<int32_t>> ids = DeviceIds(**acl, config.devices);
  report.AddResult(ids.status(), "devices", ids.ok() ? absl::StrJoin(*ids, " ") : "", "");
  if (!ids.ok()) return report.Finish();
  const absl::Duration timeout = std::min(config.execution_timeout, kLongestCall);
  const absl::StatusOr<absl::Duration> limit = (*acl)->SetExecutionLimit(2 * timeout);
  if (limit.ok()) {
    report.Add(Verdict::kOk, "a kernel's time",
               absl::StrCat("limited to ", absl::FormatDuration(*limit)));
  }
  for (const int32_t id : *ids) {
    RunWithin(kDeviceTime, &report, [&] {
      CheckDevice({.acl = **acl,
                   .operators = operators,
                   .device = id,
                   .streams = streams,
                   .execution_timeout = timeout},
                  &report);
    });
  }
  return report.Finish();
}

}  // namespace opserve::server
