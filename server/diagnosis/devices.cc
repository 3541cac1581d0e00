#include "server/diagnosis/devices.h"

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ops/catalog/dtypes.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/device/host_registration.h"
#include "server/device/stream_lane.h"
#include "server/diagnosis/measurements.h"
#include "server/diagnosis/size_text.h"
#include "server/run/golden_values.h"

namespace opserve::server {
namespace {

constexpr size_t kPinnedBytes = 64 << 20;
constexpr size_t kRegisteredBytes = 1 << 20;
constexpr absl::string_view kComputesWrong =
    "the daemon does not offer this operator on this device; compare the operator packages with "
    "this product and the runtime's version, report the case, and have the hardware looked at";
constexpr absl::string_view kKernelFails =
    "compare the operator packages with this product and the runtime's version; CANN's own log "
    "($HOME/ascend/log) has more";
constexpr absl::string_view kNoMemory =
    "page-locked or device memory is used up: see npu-smi info and ulimit -l";
constexpr absl::string_view kIsLost =
    "see npu-smi info and dmesg; another process may hold the device, or it needs a reset "
    "(npu-smi set -t reset)";

absl::string_view AdviceOn(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return kIsLost;
  if (absl::IsResourceExhausted(status)) return kNoMemory;
  return kKernelFails;
}

// Whether nothing else can be expected to work after it.
bool EndsTrial(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// The trial of one device, step by step; a step that fails says so and the next ones that can run
// do.
class Trial {
 public:
  Trial(const DeviceTrial& trial, Report* report)
      : trial_(trial), report_(*report), device_(trial.acl, trial.device) {}

  void Run() {
    absl::Status opened = device_.Open();
    report_.AddResult(opened, "open", Identity(), kIsLost);
    if (!opened.ok()) return;
    CheckHealth();
    CheckMemory();
    CheckStreams();
    report_.SetStep("creating a stream");
    absl::StatusOr<std::unique_ptr<StreamLane>> lane = StreamLane::Create(device_, 0);
    if (!lane.ok()) {
      report_.AddResult(lane.status(), "stream", "", "other processes may have taken them all");
      return;
    }
    PlanCacheCounters counters(trial_.operators.operators().size());
    PlanCache plans(trial_.acl, /*capacity=*/64, counters);
    const auto pinned = PinnedPool::Create(trial_.acl, kPinnedBytes);
    const WorkspaceLimits limits;
    LaneContext context{**lane, plans, *pinned, limits, trial_.execution_timeout};
    if (CheckOperators(context)) {
      CheckMapping();
      Measure(context);
    }
    pinned->Close();
  }

 private:
  std::string Identity() const {
    const Device::Identity& identity = device_.identity();
    return absl::StrCat(trial_.acl.soc_name(), identity.physical_id.empty() ? "" : ", physical id ",
                        identity.physical_id, identity.pci_bus_id.empty() ? "" : ", PCI ",
                        identity.pci_bus_id);
  }

  void CheckHealth() {
    // Not every version of the runtime has the function; likewise below.
    if (trial_.acl.aclrtQueryDeviceStatus == nullptr) return;
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_NORMAL;
    report_.SetStep("asking for its health");
    if (trial_.acl.aclrtQueryDeviceStatus(trial_.device, &status) != ACL_SUCCESS) return;
    const bool is_normal = status == ACL_RT_DEVICE_STATUS_NORMAL;
    report_.Add(is_normal ? Verdict::kOk : Verdict::kProblem, "health",
                is_normal ? "normal" : "the driver says it is abnormal", is_normal ? "" : kIsLost);
  }

  void CheckMemory() {
    report_.SetStep("asking for its memory");
    device_.SampleMemory();
    const Device::MemoryInfo memory = device_.memory_info();
    if (memory.total_bytes == 0) {
      report_.Add(Verdict::kWarning, "memory", "the driver does not tell its size",
                  "set --workspace_max_bytes, of which the daemon otherwise takes half");
      return;
    }
    const uint64_t free_bytes = memory.total_bytes - memory.used_bytes;
    // The daemon takes half of the device unless told otherwise.
    const bool is_short = free_bytes < memory.total_bytes / 2;
    report_.Add(is_short ? Verdict::kWarning : Verdict::kOk, "memory",
                absl::StrCat(SizeText(free_bytes), " of ", SizeText(memory.total_bytes), " free"),
                is_short ? "the daemon may take half of it: see which programs use the device "
                           "(npu-smi info), or set --workspace_max_bytes"
                         : "");
  }

  void CheckStreams() {
    if (trial_.acl.aclrtGetStreamAvailableNum == nullptr) return;
    uint32_t available = 0;
    report_.SetStep("asking for its streams");
    if (trial_.acl.aclrtGetStreamAvailableNum(&available) != ACL_SUCCESS) return;
    const bool is_short = available < trial_.streams;
    report_.Add(
        is_short ? Verdict::kProblem : Verdict::kOk, "streams",
        absl::StrCat(available, " available, the daemon takes ", trial_.streams),
        is_short ? "all processes share them: lower --streams_per_device, or end others" : "");
  }

  // Whether the device is worth trying further.
  bool CheckOperators(LaneContext& context) {
    int tried = 0;
    int right = 0;
    for (const LoadedOperator& op : trial_.operators.operators()) {
      if (!op.is_loaded()) continue;
      report_.SetStep(absl::StrCat("the golden value of ", op.descriptor->name));
      const absl::StatusOr<GoldenFinding> finding = CheckGoldenValue(op, context);
      if (finding.ok() && finding->verdict == GoldenVerdict::kUnsupported) {
        report_.AddOneOfMany(Verdict::kWarning, op.descriptor->name,
                             absl::StrCat("this product does not have it: ", finding->problem),
                             "the others serve without");
        continue;
      }
      // Operators that the product lacks count neither way.
      ++tried;
      if (finding.ok() && finding->verdict == GoldenVerdict::kWrong) {
        report_.AddOneOfMany(Verdict::kProblem, op.descriptor->name, finding->problem,
                             kComputesWrong);
        continue;
      }
      if (finding.ok()) {
        ++right;
        report_.AddOneOfMany(Verdict::kOk, op.descriptor->name,
                             absl::StrCat("right; types ", Types(op, context)));
        continue;
      }
      const absl::Status& status = finding.status();
      report_.AddOneOfMany(Verdict::kProblem, op.descriptor->name, status.message(),
                           AdviceOn(status));
      if (EndsTrial(status)) return false;
      // A kernel that crashed or hung took the device out of service, and all others would fail
      // likewise.
      if (device_.state() == DeviceState::kQuarantined) {
        report_.Add(Verdict::kProblem, "device", device_.state_reason(), kIsLost);
        return false;
      }
    }
    if (tried == 0) {
      report_.Add(Verdict::kProblem, "operators", "it has none of the catalogue's",
                  "install the operator package (ops or kernels) of this product");
      return false;
    }
    report_.Add(right == tried ? Verdict::kOk : Verdict::kNote, "operators",
                absl::StrCat(right, " of ", tried, " right"));
    return true;
  }

  // The types of its first input of which stage one takes the golden case, all inputs of the first
  // one's type being of that type.
  static std::string Types(const LoadedOperator& op, LaneContext& context) {
    std::vector<std::string> names;
    if (op.descriptor->inputs.empty() || op.descriptor->golden[0].inputs[0].empty()) return "";
    const aclDataType own = op.descriptor->golden[0].inputs[0][0].spec.dtype;
    for (const aclDataType dtype : op.descriptor->inputs[0].dtypes) {
      catalog::GoldenCase golden = op.descriptor->golden[0];
      for (auto& tensors : golden.inputs) {
        for (catalog::GoldenCase::Tensor& tensor : tensors) {
          if (tensor.spec.dtype == own) tensor.spec.dtype = dtype;
        }
      }
      for (auto& tensors : golden.outputs) {
        for (catalog::GoldenCase::Tensor& tensor : tensors) {
          if (tensor.spec.dtype == own) tensor.spec.dtype = dtype;
        }
      }
      const absl::StatusOr<ProgramCall> call = GoldenProgram(op, golden);
      // Stage one alone: it refuses a type before anything is launched.
      if (call.ok() && context.plans.Acquire(call->invocation(0)).ok()) {
        names.emplace_back(catalog::DtypeName(dtype));
      }
    }
    return absl::StrJoin(names, " ");
  }

  // Whether the device sees memory that a program allocated.
  void CheckMapping() {
    report_.SetStep("mapping host memory");
    void* const memory =
        mmap(nullptr, kRegisteredBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    // The registration keeps the memory until the device has let go of it.
    const std::shared_ptr<const void> owner(
        memory, [](const void* address) { munmap(const_cast<void*>(address), kRegisteredBytes); });
    const auto mapped = HostRegistration::Create(device_, memory, kRegisteredBytes, owner);
    report_.Add(
        mapped.ok() ? Verdict::kOk : Verdict::kNote, "shared memory",
        mapped.ok() ? "used in place" : absl::StrCat("copied: ", mapped.status().message()));
  }

  void Measure(LaneContext& context) {
    report_.SetStep("measuring copies");
    const absl::StatusOr<CopyRates> rates = MeasureCopies(context);
    report_.AddResult(
        rates.status(), "copies",
        rates.ok() ? absl::StrFormat("%s/s to the device, %s/s back; %s/s from pageable memory",
                                     SizeText(rates->to_device), SizeText(rates->from_device),
                                     SizeText(rates->from_pageable))
                   : "",
        AdviceOn(rates.status()));
    if (EndsTrial(rates.status())) return;
    MeasureAllLaunches(context);
  }

  void MeasureAllLaunches(LaneContext& context) {
    std::vector<absl::Duration> queued;
    std::vector<std::pair<absl::Duration, absl::string_view>> done;
    for (const LoadedOperator& op : trial_.operators.operators()) {
      if (!op.is_available()) continue;
      report_.SetStep(absl::StrCat("measuring launches of ", op.descriptor->name));
      const absl::StatusOr<LaunchTimes> times = MeasureLaunches(op, context);
      const std::string subject = absl::StrCat("launch of ", op.descriptor->name);
      if (times.ok()) {
        report_.AddOneOfMany(Verdict::kOk, subject, TimesText(times->queued, times->done));
        queued.push_back(times->queued);
        done.emplace_back(times->done, op.descriptor->name);
        continue;
      }
      // A problem, but the other operators are measured all the same, as long as the device goes
      // on.
      report_.AddOneOfMany(Verdict::kProblem, subject, times.status().message(),
                           AdviceOn(times.status()));
      if (EndsTrial(times.status())) return;
    }
    if (done.empty()) return;
    std::sort(queued.begin(), queued.end());
    std::sort(done.begin(), done.end());
    report_.Add(
        // Of operators, the median; the slowest is named.
        Verdict::kOk, "launches",
        absl::StrFormat("of %d operators, half within %s; longest: %s, %.1f us", done.size(),
                        TimesText(queued[queued.size() / 2], done[done.size() / 2].first),
                        done.back().second, absl::ToDoubleMicroseconds(done.back().first)));
  }

  static std::string TimesText(absl::Duration queued, absl::Duration done) {
    return absl::StrFormat("%.1f us to queue, %.1f us until it is done",
                           absl::ToDoubleMicroseconds(queued), absl::ToDoubleMicroseconds(done));
  }

  const DeviceTrial& trial_;
  Report& report_;
  Device device_;
};

}  // namespace

void CheckDevice(const DeviceTrial& trial, Report* report) {
  report->Begin(absl::StrCat("device ", trial.device));
  report->SetStep("opening the device");  // which making a Device does already
  Trial(trial, report).Run();
}

}  // namespace opserve::server
