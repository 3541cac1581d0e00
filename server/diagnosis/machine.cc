#include "server/diagnosis/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/device/host_registration.h"
#include "server/device/npu_signs.h"
#include "server/diagnosis/size_text.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

// Beside connections: listeners, shared memory, libraries, the device's own.
constexpr uint64_t kOtherDescriptors = 256;
constexpr std::array<const char*, 3> kDeviceFiles = {"davinci_manager", "devmm_svm", "hisi_hdc"};
// Variables of CANN's set_env.sh, and those that change the devices visible to a process.
constexpr std::array<const char*, 8> kVariables = {
    "ASCEND_HOME_PATH",          "ASCEND_TOOLKIT_HOME",
    "ASCEND_OPP_PATH",           "ASCEND_CUSTOM_OPP_PATH",
    "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_GLOBAL_LOG_LEVEL",
    "ASCEND_PROCESS_LOG_PATH",   "LD_LIBRARY_PATH"};

// The value of a line "key: value" of a file, "" without one.
std::string ValueIn(const fs::path& path, absl::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(entry.first) == key) {
      return std::string(absl::StripAsciiWhitespace(entry.second));
    }
  }
  return "";
}

uint64_t MemoryBytes(const fs::path& meminfo, absl::string_view key) {
  uint64_t kib = 0;
  return absl::SimpleAtoi(absl::StripSuffix(ValueIn(meminfo, key), " kB"), &kib) ? kib << 10 : 0;
}

void CheckSystem(const MachineView& view, Report* report) {
  utsname system = {};
  uname(&system);
  const fs::path meminfo = fs::path(view.root) / "proc/meminfo";
  report->Add(Verdict::kOk, "system",
              absl::StrCat("Linux ", system.release, " ", system.machine, ", ",
                           std::thread::hardware_concurrency(), " processors"));
  report->Add(Verdict::kOk, "host memory",
              absl::StrCat(SizeText(MemoryBytes(meminfo, "MemAvailable")), " of ",
                           SizeText(MemoryBytes(meminfo, "MemTotal")), " available"));
  if (!KernelMapsHostMemory(system.release)) {
    report->Add(Verdict::kWarning, "shared memory",
                "this kernel is older than 5.11: devices cannot use memory of programs in place",
                "nothing is lost but speed: tensors in shared memory are copied");
  }
}

void CheckLimits(const MachineView& view, Report* report) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  const uint64_t wanted = view.connections + kOtherDescriptors;
  // The daemon raises the soft limit itself.
  if (limit.rlim_max < wanted) {
    report->Add(Verdict::kWarning, "open files",
                absl::StrCat("at most ", limit.rlim_max,
                             ", and --max_connections=", view.connections, " needs ", wanted),
                "raise it (ulimit -Hn, LimitNOFILE=), or lower --max_connections");
  } else {
    report->Add(Verdict::kOk, "open files", absl::StrCat("at most ", limit.rlim_max));
  }
  getrlimit(RLIMIT_MEMLOCK, &limit);
  // The host CANN's page-locked memory is ordinary memory.
  if (limit.rlim_cur == RLIM_INFINITY || !view.needs_npu) return;
  const bool is_short = limit.rlim_cur < view.pinned_bytes;
  report->Add(is_short ? Verdict::kWarning : Verdict::kOk, "locked memory",
              absl::StrCat("at most ", SizeText(limit.rlim_cur), " by mlock"),
              is_short ? "if page-locked memory cannot be had below, raise it (ulimit -l, "
                         "LimitMEMLOCK=infinity)"
                       : "");
}

void CheckDriver(const MachineView& view, Report* report) {
  const fs::path dev = fs::path(view.root) / "dev";
  const std::vector<std::string> npus = NpuFiles(dev.string());
  if (!view.needs_npu) {
    // NPUs that nobody uses are worth a word: the configuration may have been forgotten.
    report->Add(Verdict::kNote, "NPU driver",
                npus.empty() ? "not needed: the host CANN computes on this machine's processors"
                             : absl::StrCat("not used, though this machine has ", npus.size(),
                                            npus.size() == 1 ? " NPU" : " NPUs"),
                npus.empty() ? "" : "to lend them: --acl_library_dir=cann");
    return;
  }
  const std::string version = NpuDriverVersion(view.root);
  if (version.empty()) {
    report->Add(Verdict::kWarning, "NPU driver",
                absl::StrCat("its version is unknown: no ", view.root,
                             "usr/local/Ascend/driver/version.info"),
                "install the driver; in a container, mount /usr/local/Ascend/driver read-only");
  } else {
    report->Add(Verdict::kOk, "NPU driver", absl::StrCat("version ", version));
  }
  std::vector<std::string> wanted = npus;
  wanted.insert(wanted.end(), kDeviceFiles.begin(), kDeviceFiles.end());
  std::vector<std::string> missing;
  std::vector<std::string> closed;
  for (const std::string& name : wanted) {
    const std::string path = (dev / name).string();
    // A file that is missing needs another remedy than one that may not be opened.
    if (access(path.c_str(), F_OK) != 0) {
      missing.push_back(path);
    } else if (access(path.c_str(), R_OK | W_OK) != 0) {
      closed.push_back(path);
    }
  }
  // Any NPU will do, so the first one's file is named as an example.
  if (npus.empty()) missing.push_back((dev / "davinci0").string());
  if (!missing.empty()) {
    report->Add(Verdict::kProblem, "device files",
                absl::StrCat("there is no ", absl::StrJoin(missing, ", ")),
                "load the driver (npu-smi info); in a container, pass each with --device, or "
                "request huawei.com/Ascend910 from the device plugin");
  }
  if (!closed.empty()) {
    report->Add(Verdict::kProblem, "device files",
                absl::StrCat("this user may not open ", absl::StrJoin(closed, ", ")),
                "add the user to the group that owns them, HwHiAiUser (usermod -aG; "
                "SupplementaryGroups=; --group-add)");
  }
  if (missing.empty() && closed.empty()) {
    report->Add(Verdict::kOk, "device files", absl::StrJoin(npus, ", "));
  }
}

void ListEnvironment(Report* report) {
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name)) report->Add(Verdict::kNote, name, value);
  }
}

}  // namespace

void CheckMachine(const MachineView& view, Report* report) {
  report->Begin("machine");
  CheckSystem(view, report);
  CheckLimits(view, report);
  CheckDriver(view, report);
  if (view.needs_npu) ListEnvironment(report);
}

}  // namespace opserve::server
