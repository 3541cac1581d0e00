// ACL and aclnn codes as absl::Status: the one translation on the daemon's device side.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

class AclLibrary;

// What a code asks the daemon to do.
enum class AclFault {
  kNone,      // not an error
  kCaller,    // the request is wrong
  kResource,  // memory or a handle ran out; retry after freeing
  kKernel,    // a kernel crashed or hung; the device itself may be well
  kDevice,    // the device is lost until it is reset
  kInternal,  // anything else, including misuse by the daemon
};

AclFault ClassifyAclCode(int code);

// Whether the code of a kDevice fault says that the device's memory is damaged.
bool IsMemoryDamage(int code);

// OK for 0; otherwise a status for `code` returned by `call` ("aclrtMalloc") on this thread:
//   kCaller    kInvalidArgument, reason "invalid", aclnn_status
//   kResource  kResourceExhausted, reason "device_memory"
//   kDevice    kUnavailable, reason "device_unavailable", acl_error
//   kKernel, kInternal  kInternal, acl_error
// The ErrorDetail's runtime_message is the library's own text, taken from (and cleared on) the
// calling thread: call this right after the failed call.
absl::Status AclCallStatus(const AclLibrary& acl, absl::string_view call, int code);

}  // namespace opserve::server
