#include "ops/host_cann/runtime/settings.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "ops/host_cann/runtime/parse.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

constexpr int kMaxDevices = 64;
constexpr int kMaxThreads = 1024;
constexpr uint64_t kMaxIntervalUs = 60'000'000;
constexpr uint64_t kMaxLaunchUs = 1'000'000;

std::string Malformed(std::string_view name, std::string_view value, std::string_view allowed) {
  return Concat(name, " is \"", value, "\", must be ", allowed);
}

// Reads a whole number in [low, high] from the environment into `value`, if the variable is set.
template <typename T>
void ReadWholeNumber(const char* name, uint64_t low, uint64_t high, Settings* settings, T* value) {
  const char* text = std::getenv(name);
  // The first malformed variable is the one that is reported.
  if (text == nullptr || !settings->error.empty()) return;
  uint64_t number = 0;
  if (ParseWholeNumber(text, low, high, &number)) {
    *value = static_cast<T>(number);
  } else {
    settings->error = Malformed(name, text, Concat("a whole number from ", low, " to ", high));
  }
}

// The rule of ASCEND_RT_VISIBLE_DEVICES: ids in ascending order; the first token that is none ends
// the list; a list out of order makes no device visible.
std::vector<int> VisibleDevices(int num_devices) {
  std::vector<int> visible;
  const char* text = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (text == nullptr) {
    for (int id = 0; id < num_devices; ++id) visible.push_back(id);
    return visible;
  }
  for (const std::string_view token : Split(text, ',')) {
    uint64_t id = 0;
    if (!ParseWholeNumber(token, 0, num_devices - 1, &id)) break;
    visible.push_back(static_cast<int>(id));
  }
  const auto not_ascending = [](int a, int b) { return a >= b; };
  if (std::adjacent_find(visible.begin(), visible.end(), not_ascending) != visible.end()) return {};
  return visible;
}

}  // namespace

Settings ReadSettings() {
  Settings settings;
  ReadWholeNumber("OPSERVE_HOST_DEVICES", 1, kMaxDevices, &settings, &settings.num_devices);
  // The devices share the machine's threads, at least one for each.
  settings.threads_per_device =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / settings.num_devices);
  ReadWholeNumber("OPSERVE_HOST_THREADS", 1, kMaxThreads, &settings, &settings.threads_per_device);
  ReadWholeNumber("OPSERVE_HOST_CHECKED", 0, 1, &settings, &settings.checked);
  if (const char* soc = std::getenv("OPSERVE_HOST_SOC");
      soc != nullptr && settings.error.empty() && !FindSoc(soc, &settings.soc)) {
    settings.error = Malformed("OPSERVE_HOST_SOC", soc, Concat("one of ", SocNames()));
  }
  ReadWholeNumber("OPSERVE_HOST_LAUNCH_US", 0, kMaxLaunchUs, &settings, &settings.launch_us);
  // Behind the chip, which sets the default, and before its own variable, which overrides it.
  settings.timeout_interval_us = settings.soc.generation->timeout_interval_us;
  ReadWholeNumber("OPSERVE_HOST_TIMEOUT_INTERVAL_US", 1, kMaxIntervalUs, &settings,
                  &settings.timeout_interval_us);

  constexpr char kMemory[] = "OPSERVE_HOST_DEVICE_MEMORY";
  const char* memory = std::getenv(kMemory);
  if (memory != nullptr && settings.error.empty() &&
      !ParseByteCount(memory, &settings.device_memory_bytes)) {
    settings.error = Malformed(kMemory, memory, "a number of bytes such as 4096, 64K, 512M or 4G");
  }
  // Parsed later, when the devices exist.
  if (const char* faults = std::getenv("OPSERVE_HOST_FAULTS")) settings.faults = faults;
  settings.visible_devices = VisibleDevices(settings.num_devices);
  return settings;
}

}  // namespace opserve::host_cann
