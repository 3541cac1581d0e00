#include "client/cpp/shared_mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace opserve {

absl::StatusOr<std::shared_ptr<SharedMapping>> SharedMapping::Map(int fd, size_t bytes) {
  void* const address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes of shared memory: ", std::strerror(errno)));
  }
  return std::shared_ptr<SharedMapping>(new SharedMapping(static_cast<std::byte*>(address), bytes));
}

SharedMapping::~SharedMapping() { munmap(data_, size_); }

SharedMappings& SharedMappings::Get() {
  static auto* const mappings = new SharedMappings;
  return *mappings;
}

void SharedMappings::Add(const std::string& connection, uint64_t region,
                         std::weak_ptr<SharedMapping> mapping) {
  absl::MutexLock lock(&mutex_);
  mappings_[Name(connection, region)] = std::move(mapping);
}

void SharedMappings::Remove(const std::string& connection, uint64_t region) {
  absl::MutexLock lock(&mutex_);
  mappings_.erase(Name(connection, region));
}

std::shared_ptr<const SharedMapping> SharedMappings::Find(const SharedRange& range) const {
  std::shared_ptr<const SharedMapping> mapping;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = mappings_.find(Name(range.connection, range.region));
    // Weak: the region's owner alone decides how long it lives. A result that is read takes a
    // share.
    if (found != mappings_.end()) mapping = found->second.lock();
  }
  // By difference: offset and size are the daemon's, and their sum could overflow.
  const bool is_inside = mapping != nullptr && range.offset <= mapping->size() &&
                         range.size <= mapping->size() - range.offset;
  return is_inside ? mapping : nullptr;
}

}  // namespace opserve
