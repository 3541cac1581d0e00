#include "server/device/memory/memory_pool.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/device/memory/size_class.h"
#include "server/observability/log.h"

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

// Null: none was asked for, or it cannot be written, which stops no daemon.
std::unique_ptr<AllocationLog> LogFor(const DeviceMemoryPool::Options& options) {
  if (options.allocation_log.empty()) return nullptr;
  absl::StatusOr<std::unique_ptr<AllocationLog>> log =
      AllocationLog::Create(options.allocation_log);
  if (log.ok()) return *std::move(log);
  LogError("no_allocation_log", {{"reason", std::string(log.status().message())}});
  return nullptr;
}

// Most that memory without a stream gets beyond its size, in place of a block that is split.
constexpr size_t kMostSplinter = size_t{64} << 10;

uint64_t TakenBy(size_t region_bytes) { return uint64_t{region_bytes} + kRegionOverhead; }

uint64_t SumOf(const std::vector<std::unique_ptr<MemoryRegion>>& regions) {
  uint64_t bytes = 0;
  for (const auto& region : regions) bytes += region->bytes;
  return bytes;
}

}  // namespace

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  if (this != &other) {
    Release();
    pool_ = other.pool_;
    block_ = std::exchange(other.block_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void DeviceBuffer::Release() {
  data_ = nullptr;
  if (block_ != nullptr) pool_->Return(std::exchange(block_, nullptr));
}

DeviceMemoryPool::DeviceMemoryPool(const AclLibrary& acl, const Options& options)
    : acl_(acl), options_(options), guard_(acl), heap_(LogFor(options)) {}

BlockRequest DeviceMemoryPool::RequestFor(const Allocation& allocation) const {
  // One zone of the guard before the bytes, and one behind them.
  const size_t bytes = allocation.bytes + (options_.guard ? 2 * MemoryGuard::kZoneBytes : 0);
  BlockRequest request;
  request.requested_bytes = allocation.bytes;
  request.least_bytes = RoundUp(bytes + kSlack, kBlockAlignment);
  // New and split blocks have one of few sizes, so they fit later requests of about the same size.
  request.class_bytes = RoundUp(SizeClass(bytes + kSlack), kBlockAlignment);
  // Splitting for less than an eighth would leave splinters too small for any request.
  request.most_bytes = std::max(request.class_bytes, bytes + bytes / 8 + kBlockAlignment);
  request.stream = allocation.stream;
  // What stays is what a device is full of, and takes as much as it needs.
  if (request.stream == nullptr) {
    request.class_bytes = request.least_bytes;
    request.most_bytes = request.least_bytes + std::min(bytes / 8, kMostSplinter);
  }
  // Otherwise all blocks count as one tenant's, so that neighbours always merge.
  if (options_.scrub == Scrub::kCrossTenant) request.tenant = allocation.tenant;
  return request;
}

absl::StatusOr<DeviceBuffer> DeviceMemoryPool::Allocate(const Allocation& allocation,
                                                        Outcome* outcome) {
  if (allocation.bytes == 0) return DeviceBuffer();
  if (allocation.bytes > kLargestRequest) return NeverFits(allocation.bytes, options_.max_bytes);
  Attempt attempt{*this, allocation, RequestFor(allocation)};
  // A region of its own would need the overhead as well.
  if (attempt.request.least_bytes + kRegionOverhead > options_.max_bytes) {
    return NeverFits(allocation.bytes, options_.max_bytes);
  }

  absl::StatusOr<Lease> lease = Lease();
  // The common case: one lock, and no call to the device.
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
  // The caller has a thread that may wait, and tries again there.
  if (lease.block == nullptr) return std::nullopt;
  absl::StatusOr<DeviceBuffer> buffer = ToBuffer(lease, allocation, outcome);
  if (!buffer.ok()) return std::nullopt;
  return *std::move(buffer);
}

absl::StatusOr<DeviceBuffer> DeviceMemoryPool::ToBuffer(const Lease& lease,
                                                        const Allocation& allocation,
                                                        Outcome* outcome) {
  if (options_.guard) {
    guard_.NoteContext();
    guard_.BeginUse(*lease.block);
  }
  // Owned before the scrub, so that an error gives the block back.
  DeviceBuffer buffer(this, lease.block, DataOf(*lease.block), allocation.bytes);
  if (lease.must_scrub) OPSERVE_RETURN_IF_ERROR(Overwrite(lease.block, allocation.stream));
  if (outcome != nullptr) *outcome = lease.outcome;
  return buffer;
}

DeviceMemoryPool::Lease DeviceMemoryPool::TakeFree(Attempt& attempt) {
  attempt.seen_changes = changes_;
  // No other stream could have retired blocks now, so taking them overtakes no waiter.
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
  heap_.SetTenant(&block, is_strange && !lease.must_scrub ? kUnknownTenant : tenant);
  block.owner = attempt.allocation.tenant;
  block.lent_ns = absl::GetCurrentTimeNanos();
  counters_.allocations[outcome].fetch_add(1, std::memory_order_relaxed);
  Publish();
  return lease;
}

absl::Status DeviceMemoryPool::Overwrite(MemoryBlock* block, aclrtStream stream) {
  // With the guard only the user's bytes: the zones around them have its pattern.
  const size_t bytes = options_.guard ? block->requested_bytes : block->bytes;
  const int code = acl_.aclrtMemsetAsync(DataOf(*block), bytes, 0, bytes, stream);
  if (code == ACL_SUCCESS) {
    counters_.scrubbed_bytes_total.fetch_add(bytes, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  absl::Status status = AclCallStatus(acl_, "aclrtMemsetAsync", code);
  absl::MutexLock lock(&mutex_);
  // The block has another tenant's bytes still; an unknown tenant makes the next user scrub them.
  heap_.SetTenant(block, kUnknownTenant);
  return status;
}

bool DeviceMemoryPool::CheckLent(const MemoryBlock* block) const {
  absl::MutexLock lock(&mutex_);
  if (heap_.IsLent(block)) return !block->region->is_forgotten;
  AbortForDamage("a buffer was given back twice, or to another pool than its own");
}

void DeviceMemoryPool::Return(MemoryBlock* block) {
  // Still lent, so nobody else can touch the memory while the guard checks and poisons it.
  if (options_.guard && CheckLent(block)) guard_.EndUse(block);
  absl::MutexLock lock(&mutex_);
  heap_.Return(block);
  ++changes_;
  Publish();
}

void DeviceMemoryPool::LeaveStream(const DeviceBuffer& buffer) {
  if (buffer.block_ == nullptr) return;
  if (options_.guard) CheckLent(buffer.block_);
  absl::MutexLock lock(&mutex_);
  heap_.LeaveStream(buffer.block_);
}

void DeviceMemoryPool::JoinStream(const DeviceBuffer& buffer, aclrtStream stream) {
  if (buffer.block_ == nullptr) return;
  if (options_.guard) CheckLent(buffer.block_);
  absl::MutexLock lock(&mutex_);
  heap_.JoinStream(buffer.block_, stream);
}

void DeviceMemoryPool::StreamIsIdle(aclrtStream stream, DeviceBuffer last) {
  MemoryBlock* const block = std::exchange(last.block_, nullptr);
  if (block != nullptr && options_.guard && CheckLent(block)) guard_.EndUse(block);
  absl::MutexLock lock(&mutex_);
  // Before the stream counts as idle, so that this block serves any stream, too.
  if (block != nullptr) heap_.Return(block, /*is_idle=*/block->stream == stream);
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
  // Room under the limit comes back at once, though lent buffers are still around.
  for (const auto& region : heap_.regions()) taken_bytes_ -= region->bytes + kRegionOverhead;
  heap_.Forget();
  ++changes_;
  Publish();
}

// Stores suffice: with mutex_ held no other thread writes these.
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
  publish(counters_.merges_total, heap_.merges());
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
  statistics.merges_total = counters_.merges_total;
  statistics.trims_total = counters_.trims_total;
  statistics.waits_total = counters_.waits_total;
  statistics.wait_time_total = absl::Nanoseconds(counters_.wait_ns_total.load());
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
  // The walk over all blocks holds the lock, so regions and sums are of one moment.
  for (const auto& region : heap_.regions()) {
    Snapshot::Region& copy = snapshot.regions.emplace_back();
    copy.bytes = region->bytes;
    for (const MemoryBlock* block = region->first; block != nullptr; block = block->next) {
      const auto offset = static_cast<uint64_t>(block->data - region->first->data);
      Snapshot::Block& one = copy.blocks.emplace_back();
      one.offset = offset;
      one.bytes = block->bytes;
      one.state = state_of(*block);
      one.requested_bytes = block->requested_bytes;
      one.stream = heap_.NumberOf(block->stream);
      // `tenant` is for scrubbing and outlives the loan; of a lent block the present user is told.
      if (block->tenant != kUnknownTenant) one.owner = block->tenant;
      if (one.state != State::kAllocated) continue;
      one.owner = block->owner;
      one.lent = absl::FromUnixNanos(block->lent_ns);
    }
  }
  snapshot.statistics = statistics();
  return snapshot;
}

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
  // A whole region if it fits, else memory for this request alone, else the same after idle regions
  // were given back.
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
  // The limit is never exceeded, so the difference does not wrap. Growths count from here on, so
  // that two at the same time stay within it together.
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
    // Those in front of it have a better claim to the memory.
    if (!IsFirst(attempt)) return false;
    // Memory that has come back since TakeFree may do: it is looked for at once, and not freed.
    if (attempt.may_wait() && changes_ != attempt.seen_changes) return false;
    const std::vector<MemoryRegion*> regions = heap_.IdleRegions();
    uint64_t taken_after = taken_bytes_;
    for (const MemoryRegion* region : regions) taken_after -= TakenBy(region->bytes);
    // Idle memory that is too little is kept: others would have to fetch it again.
    if (regions.empty() || TakenBy(least) > options_.max_bytes - taken_after) return false;
    idle = TakeOut(regions);
  }
  // Without the lock: some drivers wait for the whole device here.
  Free(idle);
  absl::MutexLock lock(&mutex_);
  BookFreed(idle);
  // The change is the attempt's own and no reason to try again.
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
  // Several growths may be in this call at the same time, and it may take long.
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
    // The first call that finds a region idle starts its time.
    for (MemoryRegion* region : idle) region->idle_since = std::min(region->idle_since, now);
    std::sort(idle.begin(), idle.end(), [](const MemoryRegion* a, const MemoryRegion* b) {
      return a->idle_since < b->idle_since;
    });
    uint64_t reserved = heap_.bytes().reserved;
    auto kept = idle.begin();
    // The oldest go first, and only as many as bring the pool down to the floor.
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

bool DeviceMemoryPool::Attempt::IsDue() const {
  pool.mutex_.AssertReaderHeld();  // as of every condition that others wait for
  return pool.IsDue(*this);
}

bool DeviceMemoryPool::IsDue(const Attempt& attempt) const {
  // A cancelled one leaves wherever it is in the queue; only the first one may take memory.
  return attempt.is_cancelled() || (IsFirst(attempt) && changes_ != attempt.seen_changes);
}

absl::StatusOr<DeviceMemoryPool::Lease> DeviceMemoryPool::AllocateSlowly(Attempt& attempt) {
  while (true) {
    // A round: memory from the device, then memory that can be done without, then a wait for a
    // change, then free memory. Rounds end with a block, a refusal or the device's error.
    absl::StatusOr<Lease> lease = Grow(attempt);
    if (absl::IsResourceExhausted(lease.status()) && give_back_ != nullptr && give_back_()) {
      lease = TakeFreeOrGrow(attempt);
    }
    absl::MutexLock lock(&mutex_);
    if (absl::IsResourceExhausted(lease.status())) {
      const absl::Status verdict =
          // One that may not wait still looks once more, since memory may have come back during the
          // growth.
          attempt.may_wait() ? Wait(attempt, lease.status()) : absl::OkStatus();
      if (!verdict.ok()) {
        lease = verdict;
      } else if (const Lease taken = TakeFree(attempt); taken.block != nullptr) {
        lease = taken;
      } else if (attempt.may_wait()) {
        // Another attempt was faster, or only part of the memory has come back.
        continue;
      }
    }
    LeaveQueue(attempt);
    return lease;
  }
}

absl::StatusOr<DeviceMemoryPool::Lease> DeviceMemoryPool::TakeFreeOrGrow(Attempt& attempt) {
  {
    absl::MutexLock lock(&mutex_);
    if (const Lease taken = TakeFree(attempt); taken.block != nullptr) return taken;
  }
  return Grow(attempt);
}

absl::Status DeviceMemoryPool::Wait(Attempt& attempt, const absl::Status& refusal) {
  // Looked at even if there is no need to wait: changes may follow each other past any deadline.
  const absl::Time until = attempt.allocation.wait_until;
  if (absl::Now() >= until) return refusal;
  if (!IsDue(attempt)) {
    // A wait that nothing can end would last until the deadline, and keep a lane that long.
    if (!CanComeBack(attempt)) return refusal;
    JoinQueue(attempt);
    const absl::Time start = absl::Now();
    const bool is_due = mutex_.AwaitWithDeadline(absl::Condition(&attempt, &Attempt::IsDue), until);
    counters_.wait_ns_total.fetch_add(absl::ToInt64Nanoseconds(absl::Now() - start),
                                      std::memory_order_relaxed);
    if (!is_due) return refusal;
  }
  if (!attempt.is_cancelled()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("cancelled while waiting for ", attempt.allocation.bytes,
                                           " bytes of device memory"));
}

void DeviceMemoryPool::JoinQueue(Attempt& attempt) {
  if (attempt.is_queued) return;
  waiters_.push_back(&attempt);
  counters_.waits_total.fetch_add(1, std::memory_order_relaxed);
  attempt.is_queued = true;
  counters_.waiting.store(waiters_.size(), std::memory_order_relaxed);
  // The first one may have counted on this one's stream.
  ++changes_;
  ++attempt.seen_changes;
}

void DeviceMemoryPool::LeaveQueue(Attempt& attempt) {
  if (!attempt.is_queued) return;
  waiters_.remove(&attempt);
  attempt.is_queued = false;
  counters_.waiting.store(waiters_.size(), std::memory_order_relaxed);
}

bool DeviceMemoryPool::CanComeBack(const Attempt& attempt) const {
  // A growth that fails, or a region that is freed, makes room under the limit.
  if (device_calls_ > 0) return true;
  const auto waits = [this](aclrtStream stream) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return std::any_of(waiters_.begin(), waiters_.end(), [stream](const Attempt* waiter) {
      return waiter->allocation.stream == stream;
    });
  };
  // A stream releases memory only by the thread that uses it: not this one, nor one that waits
  // here.
  return heap_.AnyStream([&](aclrtStream stream) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stream != attempt.allocation.stream && !waits(stream);
  });
}

void DeviceMemoryPool::WakeWaiters() {
  // Waiters check their conditions when the lock is released.
  absl::MutexLock lock(&mutex_);
}

}  // namespace opserve::server
