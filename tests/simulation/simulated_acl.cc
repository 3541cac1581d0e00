#include "tests/simulation/simulated_acl.h"

#include <cstdint>
#include <cstdlib>

#include "absl/container/flat_hash_map.h"
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

bool refuses_pinned = false;
uint64_t pinned_bytes = 0;

// Sizes by address.
absl::flat_hash_map<void*, uint64_t>& Pinned() {
  static auto* const pinned = new absl::flat_hash_map<void*, uint64_t>;
  return *pinned;
}

aclError AllocatePinned(void** data, size_t bytes) {
  if (refuses_pinned) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  Allocate(data, bytes);
  Pinned()[*data] = bytes;
  pinned_bytes += bytes;
  return ACL_SUCCESS;
}

aclError FreePinned(void* data) {
  const auto found = Pinned().find(data);
  if (found == Pinned().end()) std::abort();  // freed twice
  pinned_bytes -= found->second;
  Pinned().erase(found);
  return ACL_SUCCESS;
}

}  // namespace

const server::AclLibrary& SimulatedAcl() {
  static const server::AclLibrary& acl = []() -> const server::AclLibrary& {
    server::AclLibrary& changed = server::MutableTestAcl();
    changed.aclrtMalloc = [](void** data, size_t bytes, aclrtMemMallocPolicy) {
      return Allocate(data, bytes);
    };
    changed.aclrtFree = Free;
    changed.aclrtMallocHost = AllocatePinned;
    changed.aclrtFreeHost = FreePinned;
    changed.aclrtMemsetAsync = [](void*, size_t, int32_t, size_t, aclrtStream) -> aclError {
      return ACL_SUCCESS;
    };
    return changed;
  }();
  return acl;
}

uint64_t SimulatedPinnedBytes() { return pinned_bytes; }

void RefusePinnedMemory(bool refuses) { refuses_pinned = refuses; }

}  // namespace opserve::simulation
