#include "server/device/memory/free_blocks.h"

#include <iterator>

namespace opserve::server {
namespace {

// How many of the best-fitting blocks are looked at for one that spares a scrub.
constexpr int kCandidates = 4;

}  // namespace

FreeBlocks::Entries::iterator FreeBlocks::Choose(const BlockRequest& request) {
  // Most requests repeat earlier ones: a block of that very class, by the same tenant.
  auto usual = entries_.lower_bound({request.class_bytes, request.tenant, nullptr, nullptr});
  if (usual != entries_.end() && usual->bytes == request.class_bytes &&
      usual->tenant == request.tenant) {
    return usual;
  }
  auto candidate = entries_.lower_bound({request.least_bytes, 0, nullptr, nullptr});
  auto chosen = candidate;
  for (int i = 0; i < kCandidates && candidate != entries_.end(); ++i, ++candidate) {
    if (candidate->tenant == request.tenant) return candidate;
    if (candidate->tenant == kUnknownTenant && chosen->tenant != kUnknownTenant) chosen = candidate;
  }
  // Even if many tenants have blocks of this size, a newcomer takes none of theirs while there is
  // memory that no known tenant has used.
  if (chosen != entries_.end() && chosen->tenant != kUnknownTenant) {
    auto largest = std::prev(entries_.end());
    if (largest->tenant == kUnknownTenant) chosen = largest;
  }
  return chosen;
}

MemoryBlock* FreeBlocks::Take(const BlockRequest& request) {
  // As those of a stream are that waits for each of its runs.
  if (entries_.empty()) return nullptr;
  auto chosen = Choose(request);
  if (chosen == entries_.end()) return nullptr;
  MemoryBlock* const block = chosen->block;
  entries_.erase(chosen);
  return block;
}

MemoryBlock* FreeBlocks::TakeAny() {
  if (entries_.empty()) return nullptr;
  MemoryBlock* const block = entries_.begin()->block;
  entries_.erase(entries_.begin());
  return block;
}

}  // namespace opserve::server
