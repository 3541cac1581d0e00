// Regions that clients register by the name of a POSIX shared memory object, as the Open Inference
// Protocol has it. The client made the object, may cut it off or remove it, and the daemon opens it
// by a name that a stranger chose. So its mapping is guarded (SharedRegion::MapShrinkable), and it
// is opened only if it belongs to the calling user, or where that user is unknown, to the daemon's
// own. The daemon itself makes no such objects, so none of its own has a name.
//
// Each tenant has names of its own: another tenant's regions cannot be seen, used or removed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/shared_memory/shared_memory_quota.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// Thread-safe.
class NamedRegions {
 public:
  // As it was registered.
  struct Spec {
    std::string key;  // the object's name, with or without "/" in front
    uint64_t offset = 0;
    uint64_t byte_size = 0;
  };

  // `quota` outlives it and its regions.
  NamedRegions(SharedRegion::Retire retire, SharedMemoryQuota& quota)
      : retire_(std::move(retire)), quota_(quota) {}
  NamedRegions(const NamedRegions&) = delete;
  NamedRegions& operator=(const NamedRegions&) = delete;

  // `owner`: the user that the object must belong to. Makes only system calls that do not wait.
  //
  // kInvalidArgument (reason "shm_invalid"): no name or key for a region, or a part that is not in
  // the object.
  // kAlreadyExists (reason "shm_invalid"): the tenant has a region of that name.
  // kInternal (reason "shm_invalid"): there is no such object, or it may not be used; which of
  // these, the caller is not told.
  // Else those of SharedMemoryQuota::Take and SharedMapping::Create. Nothing remains after an
  // error.
  absl::Status Register(uint32_t tenant, const std::string& name, const Spec& spec, uid_t owner,
                        const SharedMemoryLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);

  // No new request can use the region; those that do keep it. No effect if there is none.
  void Unregister(uint32_t tenant, const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  void UnregisterAll(uint32_t tenant) ABSL_LOCKS_EXCLUDED(mutex_);

  // The regions that the tenant has registered, by name.
  std::map<std::string, Spec> List(uint32_t tenant) const ABSL_LOCKS_EXCLUDED(mutex_);

  // kNotFound (reason "shm_invalid").
  absl::StatusOr<std::shared_ptr<SharedRegion>> Find(uint32_t tenant, const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Region {
    Spec spec;
    std::shared_ptr<SharedRegion> region;
  };
  using Regions = std::map<std::string, Region>;

  const SharedRegion::Retire retire_;
  SharedMemoryQuota& quota_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uint32_t, Regions> regions_ ABSL_GUARDED_BY(mutex_);  // by tenant
};

}  // namespace opserve::server
