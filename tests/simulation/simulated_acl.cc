#include "tests/simulation/simulated_acl.h"

#include <cstdint>

#include "tests/unit/server/acl_environment.h"

namespace opserve::simulation {
namespace {

// Drivers hand out whole huge pages.
constexpr uint64_t kPage = uint64_t{2} << 20;

uint64_t next_address = uint64_t{1} << 40;

aclError Allocate(void** data, size_t bytes) {
  *data = reinterpret_cast<void*>(next_address);
  next_address += (bytes + kPage - 1) / kPage * kPage;
  return ACL_SUCCESS;
}

aclError Free(void*) { return ACL_SUCCESS; }

}  // namespace

const server::AclLibrary& SimulatedAcl() {
  static const server::AclLibrary& acl = []() -> const server::AclLibrary& {
    server::AclLibrary& changed = server::MutableTestAcl();
    changed.aclrtMalloc = [](void** data, size_t bytes, aclrtMemMallocPolicy) {
      return Allocate(data, bytes);
    };
    changed.aclrtFree = Free;
    changed.aclrtMallocHost = Allocate;
    changed.aclrtFreeHost = Free;
    changed.aclrtMemsetAsync = [](void*, size_t, int32_t, size_t, aclrtStream) -> aclError {
      return ACL_SUCCESS;
    };
    return changed;
  }();
  return acl;
}

}  // namespace opserve::simulation
