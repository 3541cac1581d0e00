#include "server/device/memory/pinned_pool.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/device/acl/acl_status.h"
#include "server/device/memory/size_class.h"

namespace opserve::server {
namespace {

// Whole cache lines, as the device's copies like it.
constexpr size_t kAlignment = 64;

}  // namespace

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    // Its own block is back in the pool; now it takes the other's, together with the charge for it.
    pool_ = std::move(other.pool_);
    charge_ = std::move(other.charge_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    block_bytes_ = other.block_bytes_;
  }
  return *this;
}

void PinnedBuffer::Release() {
  if (data_ == nullptr) return;
  if (pool_ != nullptr) {
    pool_->Return(data_, block_bytes_);
  } else {
    std::free(data_);
  }
  pool_.reset();
  data_ = nullptr;
  charge_.reset();  // after the block is back: a waiting request may take it at once
}

std::shared_ptr<PinnedPool> PinnedPool::Create(const AclLibrary& acl, size_t limit_bytes,
                                               bool allow_host_fallback) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(acl, limit_bytes, allow_host_fallback));
}

size_t PinnedPool::BlockBytes(size_t bytes) { return bytes == 0 ? 0 : SizeClass(bytes); }

absl::StatusOr<PinnedBuffer> PinnedPool::Allocate(size_t bytes, const PinnedAllowance& allowance) {
  if (bytes == 0) return PinnedBuffer();
  if (!allowance.is_pinned) return AllocateOrdinary(bytes);
  const size_t block_bytes = SizeClass(bytes);
  if (block_bytes > limit_bytes_) {
    return MakeError(Reason::kTooLarge, absl::StatusCode::kFailedPrecondition,
                     absl::StrCat("a result of ", bytes, " bytes does not fit the pinned pool of ",
                                  limit_bytes_, " bytes (--pinned_pool_bytes)"));
  }
  std::vector<void*> evicted;
  bool is_reserved = false;
  {
    absl::MutexLock lock(&mutex_);
    if (std::optional<PinnedBuffer> idle = TakeIdle(bytes, allowance)) return *std::move(idle);
    evicted = MakeRoom(block_bytes);
    is_reserved = reserved_bytes_ + block_bytes <= limit_bytes_;
    // Counted before the system is asked, so that two threads stay within the limit together.
    if (is_reserved) reserved_bytes_ += block_bytes;
  }
  // Without the lock, since the call may take long.
  for (void* data : evicted) acl_.aclrtFreeHost(data);
  if (!is_reserved) {
    if (allow_host_fallback_) return AllocateOrdinary(bytes);
    return MakeError(Reason::kDeviceMemory,
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
  return PinnedBuffer(shared_from_this(), data, bytes, block_bytes, allowance.charge);
}

std::optional<PinnedBuffer> PinnedPool::TryAllocate(size_t bytes,
                                                    const PinnedAllowance& allowance) {
  if (bytes == 0) return PinnedBuffer();
  // Fresh pages may take long: another thread is to fetch them.
  if (!allowance.is_pinned) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  return TakeIdle(bytes, allowance);
}

std::optional<PinnedBuffer> PinnedPool::TakeIdle(size_t bytes, const PinnedAllowance& allowance) {
  const size_t block_bytes = SizeClass(bytes);
  // Only a block of the very class, so that large ones stay for large results.
  const auto found = idle_.find(block_bytes);
  if (found == idle_.end() || found->second.empty()) return std::nullopt;
  void* const data = found->second.back();
  found->second.pop_back();
  allocated_bytes_ += block_bytes;
  return PinnedBuffer(shared_from_this(), data, bytes, block_bytes, allowance.charge);
}

absl::StatusOr<PinnedBuffer> PinnedPool::AllocateOrdinary(size_t bytes) {
  // The function wants a multiple of the alignment.
  void* const data = std::aligned_alloc(kAlignment, RoundUp(bytes, kAlignment));
  if (data == nullptr) {
    return MakeError(Reason::kDeviceMemory,
                     absl::StrCat("pinned pool of ", limit_bytes_,
                                  " bytes is in use, and the system has no ", bytes, " bytes"));
  }
  fallbacks_total_.fetch_add(1, std::memory_order_relaxed);
  // No block of the pool's, and no tenant's charge.
  return PinnedBuffer(nullptr, data, bytes, 0, nullptr);
}

std::vector<void*> PinnedPool::MakeRoom(size_t bytes) {
  size_t room = limit_bytes_ - reserved_bytes_;
  size_t idle_bytes = 0;
  for (const auto& [size, blocks] : idle_) idle_bytes += size * blocks.size();
  std::vector<void*> evicted;
  if (room + idle_bytes < bytes) return evicted;
  // From the largest one on, for the fewest calls.
  for (auto largest = idle_.rbegin(); room < bytes; ++largest) {
    auto& [size, blocks] = *largest;
    for (; room < bytes && !blocks.empty(); blocks.pop_back()) {
      evicted.push_back(blocks.back());
      room += size;
      reserved_bytes_ -= size;
    }
  }
  return evicted;
}

void PinnedPool::Return(void* data, size_t block_bytes) {
  absl::MutexLock lock(&mutex_);
  allocated_bytes_ -= block_bytes;
  idle_[block_bytes].push_back(data);
}

void PinnedPool::Close() {
  FreeBlocks idle;
  {
    absl::MutexLock lock(&mutex_);
    idle.swap(idle_);
    for (const auto& [size, blocks] : idle) reserved_bytes_ -= size * blocks.size();
  }
  for (const auto& [size, blocks] : idle) {
    for (void* data : blocks) acl_.aclrtFreeHost(data);
  }
}

}  // namespace opserve::server
