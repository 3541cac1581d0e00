#include "server/shared_memory/shared_regions.h"

#include <sys/random.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

absl::Status NoSuchRegion() {
  return MakeError(Reason::kShmInvalid, absl::StatusCode::kNotFound,
                   "the connection has no such region");
}

std::string RandomKey() {
  std::string key(SharedRegions::kKeyBytes, '\0');
  // So few bytes come at once, and whole.
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) std::abort();
  return key;
}

}  // namespace

SharedRegions::~SharedRegions() {
  // Destroyed after the lock is released: regions give their charges back to a quota.
  absl::flat_hash_map<std::string, Connection> removed;
  absl::MutexLock lock(&mutex_);
  removed.swap(connections_);
}

std::string SharedRegions::AddConnection(uint32_t tenant) {
  std::string key = RandomKey();
  absl::MutexLock lock(&mutex_);
  connections_[key].tenant = tenant;
  return key;
}

void SharedRegions::RemoveConnection(absl::string_view key) {
  Connection removed;  // its regions are destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = connections_.find(key);
  if (found == connections_.end()) return;
  removed = std::move(found->second);
  connections_.erase(found);
}

absl::StatusOr<std::shared_ptr<void>> SharedRegions::Reserve(absl::string_view key, uint64_t id,
                                                             uint64_t bytes,
                                                             const SharedMemoryLimits& limits) {
  absl::MutexLock lock(&mutex_);
  // It is there: its session removes it, on this same thread.
  Connection& connection = connections_.find(key)->second;
  if (connection.regions.contains(id)) {
    return MakeError(Reason::kShmInvalid, absl::StatusCode::kAlreadyExists,
                     absl::StrCat("the connection has a region ", id, " already"));
  }
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<void> charge,
                           quota_.Take(connection.tenant, bytes, limits));
  // Null keeps the id from being registered twice meanwhile.
  connection.regions[id] = nullptr;
  return charge;
}

absl::Status SharedRegions::Register(absl::string_view key, uint64_t id, int fd,
                                     const SharedRegionSpec& spec,
                                     const SharedMemoryLimits& limits) {
  bool is_reserved = false;
  // System calls are made without the lock. Reserve takes it, in the middle of Map: after the
  // checks of the file, and before the mapping.
  auto region = SharedRegion::Map(fd, spec, retire_, [&] {
    auto charge = Reserve(key, id, spec.size, limits);
    is_reserved = charge.ok();
    return charge;
  });
  // Map failed before it took the charge: there is nothing to undo.
  if (!is_reserved) return region.status();
  absl::MutexLock lock(&mutex_);
  auto& regions = connections_.find(key)->second.regions;
  if (region.ok()) {
    regions[id] = *std::move(region);
  } else {
    regions.erase(id);
  }
  return region.status();
}

absl::Status SharedRegions::Unregister(absl::string_view key, uint64_t id) {
  std::shared_ptr<SharedRegion> removed;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  auto& regions = connections_.find(key)->second.regions;
  const auto found = regions.find(id);
  if (found == regions.end() || found->second == nullptr) return NoSuchRegion();
  removed = std::move(found->second);
  regions.erase(found);
  return absl::OkStatus();
}

std::vector<SharedRegions::Listed> SharedRegions::List(absl::string_view key) const {
  std::vector<Listed> list;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, region] : connections_.find(key)->second.regions) {
    // Null while it is being registered.
    if (region != nullptr) list.push_back({id, region->size(), region->is_read_only()});
  }
  return list;
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegions::Find(uint32_t tenant,
                                                                  absl::string_view key,
                                                                  uint64_t id) const {
  absl::MutexLock lock(&mutex_);
  const auto connection = connections_.find(key);
  // The answer is the same for a key that never was and for another tenant's.
  if (connection == connections_.end() || connection->second.tenant != tenant) {
    return MakeError(
        Reason::kShmInvalid,
        "the connection's key is not that of a shared-memory connection of the caller's");
  }
  const auto region = connection->second.regions.find(id);
  if (region == connection->second.regions.end() || region->second == nullptr) {
    return NoSuchRegion();
  }
  return region->second;
}

}  // namespace opserve::server
