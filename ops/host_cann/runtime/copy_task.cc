#include "ops/host_cann/runtime/copy_task.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/stream.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// How long the fault on copies makes these bytes take.
Clock::duration SlowCopyTime(size_t bytes) {
  // 0: no fault. Read anew each time, as faults may be set while copies are queued.
  const uint64_t bytes_per_second = Faults::Get().bytes_per_second();
  if (bytes_per_second == 0) return {};
  const std::chrono::duration<double> time(static_cast<double>(bytes) /
                                           static_cast<double>(bytes_per_second));
  return std::chrono::duration_cast<Clock::duration>(time);
}

// Memory held while it is used.
struct Held {
  BlockPtr dst;
  BlockPtr src;
};

// Holds one side of a copy. False: its memory is not as it was when the copy was asked for.
bool HoldSide(const Device& device, const void* address, size_t bytes, bool is_device,
              bool is_pinned, BlockPtr* held) {
  if (is_device) {
    *held = FindDeviceMemory(device, address, bytes);
    return *held != nullptr;
  }
  MemoryTable& memory = Runtime::Get().memory();
  *held = memory.FindOwned(address);
  // Host memory that is not page-locked stays the caller's for the whole call, which waits for the
  // copy.
  if (!is_pinned || (*held != nullptr && (*held)->pinned && (*held)->Contains(address, bytes))) {
    return true;
  }
  // Registered memory is not held: its pages are the program's own.
  return memory.IsPinned(address, bytes);
}

TaskResult Hold(const Device& device, const Copy& copy, Held* held) {
  // Without checks the copy trusts its addresses, as a device does.
  if (!Runtime::Get().settings().checked) return {};
  const auto gone = [](std::string_view side) {
    return TaskResult::Failure(
        ACL_ERROR_RT_SYS_DMA,
        Concat("copy: ", side, " is not live device or page-locked memory any more"));
  };
  if (!HoldSide(device, copy.dst, copy.Span(copy.dst_pitch), copy.to_device, copy.host_is_pinned,
                &held->dst)) {
    return gone("dst");
  }
  if (!HoldSide(device, copy.src, copy.Span(copy.src_pitch), copy.from_device, copy.host_is_pinned,
                &held->src)) {
    return gone("src");
  }
  return {};
}

// Copies of at least two of these are shared by the device's cores, as its kernels are: one core
// moves less than memory can.
constexpr size_t kPartBytes = 512 << 10;

// Between memory that does not overlap.
void CopyInParts(CorePool& cores, void* dst, const void* src, size_t bytes) {
  struct Parts {
    char* dst;
    const char* src;
    size_t bytes;
  } parts = {static_cast<char*>(dst), static_cast<const char*>(src), bytes};
  cores.Run(
      static_cast<int64_t>((bytes + kPartBytes - 1) / kPartBytes),
      [](void* context, int64_t index) {
        const auto& all = *static_cast<const Parts*>(context);
        const size_t start = static_cast<size_t>(index) * kPartBytes;
        std::memcpy(all.dst + start, all.src + start, std::min(kPartBytes, all.bytes - start));
      },
      &parts);
}

// Such copies are allowed on the host; parts would read bytes that other parts have written.
bool Overlap(const void* a, const void* b, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return first < second + bytes && second < first + bytes;
}

void CopyRows(CorePool& cores, const Copy& copy) {
  // Same place, same pitches: every row is where it belongs.
  if (copy.dst == copy.src && copy.dst_pitch == copy.src_pitch) return;
  // Rows stay on one core: most are shorter than a part.
  if (copy.height == 1 && copy.width >= 2 * kPartBytes &&
      !Overlap(copy.dst, copy.src, copy.width)) {
    CopyInParts(cores, copy.dst, copy.src, copy.width);
    return;
  }
  for (size_t row = 0; row < copy.height; ++row) {
    std::memmove(static_cast<char*>(copy.dst) + row * copy.dst_pitch,
                 static_cast<const char*>(copy.src) + row * copy.src_pitch, copy.width);
  }
}

// Waits as a task does: an abort ends it, a forced reset does not make it wait.
TaskResult WaitSlowly(Stream& stream, Clock::duration time) {
  if (time == Clock::duration::zero()) return {};
  const auto waited =
      stream.WaitInTask(Clock::now() + time, [](bool releasing) { return releasing; });
  return waited == Stream::Waited::kCancelled ? TaskResult::Cancelled() : TaskResult();
}

class CopyTask final : public Task {
 public:
  explicit CopyTask(const Copy& copy) : copy_(copy) {}

  TaskResult Run(Stream& stream) override {
    TaskResult slow = WaitSlowly(stream, SlowCopyTime(copy_.width * copy_.height));
    // Cancelled, or the device was lost while the fault held the copy back.
    if (slow.code != ACL_SUCCESS) return slow;
    // Held until the copy is done: memory that is freed meanwhile goes back to the system after it.
    Held held;
    TaskResult result = Hold(stream.device(), copy_, &held);
    if (result.code == ACL_SUCCESS) CopyRows(stream.device().cores(), copy_);
    return result;
  }
  const char* name() const override { return "copy"; }
  std::vector<MemoryRange> memory() const override {
    std::vector<MemoryRange> ranges;
    // Pageable host memory is left out: no capture takes such a copy.
    if (copy_.to_device || copy_.host_is_pinned) {
      ranges.push_back({copy_.dst, copy_.Span(copy_.dst_pitch), "dst"});
    }
    if (copy_.from_device || copy_.host_is_pinned) {
      ranges.push_back({copy_.src, copy_.Span(copy_.src_pitch), "src"});
    }
    return ranges;
  }
  // Through work(), which is large while a fault slows copies.
  bool is_prompt() const override { return work() <= kPromptBytes; }
  uint64_t work() const override {
    return Faults::Get().bytes_per_second() == 0 ? copy_.width * copy_.height : UINT64_MAX;
  }

 private:
  const Copy copy_;
};

class BufferedCopyTask final : public Task {
 public:
  // `buffer_` is declared before `task_`, which copies from it.
  explicit BufferedCopyTask(const Copy& copy)
      : buffer_(static_cast<const char*>(copy.src),
                static_cast<const char*>(copy.src) + copy.width),
        task_(FromBuffer(copy)) {}

  TaskResult Run(Stream& stream) override { return task_.Run(stream); }
  const char* name() const override { return "copy"; }
  std::vector<MemoryRange> memory() const override { return task_.memory(); }

 private:
  Copy FromBuffer(Copy copy) const {
    copy.src = buffer_.data();
    return copy;
  }

  const std::vector<char> buffer_;
  CopyTask task_;
};

class FillTask final : public Task {
 public:
  FillTask(void* address, uint32_t word, size_t bytes)
      : address_(address), word_(word), bytes_(bytes) {}

  TaskResult Run(Stream& stream) override {
    Runtime& runtime = Runtime::Get();
    // The block is held until it has been filled.
    const BlockPtr device_memory = FindDeviceMemory(stream.device(), address_, bytes_);
    const BlockPtr host_memory = runtime.memory().FindOwned(address_);
    if (runtime.settings().checked && device_memory == nullptr &&
        !runtime.memory().IsPinned(address_, bytes_)) {
      return TaskResult::Failure(ACL_ERROR_RT_SYS_DMA,
                                 "memset: devPtr is not live memory any more");
    }
    Fill(address_, word_, bytes_);
    return {};
  }
  const char* name() const override { return "memset"; }
  std::vector<MemoryRange> memory() const override { return {{address_, bytes_, "devPtr"}}; }

 private:
  void* const address_;
  const uint32_t word_;
  const size_t bytes_;
};

}  // namespace

TaskResult CopyChecked(Device& device, const Copy& copy, bool is_held) {
  // The time of a slow copy includes that of the real one.
  const Clock::time_point not_before = Clock::now() + SlowCopyTime(copy.width * copy.height);
  Held held;
  TaskResult result = is_held ? TaskResult() : Hold(device, copy, &held);
  if (result.code != ACL_SUCCESS) return result;
  CopyRows(device.cores(), copy);
  // A condition that nothing signals: a sleep that keeps to the clock which the faults use.
  Mutex mutex;
  CondVar never;
  MutexLock lock(mutex);
  while (Clock::now() < not_before) never.Wait(mutex, not_before);
  return result;
}

std::unique_ptr<Task> MakeCopyTask(const Copy& copy) { return std::make_unique<CopyTask>(copy); }

std::unique_ptr<Task> MakeBufferedCopyTask(const Copy& copy) {
  return std::make_unique<BufferedCopyTask>(copy);
}

void Fill(void* address, uint32_t word, size_t bytes) {
  // Equal bytes: memset is faster by far.
  if (word == RepeatByte(static_cast<int32_t>(word))) {
    std::memset(address, static_cast<int>(word & 0xFF), bytes);
    return;
  }
  auto* const start = static_cast<char*>(address);
  // A rest shorter than a word takes the word's first bytes.
  for (size_t done = 0; done < bytes; done += sizeof(word)) {
    std::memcpy(start + done, &word, std::min(sizeof(word), bytes - done));
  }
}

std::unique_ptr<Task> MakeFillTask(void* address, uint32_t word, size_t bytes) {
  return std::make_unique<FillTask>(address, word, bytes);
}

}  // namespace opserve::host_cann
