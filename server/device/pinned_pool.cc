#include "server/device/pinned_pool.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "ops/catalog/error.h"
#include "server/device/acl_status.h"
#include "server/device/size_class.h"

namespace opserve::server {

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    pool_ = std::move(other.pool_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    block_bytes_ = other.block_bytes_;
  }
  return *this;
}

void PinnedBuffer::Release() {
  if (pool_ != nullptr) pool_->Return(data_, block_bytes_);
  pool_.reset();
}

std::shared_ptr<PinnedPool> PinnedPool::Create(const AclLibrary& acl, size_t limit_bytes) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(acl, limit_bytes));
}

absl::StatusOr<PinnedBuffer> PinnedPool::Allocate(size_t bytes) {
  if (bytes == 0) return PinnedBuffer();
  const size_t block_bytes = SizeClass(bytes);
  if (block_bytes > limit_bytes_) {
    return catalog::ErrorWithReason(
        absl::StatusCode::kFailedPrecondition, "too_large",
        absl::StrCat("a result of ", bytes, " bytes does not fit the pinned pool of ", limit_bytes_,
                     " bytes (--pinned_pool_bytes)"));
  }
  FreeBlocks evicted;
  bool is_reserved = false;
  {
    absl::MutexLock lock(&mutex_);
    if (auto found = idle_.lower_bound(block_bytes);
        found != idle_.end() && found->first <= 2 * block_bytes) {
      const auto [taken_bytes, data] = *found;
      idle_.erase(found);
      allocated_bytes_ += taken_bytes;
      return PinnedBuffer(shared_from_this(), data, bytes, taken_bytes);
    }
    evicted = MakeRoom(block_bytes);
    is_reserved = reserved_bytes_ + block_bytes <= limit_bytes_;
    if (is_reserved) reserved_bytes_ += block_bytes;
  }
  for (const auto& [size, data] : evicted) acl_.aclrtFreeHost(data);
  if (!is_reserved) {
    return catalog::ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "device_memory",
        absl::StrCat("pinned pool of ", limit_bytes_, " bytes is in use; ", bytes,
                     " bytes more do not fit now"));
  }

  void* data = nullptr;
  absl::Status status =
      AclCallStatus(acl_, "aclrtMallocHost", acl_.aclrtMallocHost(&data, block_bytes));
  absl::MutexLock lock(&mutex_);
  if (!status.ok()) {
    reserved_bytes_ -= block_bytes;
    return status;
  }
  allocated_bytes_ += block_bytes;
  return PinnedBuffer(shared_from_this(), data, bytes, block_bytes);
}

PinnedPool::FreeBlocks PinnedPool::MakeRoom(size_t bytes) {
  FreeBlocks evicted;
  while (!idle_.empty() && reserved_bytes_ + bytes > limit_bytes_) {
    auto largest = idle_.extract(std::prev(idle_.end()));
    reserved_bytes_ -= largest.key();
    evicted.insert(std::move(largest));
  }
  return evicted;
}

void PinnedPool::Return(void* data, size_t block_bytes) {
  absl::MutexLock lock(&mutex_);
  allocated_bytes_ -= block_bytes;
  idle_.emplace(block_bytes, data);
}

void PinnedPool::Close() {
  FreeBlocks idle;
  {
    absl::MutexLock lock(&mutex_);
    idle.swap(idle_);
    for (const auto& [size, data] : idle) reserved_bytes_ -= size;
  }
  for (const auto& [size, data] : idle) acl_.aclrtFreeHost(data);
}

}  // namespace opserve::server
