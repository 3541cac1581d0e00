#include "server/device/memory_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/acl_status.h"
#include "server/device/size_class.h"

namespace opserve::server {

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    pool_ = std::exchange(other.pool_, nullptr);
    stream_ = other.stream_;
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    block_bytes_ = other.block_bytes_;
  }
  return *this;
}

void DeviceBuffer::Release() {
  if (pool_ != nullptr) pool_->Return(stream_, data_, size_, block_bytes_);
  pool_ = nullptr;
}

DeviceMemoryPool::~DeviceMemoryPool() {
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [stream, blocks] : idle_on_stream_) idle_.merge(blocks);
  }
  Trim();
}

void* DeviceMemoryPool::TakeFrom(FreeBlocks* blocks, size_t block_bytes, size_t* taken_bytes) {
  auto found = blocks->lower_bound(block_bytes);
  if (found == blocks->end() || found->first > 2 * block_bytes) return nullptr;
  *taken_bytes = found->first;
  void* data = found->second;
  blocks->erase(found);
  counters_.idle_bytes -= *taken_bytes;
  return data;
}

DeviceBuffer DeviceMemoryPool::Lend(void* data, size_t bytes, size_t block_bytes,
                                    aclrtStream stream, Outcome outcome) {
  ++counters_.allocations[outcome];
  counters_.allocated_bytes += block_bytes;
  counters_.requested_bytes += bytes;
  return DeviceBuffer(this, stream, data, bytes, block_bytes);
}

absl::StatusOr<DeviceBuffer> DeviceMemoryPool::Allocate(size_t bytes, aclrtStream stream) {
  if (bytes == 0) return DeviceBuffer();
  const size_t block_bytes = SizeClass(bytes);
  {
    absl::MutexLock lock(&mutex_);
    size_t taken = 0;
    if (void* data = TakeFrom(&idle_on_stream_[stream], block_bytes, &taken)) {
      return Lend(data, bytes, taken, stream, kHit);
    }
    if (void* data = TakeFrom(&idle_, block_bytes, &taken)) {
      return Lend(data, bytes, taken, stream, kCrossStream);
    }
  }

  // No lock is held across the allocation: it can block, and other streams go on meanwhile.
  void* data = nullptr;
  Outcome outcome = kGrow;
  int code = acl_.aclrtMalloc(&data, block_bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (ClassifyAclCode(code) == AclFault::kResource) {
    Trim();
    outcome = kRetry;
    code = acl_.aclrtMalloc(&data, block_bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  }
  absl::Status status = AclCallStatus(acl_, "aclrtMalloc", code);
  absl::MutexLock lock(&mutex_);
  if (!status.ok()) {
    ++counters_.allocations[kOutOfMemory];
    return status;
  }
  counters_.reserved_bytes += block_bytes;
  counters_.peak_bytes = std::max<uint64_t>(counters_.peak_bytes, counters_.reserved_bytes);
  return Lend(data, bytes, block_bytes, stream, outcome);
}

void DeviceMemoryPool::Return(aclrtStream stream, void* data, size_t bytes, size_t block_bytes) {
  absl::MutexLock lock(&mutex_);
  counters_.allocated_bytes -= block_bytes;
  counters_.requested_bytes -= bytes;
  counters_.idle_bytes += block_bytes;
  idle_on_stream_[stream].emplace(block_bytes, data);
}

void DeviceMemoryPool::StreamIsIdle(aclrtStream stream) {
  absl::MutexLock lock(&mutex_);
  auto found = idle_on_stream_.find(stream);
  if (found != idle_on_stream_.end()) idle_.merge(found->second);
}

void DeviceMemoryPool::Trim() {
  FreeBlocks unused;
  {
    absl::MutexLock lock(&mutex_);
    unused.swap(idle_);
    for (const auto& [bytes, data] : unused) {
      counters_.idle_bytes -= bytes;
      counters_.reserved_bytes -= bytes;
      counters_.trimmed_bytes_total += bytes;
    }
  }
  // A device that is lost refuses to free, but its memory is gone with it.
  for (const auto& [bytes, data] : unused) acl_.aclrtFree(data);
}

DeviceMemoryPool::Statistics DeviceMemoryPool::statistics() const {
  Statistics statistics;
  statistics.reserved_bytes = counters_.reserved_bytes;
  statistics.allocated_bytes = counters_.allocated_bytes;
  statistics.requested_bytes = counters_.requested_bytes;
  statistics.idle_bytes = counters_.idle_bytes;
  statistics.peak_bytes = counters_.peak_bytes;
  statistics.trimmed_bytes_total = counters_.trimmed_bytes_total;
  for (int outcome = 0; outcome < kOutcomes; ++outcome) {
    statistics.allocations[outcome] = counters_.allocations[outcome];
  }
  return statistics;
}

}  // namespace opserve::server
