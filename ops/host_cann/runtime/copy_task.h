// Copies and fills as work on a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/task.h"

namespace opserve::host_cann {

// `height` rows of `width` bytes with their starts a pitch apart.
struct Copy {
  void* dst = nullptr;
  const void* src = nullptr;
  size_t dst_pitch = 0;
  size_t src_pitch = 0;
  size_t width = 0;
  size_t height = 0;
  bool to_device = false;       // dst is device memory
  bool from_device = false;     // src is
  bool host_is_pinned = false;  // the copy may run after the call, on page-locked memory

  static Copy Bytes(void* dst, const void* src, size_t count) {
    return {dst, src, count, count, count, 1};
  }
  // Bytes from the first row's start to the last row's end. Not for empty copies.
  size_t Span(size_t pitch) const { return pitch * (height - 1) + width; }
};

// Copies on the calling thread, holding the memory it touches. 507013: in checked mode, memory that
// is not live device memory, or not page-locked, any more; nothing is copied. As slow as a fault
// wants it. `is_held`: the caller has checked both sides and holds their blocks, which are not
// looked up again then.
TaskResult CopyChecked(Device& device, const Copy& copy, bool is_held);

std::unique_ptr<Task> MakeCopyTask(const Copy& copy);
// Takes the source's bytes at once. One row only.
std::unique_ptr<Task> MakeBufferedCopyTask(const Copy& copy);

// Sets `bytes` bytes to the four bytes of `word`, again and again.
void Fill(void* address, uint32_t word, size_t bytes);
std::unique_ptr<Task> MakeFillTask(void* address, uint32_t word, size_t bytes);
// The word of four equal bytes, as memset takes one.
inline uint32_t RepeatByte(int32_t value) { return 0x01010101u * static_cast<uint8_t>(value); }

}  // namespace opserve::host_cann
