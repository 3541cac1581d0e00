#include "ops/host_cann/runtime/runtime.h"

#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

Runtime& Runtime::Get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() : settings_(ReadSettings()) {
  // The process's ids count the visible devices; the machine's id is kept beside.
  for (size_t id = 0; id < settings_.visible_devices.size(); ++id) {
    devices_.push_back(std::make_unique<Device>(
        static_cast<int32_t>(id), settings_.visible_devices[id], settings_.device_memory_bytes,
        settings_.threads_per_device, *settings_.soc.generation));
  }
  // Behind the devices: a fault may lose one.
  if (settings_.faults.empty()) return;
  std::vector<Fault> faults;
  std::string error;
  if (!ParseFaults(settings_.faults, &faults, &error)) {
    // The first malformed variable stays the one that is reported.
    if (settings_.error.empty()) settings_.error = Concat("OPSERVE_HOST_FAULTS: ", error);
    return;
  }
  for (const Fault& fault : faults) {
    if (fault.kind != Fault::Kind::kDevice) {
      Faults::Get().Add(fault);
    } else if (Device* const device = FindDevice(fault.device)) {
      device->Lose(fault.code, fault.resets);
    } else if (settings_.error.empty()) {
      settings_.error = Concat("OPSERVE_HOST_FAULTS: there is no device ", fault.device);
    }
  }
}

void Runtime::StopWork() {
  // A deadline in the past: kernels are told to stop and not waited for.
  for (const std::unique_ptr<Device>& device : devices_) device->AbortTasks(Clock::now());
}

void Runtime::ForgetDevice(Device& device) {
  // Memory last: the streams are closed by now, and a task that still ends holds its blocks.
  contexts_.RemoveIf([&](const Context& context) { return &context.device() == &device; });
  streams_.RemoveIf([&](const Stream& stream) { return &stream.device() == &device; });
  const size_t events =
      events_.RemoveIf([&](const Event& event) { return &event.device() == &device; }).size();
  // The quota still counts the handles that were alive.
  device.events().Return(events);
  const size_t notifies =
      notifies_.RemoveIf([&](const Notify& notify) { return &notify.device() == &device; }).size();
  device.notifies().Return(notifies);
  ForgetGraphs([&](const Graph& graph) { return &graph.context()->device() == &device; });
  memory_.RemoveDevice(device.id());
}

}  // namespace opserve::host_cann
