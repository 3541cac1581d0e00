// The regions that clients have registered, by the connection that did so and the id it chose.
//
// A connection is known by a random key. A region is found only with the key of its connection, by
// its tenant; whatever else is asked for, the answers for what exists elsewhere and for what exists
// nowhere are the same.
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
#include "server/observability/tenant_bytes.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// Of one tenant, over all its connections.
struct SharedMemoryLimits {
  uint64_t max_bytes = 0;
  uint32_t max_regions = 0;
};

// Thread-safe. Outlives the regions that requests still use.
class SharedRegions {
 public:
  static constexpr size_t kKeyBytes = 16;

  struct Listed {
    uint64_t id = 0;
    uint64_t size = 0;
    bool is_read_only = false;
  };

  explicit SharedRegions(SharedRegion::Retire retire) : retire_(std::move(retire)) {}
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

  // What tenants have, without a lock.
  const TenantBytes& tenant_bytes() const { return tenant_bytes_; }
  const TenantBytes& tenant_regions() const { return tenant_regions_; }  // their number

 private:
  struct Connection {
    uint32_t tenant = 0;
    // Null: being registered.
    absl::btree_map<uint64_t, std::shared_ptr<SharedRegion>> regions;
  };
  struct Usage {
    uint64_t bytes = 0;
    uint32_t regions = 0;
  };

  // Takes of the tenant's quota until it is destroyed.
  class Charge;

  void Uncharge(uint32_t tenant, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Enters `id` as one that is being registered.
  absl::StatusOr<std::shared_ptr<void>> Reserve(absl::string_view key, uint64_t id, uint64_t bytes,
                                                const SharedMemoryLimits& limits)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const SharedRegion::Retire retire_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);  // by key
  absl::flat_hash_map<uint32_t, Usage> usage_ ABSL_GUARDED_BY(mutex_);  // without unused ones
  TenantBytes tenant_bytes_;
  TenantBytes tenant_regions_;
};

}  // namespace opserve::server
