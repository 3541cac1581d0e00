#include "server/device/memory/memory_heap.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/device/memory/size_class.h"

namespace opserve::server {
namespace {

using State = MemoryBlock::State;

// Streams that hold nothing are forgotten only when there are more than this, since most use memory
// again soon.
constexpr size_t kIdleStreamsKept = 64;

bool MayMerge(const MemoryBlock& block, const MemoryBlock* neighbour) {
  // Retired blocks merge if one stream may have both. Idle ones are for all streams.
  return neighbour != nullptr && neighbour->state == block.state &&
         neighbour->tenant == block.tenant &&
         (block.state == State::kIdle || neighbour->stream == block.stream);
}

}  // namespace

MemoryHeap::Lent MemoryHeap::AddRegion(void* allocation, size_t bytes, const BlockRequest& request,
                                       bool is_poisoned) {
  auto region = std::make_unique<MemoryRegion>();
  region->allocation = allocation;
  region->bytes = bytes;
  region->idle_bytes = bytes;
  region->index = regions_.size();
  // One idle block, from which Lend splits the request as from any other.
  MemoryBlock* const block = NewBlock();
  block->region = region.get();
  block->data = FirstBlockOf(allocation);
  block->bytes = bytes;
  block->is_poisoned = is_poisoned;
  region->first = block;
  regions_.push_back(std::move(region));
  bytes_.reserved += bytes;
  bytes_.idle += bytes;
  const std::string source =
      log_ == nullptr
          ? ""
          : absl::StrCat("region ", reinterpret_cast<uintptr_t>(allocation), " ", bytes);
  return Lend(block, request, source);
}

char* MemoryHeap::FirstBlockOf(void* allocation) {
  return reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(allocation), kBlockAlignment));
}

MemoryHeap::Lent MemoryHeap::TakeRetired(const BlockRequest& request) {
  auto found = streams_.find(request.stream);
  if (found == streams_.end()) return {};
  MemoryBlock* const block = found->second.retired.Take(request);
  return block == nullptr ? Lent{} : Lend(block, request, "retired");
}

MemoryHeap::Lent MemoryHeap::TakeIdle(const BlockRequest& request) {
  MemoryBlock* const block = idle_.Take(request);
  return block == nullptr ? Lent{} : Lend(block, request, "idle");
}

// Looks at every block, so it comes last: only a request that nothing else fits gets here, and the
// alternative is to ask the device.
MemoryHeap::Lent MemoryHeap::TakeMerged(const BlockRequest& request) {
  MemoryBlock* best = nullptr;
  size_t best_bytes = SIZE_MAX;
  for (const auto& region : regions_) {
    // All its idle memory together is too little.
    if (region->idle_bytes < request.least_bytes) continue;
    for (MemoryBlock* block = region->first; block != nullptr; block = block->next) {
      MemoryBlock* const start = block;
      size_t run_bytes = 0;
      // The run ends at the first block that is not idle, or at the region's end.
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
  return Lend(best, request, "merged");
}

MemoryHeap::Lent MemoryHeap::Lend(MemoryBlock* block, const BlockRequest& request,
                                  absl::string_view source) {
  // The former stream is told before it is overwritten; larger blocks than the request's `most` are
  // split.
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
  block->lending = ++lendings_;
  if (log_ != nullptr) log_->WriteLending(source, request);
  return lent;
}

void MemoryHeap::Log(absl::string_view verb, uint64_t number) {
  if (log_ != nullptr) LogLine(absl::StrCat(verb, " ", number));
}

void MemoryHeap::LogLine(absl::string_view line) {
  // Often enough to find where a replay goes another way.
  constexpr uint64_t kLinesPerSums = 1000;
  log_->Write(line);
  if (++log_lines_ % kLinesPerSums == 0) LogSums();
}

void MemoryHeap::LogSums() {
  if (log_ != nullptr) log_->Write(absl::StrCat("state ", absl::StrJoin(Sums(), " ")));
}

std::vector<uint64_t> MemoryHeap::Sums() const {
  return {bytes_.reserved, bytes_.allocated,      bytes_.requested, bytes_.idle,
          bytes_.retired,  idle_.largest_bytes(), merges_};
}

void MemoryHeap::SetTenant(MemoryBlock* block, uint64_t tenant) {
  if (block->tenant == tenant) return;
  block->tenant = tenant;
  if (log_ != nullptr) LogLine(absl::StrCat("tenant ", block->lending, " ", tenant));
}

bool MemoryHeap::IsLent(const MemoryBlock* block) const {
  for (const auto* regions : {&regions_, &forgotten_}) {
    for (const auto& region : *regions) {
      for (const MemoryBlock* one = region->first; one != nullptr; one = one->next) {
        if (one == block) return block->state == State::kAllocated;
      }
    }
  }
  return false;
}

uint32_t MemoryHeap::NumberOf(aclrtStream stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.number;
}

void MemoryHeap::SplitOff(MemoryBlock* block, size_t bytes) {
  // The rest keeps state, stream and tenant, so it goes back to the list that the block came from.
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

void MemoryHeap::Return(MemoryBlock* block, bool is_idle) {
  // The block may be merged into a neighbour and be gone.
  const uint64_t lending = block->lending;
  ReturnUnlogged(block, is_idle);
  Log("return", lending);
}

void MemoryHeap::ReturnUnlogged(MemoryBlock* block, bool is_idle) {
  // A block of a forgotten region is only counted. Without a stream it is idle at once; else it is
  // retired until its stream is idle.
  MemoryRegion* const region = block->region;
  --region->allocated_blocks;
  // The device was reset. The block only has to be counted, until its region can go.
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
  // There is an entry, as one stays while a block is lent on its stream.
  StreamMemory& memory = streams_.find(block->stream)->second;
  --memory.lent_blocks;
  // Where no retired block could merge with it, it need not be one of them first.
  if (is_idle && memory.retired.empty()) {
    AddIdle(block);
    return;
  }
  bytes_.retired += block->bytes;
  AddFree(block, State::kRetired);
}

void MemoryHeap::LeaveStream(MemoryBlock* block) {
  if (block->stream == nullptr || block->region->is_forgotten) return;
  --streams_.find(block->stream)->second.lent_blocks;
  block->stream = nullptr;
  Log("leave", block->lending);
}

void MemoryHeap::JoinStream(MemoryBlock* block, aclrtStream stream) {
  if (block->stream != nullptr || block->region->is_forgotten) return;
  ++MemoryOf(stream).lent_blocks;
  block->stream = stream;
  if (log_ != nullptr) {
    LogLine(absl::StrCat("join ", block->lending, " ", log_->NumberOf(stream)));
  }
}

void MemoryHeap::StreamIsIdle(aclrtStream stream) {
  MakeIdle(stream);
  if (log_ != nullptr) Log("stream_idle", log_->NumberOf(stream));
}

void MemoryHeap::MakeIdle(aclrtStream stream) {
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
  // Out of the list first: its order depends on the tenant, which changes.
  found->second.retired.Clear();
  for (const auto& region : regions_) {
    for (MemoryBlock* block = region->first; block != nullptr; block = block->next) {
      if (block->stream != stream || block->state == State::kIdle) continue;
      // A scrub may have been dropped with the rest, so nobody knows the bytes. Lent blocks are
      // included: they were used on the stream as well.
      block->tenant = kUnknownTenant;
      if (block->state == State::kRetired) found->second.retired.Insert(block);
    }
  }
  MakeIdle(stream);
  if (log_ != nullptr) Log("aborted", log_->NumberOf(stream));
}

void MemoryHeap::AddIdle(MemoryBlock* block) {
  bytes_.idle += block->bytes;
  block->region->idle_bytes += block->bytes;
  AddFree(block, State::kIdle);
}

void MemoryHeap::AddFree(MemoryBlock* block, State state) {
  block->state = state;
  // First the one behind, then the one in front, so that one block is left for the list.
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
  // A stream or tenant that used only part of it must not pass for the user of all.
  if (block->stream != next->stream) block->stream = nullptr;
  if (block->tenant != next->tenant) block->tenant = kUnknownTenant;
  block->is_poisoned = block->is_poisoned && next->is_poisoned;
  ++merges_;
  Recycle(next);
}

MemoryHeap::StreamMemory& MemoryHeap::MemoryOf(aclrtStream stream) {
  auto found = streams_.find(stream);
  if (found != streams_.end()) return found->second;
  if (streams_.size() >= kIdleStreamsKept) {
    absl::erase_if(streams_, [](const auto& entry) { return entry.second.is_empty(); });
  }
  StreamMemory& memory = streams_[stream];
  memory.number = ++stream_numbers_;
  return memory;
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
  Log("remove", reinterpret_cast<uintptr_t>(region->allocation));
  return Detach(region, &regions_);
}

void MemoryHeap::Forget() {
  idle_.Clear();
  streams_.clear();
  bytes_ = {};
  while (!regions_.empty()) {
    // From the end, which makes each removal a pop.
    MemoryRegion* const region = regions_.back().get();
    if (region->allocated_blocks == 0) {
      Detach(region, &regions_);
    } else {
      // The owners of its lent blocks have pointers to them.
      region->is_forgotten = true;
      region->index = forgotten_.size();
      forgotten_.push_back(std::move(regions_.back()));
      regions_.pop_back();
    }
  }
  if (log_ != nullptr) LogLine("forget");
}

std::unique_ptr<MemoryRegion> MemoryHeap::Detach(
    MemoryRegion* region, std::vector<std::unique_ptr<MemoryRegion>>* owner) {
  RecycleBlocks(region);
  const size_t index = region->index;
  // The order of regions means nothing, so the last one takes the place.
  std::swap((*owner)[index], owner->back());
  (*owner)[index]->index = index;
  std::unique_ptr<MemoryRegion> detached = std::move(owner->back());
  owner->pop_back();
  // Without a region no block is in use, lent or spare, so all of them go at once.
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
