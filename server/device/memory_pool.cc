#include "server/device/memory_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl_status.h"
#include "server/device/size_class.h"

namespace opserve::server {
namespace {

// Kernels may read this far behind a tensor.
constexpr size_t kSlack = 32;
// Beyond any device, and far enough from where sums overflow.
constexpr size_t kLargestRequest = size_t{1} << 62;

absl::Status NeverFits(size_t bytes, uint64_t max_bytes) {
  return opserve::NeverFits(
      Reason::kDeviceMemory,
      absl::StrCat("device memory: ", bytes, " bytes can never fit the limit of ", max_bytes,
                   " bytes (--workspace_max_bytes)"));
}

}  // namespace

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    pool_ = other.pool_;
    block_ = std::exchange(other.block_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void DeviceBuffer::Release() {
  if (block_ != nullptr) pool_->Return(std::exchange(block_, nullptr));
}

DeviceMemoryPool::DeviceMemoryPool(const AclLibrary& acl, const Options& options)
    : acl_(acl), options_(options) {}

BlockRequest DeviceMemoryPool::RequestFor(const Allocation& allocation) const {
  const size_t bytes = allocation.bytes;
  BlockRequest request;
  request.requested_bytes = bytes;
  request.least_bytes = RoundUp(bytes + kSlack, kBlockAlignment);
  request.class_bytes = RoundUp(SizeClass(bytes + kSlack), kBlockAlignment);
  // Splitting for less than an eighth would leave splinters too small for any request.
  request.most_bytes = std::max(request.class_bytes, bytes + bytes / 8 + kBlockAlignment);
  request.stream = allocation.stream;
  if (options_.scrub == Scrub::kCrossTenant) request.tenant = allocation.tenant;
  return request;
}

absl::StatusOr<DeviceBuffer> DeviceMemoryPool::Allocate(const Allocation& allocation,
                                                        Outcome* outcome) {
  if (allocation.bytes == 0) return DeviceBuffer();
  if (allocation.bytes > kLargestRequest) return NeverFits(allocation.bytes, options_.max_bytes);
  Attempt attempt{*this, allocation, RequestFor(allocation)};
  if (attempt.request.least_bytes + kRegionOverhead > options_.max_bytes) {
    return NeverFits(allocation.bytes, options_.max_bytes);
  }

  absl::StatusOr<Lease> lease = Lease();
  {
    absl::MutexLock lock(&mutex_);
    lease = TakeFree(attempt);
  }
  if (lease->block == nullptr) lease = AllocateSlowly(attempt);
  if (absl::IsResourceExhausted(lease.status())) {
    counters_.allocations[kOutOfMemory].fetch_add(1, std::memory_order_relaxed);
    if (outcome != nullptr) *outcome = kOutOfMemory;
  }
  if (!lease.ok()) return lease.status();
  return ToBuffer(*lease, allocation, outcome);
}

std::optional<DeviceBuffer> DeviceMemoryPool::TryAllocate(const Allocation& allocation,
                                                          Outcome* outcome) {
  if (allocation.bytes == 0) return DeviceBuffer();
  if (allocation.bytes > kLargestRequest) return std::nullopt;
  Attempt attempt{*this, allocation, RequestFor(allocation)};
  Lease lease;
  {
    absl::MutexLock lock(&mutex_);
    lease = TakeFree(attempt);
  }
  if (lease.block == nullptr) return std::nullopt;
  absl::StatusOr<DeviceBuffer> buffer = ToBuffer(lease, allocation, outcome);
  if (!buffer.ok()) return std::nullopt;
  return *std::move(buffer);
}

absl::StatusOr<DeviceBuffer> DeviceMemoryPool::ToBuffer(const Lease& lease,
                                                        const Allocation& allocation,
                                                        Outcome* outcome) {
  DeviceBuffer buffer(this, lease.block, allocation.bytes);
  if (lease.must_scrub) OPSERVE_RETURN_IF_ERROR(Overwrite(lease.block, allocation.stream));
  if (outcome != nullptr) *outcome = lease.outcome;
  return buffer;
}

DeviceMemoryPool::Lease DeviceMemoryPool::TakeFree(Attempt& attempt) {
  attempt.seen_changes = changes_;
  MemoryHeap::Lent lent = heap_.TakeRetired(attempt.request);
  if (lent.block == nullptr && attempt.may_wait() && !IsFirst(attempt)) {
    // Nothing was tried yet, so when its turn comes it is not to wait for a change.
    --attempt.seen_changes;
    return {};
  }
  if (lent.block == nullptr) lent = heap_.TakeIdle(attempt.request);
  // Without tenants to tell apart, neighbours are merged already.
  if (lent.block == nullptr && options_.scrub == Scrub::kCrossTenant) {
    lent = heap_.TakeMerged(attempt.request);
  }
  if (lent.block == nullptr) return {};
  const bool is_own = lent.last_stream == attempt.request.stream;
  return Lend(lent, attempt, lent.is_split ? kSplit : is_own ? kHit : kCrossStream);
}

DeviceMemoryPool::Lease DeviceMemoryPool::Lend(const MemoryHeap::Lent& lent, const Attempt& attempt,
                                               Outcome outcome) {
  MemoryBlock& block = *lent.block;
  const uint64_t tenant = attempt.request.tenant;
  const bool is_strange = options_.scrub == Scrub::kCrossTenant && block.tenant != tenant;
  Lease lease{&block, outcome};
  lease.must_scrub =
      attempt.request.stream != nullptr && (is_strange || options_.scrub == Scrub::kAlways);
  // Memory lent without a stream is not scrubbed, and its user may leave bytes as they were.
  block.tenant = is_strange && !lease.must_scrub ? kUnknownTenant : tenant;
  counters_.allocations[outcome].fetch_add(1, std::memory_order_relaxed);
  Publish();
  return lease;
}

absl::Status DeviceMemoryPool::Overwrite(MemoryBlock* block, aclrtStream stream) {
  const int code = acl_.aclrtMemsetAsync(block->data, block->bytes, 0, block->bytes, stream);
  if (code == ACL_SUCCESS) {
    counters_.scrubbed_bytes_total.fetch_add(block->bytes, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  absl::Status status = AclCallStatus(acl_, "aclrtMemsetAsync", code);
  absl::MutexLock lock(&mutex_);
  block->tenant = kUnknownTenant;
  return status;
}

void DeviceMemoryPool::Return(MemoryBlock* block) {
  absl::MutexLock lock(&mutex_);
  heap_.Return(block);
  ++changes_;
  Publish();
}

void DeviceMemoryPool::LeaveStream(const DeviceBuffer& buffer) {
  if (buffer.block_ == nullptr) return;
  absl::MutexLock lock(&mutex_);
  heap_.LeaveStream(buffer.block_);
}

void DeviceMemoryPool::StreamIsIdle(aclrtStream stream) {
  absl::MutexLock lock(&mutex_);
  heap_.StreamIsIdle(stream);
  ++changes_;
  Publish();
}

void DeviceMemoryPool::StreamWasAborted(aclrtStream stream) {
  absl::MutexLock lock(&mutex_);
  heap_.StreamWasAborted(stream);
  ++changes_;
  Publish();
}

void DeviceMemoryPool::ForgetAll() {
  absl::MutexLock lock(&mutex_);
  for (const auto& region : heap_.regions()) taken_bytes_ -= region->bytes + kRegionOverhead;
  heap_.Forget();
  ++changes_;
  Publish();
}

void DeviceMemoryPool::Publish() {
  const MemoryHeap::Bytes& bytes = heap_.bytes();
  const auto publish = [](std::atomic<uint64_t>& counter, uint64_t value) {
    counter.store(value, std::memory_order_relaxed);
  };
  publish(counters_.reserved_bytes, bytes.reserved);
  publish(counters_.allocated_bytes, bytes.allocated);
  publish(counters_.requested_bytes, bytes.requested);
  publish(counters_.idle_bytes, bytes.idle);
  publish(counters_.retired_bytes, bytes.retired);
  publish(counters_.largest_free_bytes, heap_.largest_idle_bytes());
  publish(counters_.peak_bytes, std::max<uint64_t>(counters_.peak_bytes, bytes.reserved));
}

DeviceMemoryPool::Statistics DeviceMemoryPool::statistics() const {
  Statistics statistics;
  statistics.reserved_bytes = counters_.reserved_bytes;
  statistics.allocated_bytes = counters_.allocated_bytes;
  statistics.requested_bytes = counters_.requested_bytes;
  statistics.idle_bytes = counters_.idle_bytes;
  statistics.retired_bytes = counters_.retired_bytes;
  statistics.largest_free_bytes = counters_.largest_free_bytes;
  statistics.peak_bytes = counters_.peak_bytes;
  statistics.trimmed_bytes_total = counters_.trimmed_bytes_total;
  statistics.scrubbed_bytes_total = counters_.scrubbed_bytes_total;
  statistics.waiting = counters_.waiting;
  for (int outcome = 0; outcome < kOutcomes; ++outcome) {
    statistics.allocations[outcome] = counters_.allocations[outcome];
  }
  return statistics;
}

DeviceMemoryPool::Snapshot DeviceMemoryPool::snapshot() const {
  using State = Snapshot::BlockState;
  const auto state_of = [](const MemoryBlock& block) {
    switch (block.state) {
      case MemoryBlock::State::kAllocated:
        return State::kAllocated;
      case MemoryBlock::State::kIdle:
        return State::kIdle;
      case MemoryBlock::State::kRetired:
        return State::kRetired;
    }
    return State::kIdle;
  };
  Snapshot snapshot;
  absl::MutexLock lock(&mutex_);
  for (const auto& region : heap_.regions()) {
    Snapshot::Region& copy = snapshot.regions.emplace_back();
    copy.bytes = region->bytes;
    for (const MemoryBlock* block = region->first; block != nullptr; block = block->next) {
      const auto offset = static_cast<uint64_t>(block->data - region->first->data);
      copy.blocks.push_back({offset, block->bytes, state_of(*block), block->requested_bytes});
    }
  }
  snapshot.statistics = statistics();
  return snapshot;
}

}  // namespace opserve::server
