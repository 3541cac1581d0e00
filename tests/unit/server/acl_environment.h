// The host CANN for a test program that calls the daemon's device side directly.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "opserve/host_cann.h"
#include "server/device/acl/acl_library.h"

namespace opserve::server {

inline constexpr char kHostCannDir[] = OPSERVE_BUILD_DIR "/lib/opserve/host-cann";

// Loads the host CANN with two devices of 64 MiB, once per process; it is never unloaded. A test
// may take optional functions away from it, and has to put them back.
inline AclLibrary& MutableTestAcl() {
  static AclLibrary* const acl = [] {
    setenv("OPSERVE_HOST_DEVICES", "2", 1);
    setenv("OPSERVE_HOST_DEVICE_MEMORY", "64M", 1);
    auto loaded = AclLibrary::Load(kHostCannDir);
    if (!loaded.ok()) std::abort();
    return loaded->release();
  }();
  return *acl;
}

inline const AclLibrary& TestAcl() { return MutableTestAcl(); }

// The host CANN's own functions; it is loaded globally.
inline void InjectFaults(const std::string& faults) {
  const auto inject = reinterpret_cast<decltype(&opserveHostInjectFaults)>(
      dlsym(RTLD_DEFAULT, "opserveHostInjectFaults"));
  if (inject(faults.c_str()) != 0) std::abort();
}

inline void ClearFaults() {
  reinterpret_cast<decltype(&opserveHostClearFaults)>(
      dlsym(RTLD_DEFAULT, "opserveHostClearFaults"))();
}

inline int64_t HostCount(opserveHostCounter counter) {
  return reinterpret_cast<decltype(&opserveHostCount)>(dlsym(RTLD_DEFAULT, "opserveHostCount"))(
      counter);
}

// How often a function of the ABI was called.
inline uint64_t HostCalls(const char* function) {
  return reinterpret_cast<decltype(&opserveHostCalls)>(dlsym(RTLD_DEFAULT, "opserveHostCalls"))(
      function);
}

}  // namespace opserve::server
