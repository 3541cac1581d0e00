// Signs that a machine has NPUs, found without loading any library.
#pragma once

#include <string>
#include <vector>

#include "server/device/acl/cann_layout.h"

namespace opserve::server {

// The device files of NPUs in `dev`, without the driver's other ones: "davinci0", in the order of
// their numbers.
std::vector<std::string> NpuFiles(const std::string& dev);

// The version of the NPU driver on the machine with its root file system at `root`; "" if there is
// none.
std::string NpuDriverVersion(const std::string& root);

// Signs of an NPU's software and hardware on the machine at `root`, for people, each as "the device
// files davinci0, davinci1": device files, the driver, and the CANN that FindCann finds by default,
// unless its runtime is the file `runtime`, which is in use already.
std::vector<std::string> NpuSigns(const std::string& root, const std::string& runtime,
                                  EnvironmentVariable environment);

}  // namespace opserve::server
