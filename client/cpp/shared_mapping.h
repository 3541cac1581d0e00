// Internal: mapped memory of this process, and which of it the daemon knows by which name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/shared_range.h"

namespace opserve {

// A file in memory, mapped for reading and writing until it is destroyed.
class SharedMapping {
 public:
  // `fd` stays the caller's. kResourceExhausted: no room for it.
  static absl::StatusOr<std::shared_ptr<SharedMapping>> Map(int fd, size_t bytes);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  SharedMapping(std::byte* data, size_t size) : data_(data), size_(size) {}

  std::byte* const data_;
  const size_t size_;
};

// The regions of this process: an answer names a range, and this is where its bytes are. Keys of
// connections are random, so those of all daemons can be in one table. Thread-safe.
class SharedMappings {
 public:
  static SharedMappings& Get();

  void Add(const std::string& connection, uint64_t region, std::weak_ptr<SharedMapping> mapping)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& connection, uint64_t region) ABSL_LOCKS_EXCLUDED(mutex_);

  // The mapping that `range` lies in. Null: there is none, or the range leaves it.
  std::shared_ptr<const SharedMapping> Find(const SharedRange& range) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Name = std::pair<std::string, uint64_t>;

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Name, std::weak_ptr<SharedMapping>> mappings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve
