// Memory that the runtime knows: its own allocations, and host memory registered with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "acl/acl.h"

namespace opserve::host_cann {

// A stretch of bytes of the process, obtained from the system. Move it nowhere; free with the
// destructor.
class SystemMemory {
 public:
  // At least 64-byte aligned. Large blocks ask the system for huge pages if `huge`. Null: the
  // system has no more.
  static std::unique_ptr<SystemMemory> Allocate(size_t bytes, bool huge);
  // In pages of its own.
  static std::unique_ptr<SystemMemory> AllocatePages(size_t bytes);
  ~SystemMemory();
  SystemMemory(const SystemMemory&) = delete;
  SystemMemory& operator=(const SystemMemory&) = delete;

  void* address() const { return address_; }

 private:
  SystemMemory(void* address, size_t bytes, bool mapped)
      : address_(address), bytes_(bytes), mapped_(mapped) {}

  void* const address_;
  const size_t bytes_;
  const bool mapped_;
};

// Immutable once built. A task that runs on a block holds it, so that memory freed meanwhile goes
// back to the system only after the task.
struct MemoryBlock {
  enum class Kind { kDevice, kPinned, kRegistered };

  Kind kind = Kind::kDevice;
  int32_t device = 0;  // of kPinned: the current device when it was allocated
  uintptr_t start = 0;
  size_t bytes = 0;                      // as asked for; copies and kernels may touch these
  size_t charged_bytes = 0;              // taken from the device's capacity
  bool mapped = false;                   // kRegistered: usable by the device's kernels
  bool pinned = false;                   // host memory for asynchronous copies
  std::unique_ptr<SystemMemory> memory;  // null for kRegistered

  uintptr_t end() const { return start + bytes; }
  // Whether `bytes` bytes from `address` on lie inside.
  bool Contains(const void* address, size_t num_bytes) const {
    const auto first = reinterpret_cast<uintptr_t>(address);
    return first >= start && first <= end() && num_bytes <= end() - first;
  }
};

}  // namespace opserve::host_cann
