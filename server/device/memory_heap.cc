#include "server/device/memory_heap.h"

#include <utility>

#include "server/device/size_class.h"

namespace opserve::server {
namespace {

using State = MemoryBlock::State;

// Streams that hold nothing are forgotten only when there are more than this, since most use memory
// again soon.
constexpr size_t kIdleStreamsKept = 64;

bool MayMerge(const MemoryBlock& block, const MemoryBlock* neighbour) {
  return neighbour != nullptr && neighbour->state == block.state &&
         neighbour->tenant == block.tenant &&
         (block.state == State::kIdle || neighbour->stream == block.stream);
}

}  // namespace

MemoryHeap::Lent MemoryHeap::AddRegion(void* allocation, size_t bytes,
                                       const BlockRequest& request) {
  auto region = std::make_unique<MemoryRegion>();
  region->allocation = allocation;
  region->bytes = bytes;
  region->idle_bytes = bytes;
  region->index = regions_.size();
  MemoryBlock* const block = NewBlock();
  block->region = region.get();
  block->data =
      reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(allocation), kBlockAlignment));
  block->bytes = bytes;
  region->first = block;
  regions_.push_back(std::move(region));
  bytes_.reserved += bytes;
  bytes_.idle += bytes;
  return Lend(block, request);
}

MemoryHeap::Lent MemoryHeap::TakeRetired(const BlockRequest& request) {
  auto found = streams_.find(request.stream);
  if (found == streams_.end()) return {};
  MemoryBlock* const block = found->second.retired.Take(request);
  return block == nullptr ? Lent{} : Lend(block, request);
}

MemoryHeap::Lent MemoryHeap::TakeIdle(const BlockRequest& request) {
  MemoryBlock* const block = idle_.Take(request);
  return block == nullptr ? Lent{} : Lend(block, request);
}

MemoryHeap::Lent MemoryHeap::TakeMerged(const BlockRequest& request) {
  MemoryBlock* best = nullptr;
  size_t best_bytes = SIZE_MAX;
  for (const auto& region : regions_) {
    if (region->idle_bytes < request.least_bytes) continue;
    for (MemoryBlock* block = region->first; block != nullptr; block = block->next) {
      MemoryBlock* const start = block;
      size_t run_bytes = 0;
      while (block->state == State::kIdle) {
        run_bytes += block->bytes;
        if (block->next == nullptr) break;
        block = block->next;
      }
      if (run_bytes >= request.least_bytes && run_bytes < best_bytes) {
        best = start;
        best_bytes = run_bytes;
      }
    }
  }
  if (best == nullptr) return {};

  // Merges as few blocks as possible: a separate block need not be scrubbed for its own tenant.
  idle_.Erase(best);
  while (best->bytes < request.least_bytes) {
    idle_.Erase(best->next);
    Absorb(best);
  }
  return Lend(best, request);
}

MemoryHeap::Lent MemoryHeap::Lend(MemoryBlock* block, const BlockRequest& request) {
  Lent lent{block, block->stream, block->bytes > request.most_bytes};
  if (lent.is_split) SplitOff(block, request.class_bytes);
  if (block->state == State::kIdle) {
    block->region->idle_bytes -= block->bytes;
    bytes_.idle -= block->bytes;
  } else {
    bytes_.retired -= block->bytes;
  }
  block->state = State::kAllocated;
  block->stream = request.stream;
  block->requested_bytes = request.requested_bytes;
  ++block->region->allocated_blocks;
  block->region->idle_since = absl::InfiniteFuture();
  bytes_.allocated += block->bytes;
  bytes_.requested += request.requested_bytes;
  if (request.stream != nullptr) ++MemoryOf(request.stream).lent_blocks;
  return lent;
}

void MemoryHeap::SplitOff(MemoryBlock* block, size_t bytes) {
  MemoryBlock* const rest = NewBlock();
  *rest = *block;
  rest->data += bytes;
  rest->bytes -= bytes;
  rest->previous = block;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->bytes = bytes;
  block->next = rest;
  ListOf(*rest).Insert(rest);
}

void MemoryHeap::Return(MemoryBlock* block) {
  MemoryRegion* const region = block->region;
  --region->allocated_blocks;
  if (region->is_forgotten) {
    if (region->allocated_blocks == 0) Detach(region, &forgotten_);
    return;
  }
  bytes_.allocated -= block->bytes;
  bytes_.requested -= block->requested_bytes;
  block->requested_bytes = 0;
  if (block->stream == nullptr) {
    AddIdle(block);
    return;
  }
  --streams_.find(block->stream)->second.lent_blocks;
  bytes_.retired += block->bytes;
  AddFree(block, State::kRetired);
}

void MemoryHeap::LeaveStream(MemoryBlock* block) {
  if (block->stream == nullptr || block->region->is_forgotten) return;
  --streams_.find(block->stream)->second.lent_blocks;
  block->stream = nullptr;
}

void MemoryHeap::StreamIsIdle(aclrtStream stream) {
  auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  while (MemoryBlock* block = found->second.retired.TakeAny()) {
    bytes_.retired -= block->bytes;
    AddIdle(block);
  }
}

void MemoryHeap::StreamWasAborted(aclrtStream stream) {
  auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.retired.Clear();
  for (const auto& region : regions_) {
    for (MemoryBlock* block = region->first; block != nullptr; block = block->next) {
      if (block->stream != stream || block->state == State::kIdle) continue;
      block->tenant = kUnknownTenant;
      if (block->state == State::kRetired) found->second.retired.Insert(block);
    }
  }
  StreamIsIdle(stream);
}

void MemoryHeap::AddIdle(MemoryBlock* block) {
  bytes_.idle += block->bytes;
  block->region->idle_bytes += block->bytes;
  AddFree(block, State::kIdle);
}

void MemoryHeap::AddFree(MemoryBlock* block, State state) {
  block->state = state;
  if (MayMerge(*block, block->next)) {
    ListOf(*block).Erase(block->next);
    Absorb(block);
  }
  if (MayMerge(*block, block->previous)) {
    block = block->previous;
    ListOf(*block).Erase(block);
    Absorb(block);
  }
  ListOf(*block).Insert(block);
}

FreeBlocks& MemoryHeap::ListOf(const MemoryBlock& block) {
  return block.state == State::kIdle ? idle_ : MemoryOf(block.stream).retired;
}

void MemoryHeap::Absorb(MemoryBlock* block) {
  MemoryBlock* const next = block->next;
  block->bytes += next->bytes;
  block->next = next->next;
  if (block->next != nullptr) block->next->previous = block;
  if (block->stream != next->stream) block->stream = nullptr;
  if (block->tenant != next->tenant) block->tenant = kUnknownTenant;
  Recycle(next);
}

MemoryHeap::StreamMemory& MemoryHeap::MemoryOf(aclrtStream stream) {
  auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  if (streams_.size() >= kIdleStreamsKept) {
    absl::erase_if(streams_, [](const auto& entry) { return entry.second.is_empty(); });
  }
  return streams_[stream];
}

bool MemoryHeap::AnyStream(absl::FunctionRef<bool(aclrtStream)> counts) const {
  for (const auto& [stream, memory] : streams_) {
    if (!memory.is_empty() && counts(stream)) return true;
  }
  return false;
}

std::vector<MemoryRegion*> MemoryHeap::IdleRegions() const {
  std::vector<MemoryRegion*> idle;
  for (const auto& region : regions_) {
    if (region->is_idle()) idle.push_back(region.get());
  }
  return idle;
}

std::unique_ptr<MemoryRegion> MemoryHeap::Remove(MemoryRegion* region) {
  for (MemoryBlock* block = region->first; block != nullptr; block = block->next) {
    idle_.Erase(block);
  }
  bytes_.idle -= region->bytes;
  bytes_.reserved -= region->bytes;
  return Detach(region, &regions_);
}

void MemoryHeap::Forget() {
  idle_.Clear();
  streams_.clear();
  bytes_ = {};
  while (!regions_.empty()) {
    MemoryRegion* const region = regions_.back().get();
    if (region->allocated_blocks == 0) {
      Detach(region, &regions_);
    } else {
      region->is_forgotten = true;
      region->index = forgotten_.size();
      forgotten_.push_back(std::move(regions_.back()));
      regions_.pop_back();
    }
  }
}

std::unique_ptr<MemoryRegion> MemoryHeap::Detach(
    MemoryRegion* region, std::vector<std::unique_ptr<MemoryRegion>>* owner) {
  RecycleBlocks(region);
  const size_t index = region->index;
  std::swap((*owner)[index], owner->back());
  (*owner)[index]->index = index;
  std::unique_ptr<MemoryRegion> detached = std::move(owner->back());
  owner->pop_back();
  if (regions_.empty() && forgotten_.empty()) {
    blocks_.clear();
    spare_ = nullptr;
  }
  return detached;
}

MemoryBlock* MemoryHeap::NewBlock() {
  if (spare_ == nullptr) return &blocks_.emplace_back();
  MemoryBlock* const block = std::exchange(spare_, spare_->next);
  *block = MemoryBlock();
  return block;
}

void MemoryHeap::RecycleBlocks(MemoryRegion* region) {
  for (MemoryBlock* block = region->first; block != nullptr;) {
    MemoryBlock* const next = block->next;
    Recycle(block);
    block = next;
  }
  region->first = nullptr;
}

void MemoryHeap::Recycle(MemoryBlock* block) { block->next = std::exchange(spare_, block); }

}  // namespace opserve::server
