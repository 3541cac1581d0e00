// ACL and aclnn codes as absl::Status: the one translation on the daemon's device side.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

class AclLibrary;

// The response that a code needs from the daemon.
enum class AclFault {
  kNone,         // from aclInit or a wait for a stream: all is well
  kCaller,       // the request is wrong
  kUnsupported,  // this product, or this version, has it not
  kResource,     // memory or a handle ran out; retry after freeing
  kKernel,       // a kernel crashed or hung; the device itself may be well
  kLink,         // the way to the device, or another card, failed; retry, but not for ever
  kDevice,       // the device is lost until it is reset
  kInternal,     // anything else, including misuse by the daemon
};

// Codes of the runtime's device range (507xxx) that are not known are taken for kDevice.
AclFault ClassifyAclCode(int code);

// Whether the code of a kDevice fault says that the device's memory is damaged.
bool IsMemoryDamage(int code);

// Whether `status` comes from a code that means a lost device: kUnavailable may mean less.
bool IsDeviceLoss(const absl::Status& status);

// Whether `status` is stage one's answer to a correct call on a product that lacks the operator or
// has no kernels for it installed.
bool SaysUnsupported(const absl::Status& status);

// OK for 0; otherwise a status for `code` returned by `call` ("aclrtMalloc") on this thread:
//   kCaller       kInvalidArgument, reason "invalid", aclnn_status
//   kUnsupported  kUnimplemented
//   kResource     kResourceExhausted, reason "device_memory"
//   kLink, kDevice     kUnavailable, reason "device_unavailable", acl_error
//   kKernel, kInternal  kInternal, acl_error
// If aclnn says no more than that a runtime call failed (361001), the runtime's own code counts.
// The ErrorDetail's runtime_message is the library's own text, taken from (and cleared on) the
// calling thread: call this right after the failed call.
absl::Status AclCallError(const AclLibrary& acl, absl::string_view call, int code);  // not for 0
inline absl::Status AclCallStatus(const AclLibrary& acl, absl::string_view call, int code) {
  return code == 0 ? absl::OkStatus() : AclCallError(acl, call, code);
}

}  // namespace opserve::server
