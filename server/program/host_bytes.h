// Bytes of the heap that objects of the execution have, apart from their own size.
//
// Capacities, not sizes: a tenant's limit is for memory that is taken. Each piece of the heap is a
// little larger than asked for, by the allocator's own entry and rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "server/program/memory_plan.h"
#include "server/program/program.h"

namespace opserve::server {

// One piece of the heap of so many bytes, with what malloc adds to it; none for 0 bytes.
constexpr uint64_t HeapPiece(uint64_t bytes) { return bytes == 0 ? 0 : (bytes + 8 + 15) / 16 * 16; }

template <typename T>
uint64_t HeapBytes(const std::vector<T>& container) {
  return HeapPiece(container.capacity() * sizeof(T));
}
template <typename T, size_t N>
uint64_t HeapBytes(const absl::InlinedVector<T, N>& container) {
  // Up to N elements lie in the object itself; likewise short texts below.
  return container.capacity() > N ? HeapPiece(container.capacity() * sizeof(T)) : 0;
}
inline uint64_t HeapBytes(const std::string& text) {
  return text.capacity() > std::string().capacity() ? HeapPiece(text.capacity() + 1) : 0;
}

uint64_t HeapBytes(const BoundInvocation& invocation);
uint64_t HeapBytes(const MemoryPlan& plan);

}  // namespace opserve::server
