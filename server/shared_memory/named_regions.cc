#include "server/shared_memory/named_regions.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

constexpr size_t kMaxNameBytes = 255;
// Under such names the C library keeps semaphores, which other programs trust.
constexpr absl::string_view kSemaphorePrefix = "sem.";

absl::Status NamedError(absl::StatusCode code, absl::string_view message) {
  return MakeError(Reason::kShmInvalid, code, message);
}

absl::Status InvalidRegion(absl::string_view message) {
  return NamedError(absl::StatusCode::kInvalidArgument, message);
}

absl::Status CheckRegionName(absl::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidRegion(absl::StrCat("the name of a shared memory region must have 1 to ",
                                    kMaxNameBytes, " bytes, it has ", name.size()));
}

// One component, which can lead nowhere but to an object.
absl::StatusOr<std::string> ObjectName(absl::string_view key) {
  // Clients write the name with or without it.
  while (absl::ConsumePrefix(&key, "/")) {
  }
  if (key.empty() || key.size() > kMaxNameBytes || key == "." || key == ".." ||
      absl::StrContains(key, '/') || absl::StrContains(key, '\0') ||
      absl::StartsWith(key, kSemaphorePrefix)) {
    return InvalidRegion("invalid shm key: it must be the name of one POSIX shared memory object");
  }
  return absl::StrCat("/", key);
}

// Whether the file is memory of that user's.
bool IsMemoryOf(int fd, uid_t owner, const struct stat& info) {
  struct statfs system = {};
  return S_ISREG(info.st_mode) && info.st_uid == owner && fstatfs(fd, &system) == 0 &&
         static_cast<uint64_t>(system.f_type) == TMPFS_MAGIC;
}

}  // namespace

absl::Status NamedRegions::Register(uint32_t tenant, const std::string& name, const Spec& spec,
                                    uid_t owner, const SharedMemoryLimits& limits) {
  OPSERVE_RETURN_IF_ERROR(CheckRegionName(name));
  OPSERVE_ASSIGN_OR_RETURN(const std::string object, ObjectName(spec.key));
  // The only error about an object's contents: its size is its owner's affair.
  const absl::Status invalid_part = InvalidRegion(
      absl::StrCat("failed to register shared memory region '", name, "': invalid args"));
  uint64_t end = 0;
  if (spec.byte_size == 0 || __builtin_add_overflow(spec.offset, spec.byte_size, &end)) {
    return invalid_part;
  }
  // O_NONBLOCK: the object may be a pipe, and opening it must not wait for the other end.
  const int fd = shm_open(object.c_str(), O_RDWR | O_NONBLOCK, 0);
  absl::Cleanup close_file = [fd] {
    if (fd >= 0) close(fd);
  };
  struct stat info = {};
  if (fd < 0 || fstat(fd, &info) != 0 || !IsMemoryOf(fd, owner, info)) {
    return NamedError(absl::StatusCode::kInternal,
                      absl::StrCat("Unable to open shared memory region: '", spec.key, "'"));
  }
  if (end > static_cast<uint64_t>(info.st_size)) return invalid_part;

  // System calls are made without the lock. If two register the same name meanwhile, the second
  // one's region goes again.
  const absl::Status taken =
      NamedError(absl::StatusCode::kAlreadyExists,
                 absl::StrCat("shared memory region '", name, "' already in manager"));
  if (Find(tenant, name).ok()) return taken;
  OPSERVE_ASSIGN_OR_RETURN(
      std::shared_ptr<SharedRegion> region,
      SharedRegion::MapShrinkable(fd, {.offset = spec.offset, .size = spec.byte_size}, retire_,
                                  [&] { return quota_.Take(tenant, spec.byte_size, limits); }));
  absl::MutexLock lock(&mutex_);
  return regions_[tenant].try_emplace(name, Region{spec, region}).second ? absl::OkStatus() : taken;
}

void NamedRegions::Unregister(uint32_t tenant, const std::string& name) {
  Regions::node_type removed;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = regions_.find(tenant);
  // As in Triton, it is no error if there is no such region.
  if (found != regions_.end()) removed = found->second.extract(name);
}

void NamedRegions::UnregisterAll(uint32_t tenant) {
  Regions removed;  // likewise
  absl::MutexLock lock(&mutex_);
  const auto found = regions_.find(tenant);
  if (found != regions_.end()) removed.swap(found->second);
}

std::map<std::string, NamedRegions::Spec> NamedRegions::List(uint32_t tenant) const {
  std::map<std::string, Spec> list;
  absl::MutexLock lock(&mutex_);
  const auto found = regions_.find(tenant);
  if (found == regions_.end()) return list;
  for (const auto& [name, region] : found->second) list.emplace(name, region.spec);
  return list;
}

absl::StatusOr<std::shared_ptr<SharedRegion>> NamedRegions::Find(uint32_t tenant,
                                                                 const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto regions = regions_.find(tenant);
  if (regions != regions_.end()) {
    const auto region = regions->second.find(name);
    if (region != regions->second.end()) return region->second.region;
  }
  return NamedError(absl::StatusCode::kNotFound,
                    absl::StrCat("Unable to find shared memory region: '", name, "'"));
}

}  // namespace opserve::server
