// Owners of ACL objects.
#pragma once

#include <memory>

#include "server/device/acl/acl_library.h"

namespace opserve::server {

// Destroys an ACL object through the library that made it.
template <typename T, auto kDestroy>
struct AclDeleter {
  const AclLibrary* acl = nullptr;  // not owned; outlives every handle
  void operator()(T* object) const noexcept {
    if (acl->*kDestroy != nullptr) (acl->*kDestroy)(object);
  }
};

// Owns an executor that has not gone to stage two, or is repeatable. A CANN without
// aclDestroyAclOpExecutor has no way to give the former back, so there it stays.
using ExecutorHandle =
    std::unique_ptr<aclOpExecutor, AclDeleter<aclOpExecutor, &AclLibrary::aclDestroyAclOpExecutor>>;

// Owns a captured graph. Destroy it on a thread that is bound to the graph's device, with no replay
// queued, and before the device is reset.
using GraphHandle = std::unique_ptr<void, AclDeleter<void, &AclLibrary::aclmdlRIDestroy>>;

}  // namespace opserve::server
