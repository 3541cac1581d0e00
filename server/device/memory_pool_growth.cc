// DeviceMemoryPool: memory to and from the device. All ACL calls are made without the lock; their
// memory counts against the limit from before it is taken until after it was given back.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/device/acl_status.h"
#include "server/device/memory_pool.h"

namespace opserve::server {
namespace {

uint64_t TakenBy(size_t region_bytes) { return uint64_t{region_bytes} + kRegionOverhead; }

uint64_t SumOf(const std::vector<std::unique_ptr<MemoryRegion>>& regions) {
  uint64_t bytes = 0;
  for (const auto& region : regions) bytes += region->bytes;
  return bytes;
}

}  // namespace

DeviceMemoryPool::~DeviceMemoryPool() {
  heap_.LogSums();
  for (const auto& region : heap_.regions()) acl_.aclrtFree(region->allocation);
}

absl::StatusOr<DeviceMemoryPool::Lease> DeviceMemoryPool::Grow(Attempt& attempt) {
  // A region takes region_bytes from the device, its alignment included, because drivers hand out
  // whole huge pages.
  const uint64_t usual = std::max<uint64_t>(options_.region_bytes, 2 * kRegionOverhead) /
                             kBlockAlignment * kBlockAlignment -
                         kRegionOverhead;
  const size_t least = attempt.request.least_bytes;
  const size_t wanted = std::max<size_t>(attempt.request.class_bytes, usual);
  absl::StatusOr<Lease> lease =
      MakeError(Reason::kDeviceMemory,
                absl::StrCat("device memory: ", attempt.allocation.bytes, " bytes do not fit now; ",
                             counters_.allocated_bytes.load(), " of ", options_.max_bytes,
                             " bytes (--workspace_max_bytes) are lent"));
  if (BeginGrowth(attempt, wanted)) lease = FinishGrowth(attempt, wanted, kGrow);
  if (absl::IsResourceExhausted(lease.status()) && least < wanted && BeginGrowth(attempt, least)) {
    lease = FinishGrowth(attempt, least, kGrow);
  }
  if (absl::IsResourceExhausted(lease.status()) && TrimAndBeginGrowth(attempt)) {
    lease = FinishGrowth(attempt, least, kRetry);
  }
  return lease;
}

bool DeviceMemoryPool::BeginGrowth(const Attempt& attempt, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (!IsFirst(attempt) || TakenBy(bytes) > options_.max_bytes - taken_bytes_) return false;
  taken_bytes_ += TakenBy(bytes);
  ++device_calls_;
  return true;
}

bool DeviceMemoryPool::TrimAndBeginGrowth(Attempt& attempt) {
  const size_t least = attempt.request.least_bytes;
  Regions idle;
  {
    absl::MutexLock lock(&mutex_);
    if (!IsFirst(attempt)) return false;
    const std::vector<MemoryRegion*> regions = heap_.IdleRegions();
    uint64_t taken_after = taken_bytes_;
    for (const MemoryRegion* region : regions) taken_after -= TakenBy(region->bytes);
    // Idle memory that is too little is kept: others would have to fetch it again.
    if (regions.empty() || TakenBy(least) > options_.max_bytes - taken_after) return false;
    idle = TakeOut(regions);
  }
  Free(idle);
  absl::MutexLock lock(&mutex_);
  BookFreed(idle);
  ++attempt.seen_changes;
  if (TakenBy(least) > options_.max_bytes - taken_bytes_) return false;
  taken_bytes_ += TakenBy(least);
  ++device_calls_;
  return true;
}

absl::StatusOr<DeviceMemoryPool::Lease> DeviceMemoryPool::FinishGrowth(Attempt& attempt,
                                                                       size_t bytes,
                                                                       Outcome outcome) {
  void* allocation = nullptr;
  const int code = acl_.aclrtMalloc(&allocation, bytes + kAlignmentRoom, ACL_MEM_MALLOC_HUGE_FIRST);
  absl::Status status = AclCallStatus(acl_, "aclrtMalloc", code);
  const bool is_poisoned =
      options_.guard && status.ok() && guard_.Poison(MemoryHeap::FirstBlockOf(allocation), bytes);

  absl::MutexLock lock(&mutex_);
  --device_calls_;
  ++changes_;
  ++attempt.seen_changes;
  if (!status.ok()) {
    taken_bytes_ -= TakenBy(bytes);
    return status;
  }
  return Lend(heap_.AddRegion(allocation, bytes, attempt.request, is_poisoned), attempt, outcome);
}

DeviceMemoryPool::Regions DeviceMemoryPool::TakeOut(const std::vector<MemoryRegion*>& regions) {
  Regions taken;
  for (MemoryRegion* region : regions) taken.push_back(heap_.Remove(region));
  if (!taken.empty()) counters_.trims_total.fetch_add(1, std::memory_order_relaxed);
  counters_.trimmed_bytes_total.fetch_add(SumOf(taken), std::memory_order_relaxed);
  ++device_calls_;
  Publish();
  return taken;
}

void DeviceMemoryPool::Free(const Regions& regions) {
  // A device that is lost refuses, but its memory is gone with it.
  for (const auto& region : regions) acl_.aclrtFree(region->allocation);
}

void DeviceMemoryPool::BookFreed(const Regions& regions) {
  for (const auto& region : regions) taken_bytes_ -= TakenBy(region->bytes);
  --device_calls_;
  ++changes_;
}

uint64_t DeviceMemoryPool::FreeAndBook(const Regions& regions) {
  Free(regions);
  absl::MutexLock lock(&mutex_);
  BookFreed(regions);
  return SumOf(regions);
}

uint64_t DeviceMemoryPool::Trim() {
  Regions idle;
  {
    absl::MutexLock lock(&mutex_);
    idle = TakeOut(heap_.IdleRegions());
  }
  return FreeAndBook(idle);
}

absl::Time DeviceMemoryPool::TrimDecayed(absl::Time now) {
  absl::Time next_call = absl::InfiniteFuture();
  Regions decayed;
  {
    absl::MutexLock lock(&mutex_);
    std::vector<MemoryRegion*> idle = heap_.IdleRegions();
    for (MemoryRegion* region : idle) region->idle_since = std::min(region->idle_since, now);
    std::sort(idle.begin(), idle.end(), [](const MemoryRegion* a, const MemoryRegion* b) {
      return a->idle_since < b->idle_since;
    });
    uint64_t reserved = heap_.bytes().reserved;
    auto kept = idle.begin();
    while (kept != idle.end() && reserved > options_.floor_bytes &&
           now - (*kept)->idle_since >= options_.decay) {
      reserved -= (*kept++)->bytes;
    }
    if (reserved > options_.floor_bytes) {
      next_call = (kept == idle.end() ? now : (*kept)->idle_since) + options_.decay;
    }
    decayed = TakeOut({idle.begin(), kept});
  }
  FreeAndBook(decayed);
  return next_call;
}

}  // namespace opserve::server
