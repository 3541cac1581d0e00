#include "ops/host_cann/runtime/memory_block.h"

#include <sys/mman.h>

#include <cstdlib>

namespace opserve::host_cann {
namespace {

// Of aclrtMalloc's addresses, by the vendor's document.
constexpr size_t kAlignment = 64;
constexpr size_t kMapFrom = size_t{1} << 20;  // smaller blocks come from the heap

}  // namespace

std::unique_ptr<SystemMemory> SystemMemory::AllocatePages(size_t bytes) {
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  return std::unique_ptr<SystemMemory>(new SystemMemory(address, bytes, /*mapped=*/true));
}

std::unique_ptr<SystemMemory> SystemMemory::Allocate(size_t bytes, bool huge) {
  if (bytes >= kMapFrom) {
    std::unique_ptr<SystemMemory> memory = AllocatePages(bytes);
    // Advice only: without huge pages the block works as well.
    if (memory != nullptr && huge) madvise(memory->address(), bytes, MADV_HUGEPAGE);
    return memory;
  }
  // aligned_alloc takes multiples of the alignment only.
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const address = std::aligned_alloc(kAlignment, rounded);
  if (address == nullptr) return nullptr;
  return std::unique_ptr<SystemMemory>(new SystemMemory(address, bytes, /*mapped=*/false));
}

SystemMemory::~SystemMemory() {
  // By the way it came: small blocks are the heap's.
  if (mapped_) {
    munmap(address_, bytes_);
  } else {
    std::free(address_);
  }
}

}  // namespace opserve::host_cann
