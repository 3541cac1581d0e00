// The host CANN's settings from the environment; read once, when the first ABI function is called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/host_cann/runtime/generation.h"

namespace opserve::host_cann {

struct Settings {
  int num_devices = 2;                        // OPSERVE_HOST_DEVICES
  uint64_t device_memory_bytes = 4ull << 30;  // OPSERVE_HOST_DEVICE_MEMORY
  int threads_per_device = 1;                 // OPSERVE_HOST_THREADS
  bool checked = true;                        // OPSERVE_HOST_CHECKED
  Soc soc = DefaultSoc();                     // OPSERVE_HOST_SOC
  uint64_t launch_us = 0;                     // OPSERVE_HOST_LAUNCH_US
  uint64_t timeout_interval_us =              // OPSERVE_HOST_TIMEOUT_INTERVAL_US
      soc.generation->timeout_interval_us;
  std::string faults;                // OPSERVE_HOST_FAULTS
  std::vector<int> visible_devices;  // ASCEND_RT_VISIBLE_DEVICES, else all

  // Not empty: names a malformed variable and its allowed values. The other members are then
  // defaults.
  std::string error;
};

Settings ReadSettings();

}  // namespace opserve::host_cann
