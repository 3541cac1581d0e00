// The regions that clients have registered, by the connection that did so and the id it chose.
//
// A connection is known by a random key. A region is found only with the key of its connection, by
// its tenant; for any other request the answer is the same whether the region exists elsewhere or
// nowhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/shared_memory/shared_memory_quota.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// Thread-safe. Outlives the regions that requests still use.
class SharedRegions {
 public:
  static constexpr size_t kKeyBytes = 16;

  struct Listed {
    uint64_t id = 0;
    uint64_t size = 0;
    bool is_read_only = false;
  };

  // `quota` outlives it and its regions.
  SharedRegions(SharedRegion::Retire retire, SharedMemoryQuota& quota)
      : retire_(std::move(retire)), quota_(quota) {}
  ~SharedRegions();
  SharedRegions(const SharedRegions&) = delete;
  SharedRegions& operator=(const SharedRegions&) = delete;

  // Its key.
  std::string AddConnection(uint32_t tenant) ABSL_LOCKS_EXCLUDED(mutex_);
  // No new request can use its regions; those that do keep them.
  void RemoveConnection(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

  // `key`: of a connection that was added. A region counts until it is gone and no request uses it.
  //
  // kAlreadyExists (reason "shm_invalid"): the connection has a region `id`.
  // kResourceExhausted (reason "tenant_memory", pushback -1): over the tenant's limits.
  // Else those of SharedRegion::Map. Nothing remains after an error.
  absl::Status Register(absl::string_view key, uint64_t id, int fd, const SharedRegionSpec& spec,
                        const SharedMemoryLimits& limits) ABSL_LOCKS_EXCLUDED(mutex_);

  // kNotFound (reason "shm_invalid").
  absl::Status Unregister(absl::string_view key, uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<Listed> List(absl::string_view key) const ABSL_LOCKS_EXCLUDED(mutex_);

  // kInvalidArgument (reason "shm_invalid"): `key` is not that of a connection of the tenant's.
  // kNotFound (reason "shm_invalid"): it has no region `id`.
  absl::StatusOr<std::shared_ptr<SharedRegion>> Find(uint32_t tenant, absl::string_view key,
                                                     uint64_t id) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Connection {
    uint32_t tenant = 0;
    // Null: being registered.
    absl::btree_map<uint64_t, std::shared_ptr<SharedRegion>> regions;
  };
  // Enters `id` as one that is being registered.
  absl::StatusOr<std::shared_ptr<void>> Reserve(absl::string_view key, uint64_t id, uint64_t bytes,
                                                const SharedMemoryLimits& limits)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const SharedRegion::Retire retire_;
  SharedMemoryQuota& quota_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by key
};

}  // namespace opserve::server
