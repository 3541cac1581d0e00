#include "server/device/host_registration.h"

#include <sys/utsname.h>

#include <cstdio>
#include <utility>

#include "server/device/acl/acl_status.h"

namespace opserve::server {
namespace {

bool RunningKernelMapsHostMemory() {
  utsname system = {};
  return uname(&system) == 0 && KernelMapsHostMemory(system.release);
}

}  // namespace

bool KernelMapsHostMemory(const char* release) {
  int major = 0;
  int minor = 0;
  // A release that cannot be read counts as too old.
  if (std::sscanf(release, "%d.%d", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor > 10);
}

absl::StatusOr<std::shared_ptr<const HostRegistration>> HostRegistration::Create(
    const Device& device, void* data, size_t bytes, std::shared_ptr<const void> memory) {
  const AclLibrary& acl = device.acl();
  if (acl.aclrtHostRegister == nullptr || acl.aclrtHostUnregister == nullptr) {
    return absl::UnimplementedError("the ACL libraries cannot map host memory");
  }
  // The kernel does not change while the daemon runs.
  static const bool kernel_maps = RunningKernelMapsHostMemory();
  if (!kernel_maps) {
    return absl::UnimplementedError("devices can map a program's memory from Linux 5.11 on");
  }
  auto registration =
      std::shared_ptr<HostRegistration>(new HostRegistration(device, data, std::move(memory)));
  void* address = nullptr;
  const int code = acl.aclrtHostRegister(data, bytes, ACL_HOST_REGISTER_MAPPED, &address);
  if (code != ACL_SUCCESS) return AclCallStatus(acl, "aclrtHostRegister", code);
  registration->device_address_ = address;
  return registration;
}

HostRegistration::~HostRegistration() {
  // A device that is lost refuses, and forgets the memory with its reset.
  if (device_address_ != nullptr && !is_void()) device_.acl().aclrtHostUnregister(data_);
}

}  // namespace opserve::server
