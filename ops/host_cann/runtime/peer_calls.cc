// The ABI's functions for peer access.
#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

aclError FindPeer(int32_t device_id, int32_t peer_id, Device** peer) {
  RETURN_IF_FAILED(FindDevice(peer_id, peer));
  if (peer_id != device_id) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
              Concat("peerDeviceId is ", peer_id, ", the device itself"));
}

aclError SetPeer(int32_t peer_id, bool enabled) {
  // The current device gets access to the peer's memory; the other direction is a call of its own.
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  Device* peer = nullptr;
  RETURN_IF_FAILED(FindPeer(context->device().id(), peer_id, &peer));
  context->device().SetPeer(peer_id, enabled);
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(canAccessPeer, "canAccessPeer"));
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  RETURN_IF_FAILED(FindPeer(deviceId, peerDeviceId, &device));
  // All memory is one process's, so every device reaches every other.
  *canAccessPeer = 1;
  return ACL_SUCCESS;
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (flags != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, Concat("flags is ", flags, ", must be 0"));
  }
  return SetPeer(peerDeviceId, /*enabled=*/true);
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SetPeer(peerDeviceId, /*enabled=*/false);
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(status, "status"));
  Device* device = nullptr;
  Device* peer = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  RETURN_IF_FAILED(FindPeer(deviceId, peerDeviceId, &peer));
  // Enabled, not only possible.
  *status = device->Reaches(peerDeviceId) ? 1 : 0;
  return ACL_SUCCESS;
}
