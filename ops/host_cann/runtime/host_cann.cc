// The host CANN's own functions (opserve/host_cann.h): faults and counters.
#include "ops/host_cann/opserve/host_cann.h"

#include <array>
#include <atomic>

#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/calls.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/launch_charge.h"
#include "ops/host_cann/runtime/runtime.h"

namespace opserve::host_cann {
namespace {

// Of the objects that the operator libraries own; the runtime's own are counted where they live.
std::array<std::atomic<int64_t>, OPSERVE_HOST_NUM_COUNTERS> adjusted_counts{};

int64_t DeviceCount(Device& device, opserveHostCounter counter) {
  switch (counter) {
    case OPSERVE_HOST_ALLOCATIONS:
      return device.allocations;
    case OPSERVE_HOST_ALLOCATED_BYTES:
      return static_cast<int64_t>(device.memory().used());
    case OPSERVE_HOST_LAUNCHES:
      return device.launches;
    default:
      return -1;
  }
}

int64_t SumOverDevices(opserveHostCounter counter) {
  int64_t sum = 0;
  for (int id = 0; id < Runtime::Get().num_devices(); ++id) {
    sum += DeviceCount(*Runtime::Get().FindDevice(id), counter);
  }
  return sum;
}

}  // namespace

void AdjustLiveCount(opserveHostCounter counter, int64_t delta) {
  adjusted_counts[counter].fetch_add(delta, std::memory_order_relaxed);
}

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError opserveHostInjectFaults(const char* faults) {
  RETURN_IF_FAILED(RequireNotNull(faults, "faults"));
  std::vector<Fault> parsed;
  std::string error;
  if (!ParseFaults(faults, &parsed, &error)) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, error);
  }
  // All devices are checked before any fault takes effect.
  Device* device = nullptr;
  for (const Fault& fault : parsed) {
    if (fault.kind == Fault::Kind::kDevice) RETURN_IF_FAILED(FindDevice(fault.device, &device));
  }
  for (const Fault& fault : parsed) {
    if (fault.kind == Fault::Kind::kDevice) {
      Runtime::Get().FindDevice(fault.device)->Lose(fault.code, fault.resets);
    } else {
      Faults::Get().Add(fault);
    }
  }
  return ACL_SUCCESS;
}

void opserveHostClearFaults() { Faults::Get().Clear(); }

int64_t opserveHostCount(opserveHostCounter counter) {
  Runtime& runtime = Runtime::Get();
  switch (counter) {
    case OPSERVE_HOST_ALLOCATIONS:
    case OPSERVE_HOST_ALLOCATED_BYTES:
    case OPSERVE_HOST_LAUNCHES:
      return SumOverDevices(counter);
    case OPSERVE_HOST_STREAMS:
      // Default streams come and go with contexts; a program owns the others.
      return runtime.streams().CountIf([](const Stream& s) { return !s.config().is_default; });
    case OPSERVE_HOST_EVENTS:
      return runtime.events().CountIf([](const Event&) { return true; });
    case OPSERVE_HOST_CONTEXTS:
      return runtime.contexts().CountIf([](const Context& c) { return !c.is_default(); });
    case OPSERVE_HOST_PINNED_BYTES:
      return static_cast<int64_t>(runtime.memory().PinnedBytes());
    case OPSERVE_HOST_REGISTERED_REGIONS:
      return static_cast<int64_t>(runtime.memory().NumRegistered());
    case OPSERVE_HOST_CHARGED_LAUNCHES:
      return ChargedLaunches();
    case OPSERVE_HOST_GRAPHS:
      return runtime.graphs().CountIf([](const Graph&) { return true; });
    // Counted by nnopbase, which owns them.
    case OPSERVE_HOST_TENSORS:
    case OPSERVE_HOST_EXECUTORS:
      return adjusted_counts[counter];
    case OPSERVE_HOST_NUM_COUNTERS:
      break;
  }
  // Also for numbers that are no counters.
  return -1;
}

int64_t opserveHostDeviceCount(int32_t deviceId, opserveHostCounter counter) {
  Device* const device = Runtime::Get().FindDevice(deviceId);
  return device == nullptr ? -1 : DeviceCount(*device, counter);
}

uint64_t opserveHostCalls(const char* function) {
  return function == nullptr ? 0 : CountOfCalls(function);
}
