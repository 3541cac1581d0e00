#include "core.h"

#include <algorithm>
#include <cstring>

namespace opserve::ascendc::emulation {
namespace {

// What has not been ordered before a later access yet: who did it, and whom it would meet.
enum Pending : uint8_t {
  kVectorWroteForVector = 1,   // ends at PipeBarrier<PIPE_V>
  kVectorWroteForScalar = 2,   // ends at WaitFlag<V_S>
  kVectorWroteForCopyOut = 4,  // ends at DeQue
  kCopyInWrote = 8,            // ends at DeQue
  kVectorRead = 16,  // a vector instruction may not overwrite it: ends at PipeBarrier<PIPE_V>
  kScalarRead = 32,  // likewise: ends at WaitFlag<S_V>
};

thread_local Core* current_core = nullptr;

size_t RoundUpToBlock(size_t bytes) {
  return (bytes + kLocalAlignment - 1) / kLocalAlignment * kLocalAlignment;
}

}  // namespace

Core& Core::Current() {
  if (current_core == nullptr) throw Violation("an instruction outside of a launch");
  return *current_core;
}

CurrentCore::CurrentCore(Core* core) { current_core = core; }
CurrentCore::~CurrentCore() { current_core = nullptr; }

void Core::Fail(const std::string& message) const {
  throw Violation("core " + std::to_string(block_) + " of " + std::to_string(num_blocks_) + ": " +
                  message);
}

int Core::AddBuffer(size_t bytes) {
  const size_t rounded = RoundUpToBlock(bytes);
  if (bytes == 0) Fail("InitBuffer: 0 bytes");
  if (used_bytes_ + rounded > memory_.size()) {
    Fail("InitBuffer: " + std::to_string(used_bytes_) + " bytes in use and " +
         std::to_string(rounded) + " more exceed the unified buffer of " +
         std::to_string(memory_.size()));
  }
  if (buffers_.size() == kMaxPipeBuffers) Fail("InitBuffer: more than 64 buffers");
  buffers_.push_back({used_bytes_, rounded, LocalBuffer::State::kOwned});
  used_bytes_ += rounded;
  Poison(static_cast<int>(buffers_.size()) - 1);
  return static_cast<int>(buffers_.size()) - 1;
}

void Core::Poison(int index) {
  const LocalBuffer& buffer = buffers_.at(index);
  std::memset(memory_.data() + buffer.offset, 0xFF, buffer.bytes);
  Settle(index);
}

void Core::Settle(int index) {
  const LocalBuffer& buffer = buffers_.at(index);
  std::memset(pending_.data() + buffer.offset / kLocalAlignment, 0, buffer.bytes / kLocalAlignment);
}

void Core::SettleVector() {
  for (uint8_t& pending : pending_)
    pending &= static_cast<uint8_t>(~(kVectorWroteForVector | kVectorRead));
}

void Core::SettleVectorForScalar() {
  for (uint8_t& pending : pending_) pending &= static_cast<uint8_t>(~kVectorWroteForScalar);
}

void Core::SettleScalarForVector() {
  for (uint8_t& pending : pending_) pending &= static_cast<uint8_t>(~kScalarRead);
}

Instruction::Range Instruction::RangeOf(int index, size_t offset, size_t bytes, size_t alignment,
                                        bool writes) const {
  if (index < 0) Fail("a local tensor without memory");
  const LocalBuffer& buffer = core_.buffers_.at(index);
  if (buffer.state == LocalBuffer::State::kFree) Fail("a local tensor that was freed");
  if (buffer.state == LocalBuffer::State::kQueued) Fail("a local tensor that is in a queue");
  if (offset + bytes > buffer.bytes) {
    Fail("bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
         " of a local buffer of " + std::to_string(buffer.bytes));
  }
  if (offset % alignment != 0)
    Fail("a local address that is not aligned to " + std::to_string(alignment) + " bytes");
  const size_t begin = buffer.offset + offset;
  return {begin / kLocalAlignment, RoundUpToBlock(begin + bytes) / kLocalAlignment, writes};
}

uint8_t* Instruction::Add(const Range& range, int buffer, size_t offset) {
  ranges_.at(num_ranges_++) = range;
  return core_.memory_.data() + core_.buffers_.at(buffer).offset + offset;
}

const uint8_t* Instruction::Read(int buffer, size_t offset, size_t bytes, size_t alignment) {
  const Range range = RangeOf(buffer, offset, bytes, alignment, /*writes=*/false);
  for (size_t i = range.first_block; i < range.last_block; ++i) {
    const uint8_t pending = core_.pending_[i];
    if (unit_ == Unit::kVector && (pending & kVectorWroteForVector)) {
      Fail("reads what a vector instruction wrote, without PipeBarrier<PIPE_V> between");
    }
    if (unit_ == Unit::kScalar && (pending & kVectorWroteForScalar)) {
      Fail("reads what a vector instruction wrote, without the event V_S between");
    }
    if (unit_ == Unit::kCopyOut && (pending & kVectorWroteForCopyOut)) {
      Fail("reads what a vector instruction wrote, without EnQue and DeQue between");
    }
    if (pending & kCopyInWrote) Fail("reads what was copied in, without EnQue and DeQue between");
  }
  return Add(range, buffer, offset);
}

uint8_t* Instruction::Write(int buffer, size_t offset, size_t bytes, size_t alignment) {
  const Range range = RangeOf(buffer, offset, bytes, alignment, /*writes=*/true);
  for (size_t i = range.first_block; i < range.last_block; ++i) {
    const uint8_t pending = core_.pending_[i];
    if (unit_ == Unit::kVector && (pending & (kVectorWroteForVector | kVectorRead))) {
      Fail("overwrites what a vector instruction uses, without PipeBarrier<PIPE_V> between");
    }
    if (unit_ == Unit::kVector && (pending & kScalarRead)) {
      Fail("overwrites what the scalar unit reads, without the event S_V between");
    }
  }
  return Add(range, buffer, offset);
}

// Reads first: an instruction may write what it reads.
Instruction::~Instruction() {
  for (const bool writes : {false, true}) {
    for (size_t r = 0; r < num_ranges_; ++r) {
      if (ranges_[r].writes != writes) continue;
      for (size_t i = ranges_[r].first_block; i < ranges_[r].last_block; ++i) {
        uint8_t& pending = core_.pending_[i];
        if (!writes) {
          if (unit_ == Unit::kVector) pending |= kVectorRead;
          if (unit_ == Unit::kScalar) pending |= kScalarRead;
        } else if (unit_ == Unit::kVector) {
          pending = kVectorWroteForVector | kVectorWroteForScalar | kVectorWroteForCopyOut;
        } else {
          pending |= kCopyInWrote;
        }
      }
    }
  }
}

void Core::CheckGlobal(const char* call, const void* address, size_t bytes, bool writes) const {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  const bool allowed = std::any_of(global_.begin(), global_.end(), [&](const GlobalRange& range) {
    return range.begin <= begin && begin + bytes <= range.end && (range.is_writable || !writes);
  });
  if (!allowed) {
    Fail(std::string(call) + ": " + std::to_string(bytes) +
         " bytes of global memory that the launch may not " + (writes ? "write" : "read"));
  }
}

void Core::SetEvent(int kind, int event) {
  if (event < 0 || event >= 8)
    Fail("SetFlag: event " + std::to_string(event) + " is not one of 0 to 7");
  events_.resize(std::max<size_t>(events_.size(), kind + 1));
  if (events_[kind] >> event & 1) Fail("SetFlag: the event is set already");
  events_[kind] |= uint64_t{1} << event;
}

void Core::WaitEvent(int kind, int event) {
  if (static_cast<size_t>(kind) >= events_.size() || !(events_[kind] >> event & 1)) {
    Fail("WaitFlag: nobody has set the event");
  }
  events_[kind] &= ~(uint64_t{1} << event);
}

void Core::CheckFinished() const {
  for (const LocalBuffer& buffer : buffers_) {
    if (buffer.state == LocalBuffer::State::kQueued)
      Fail("the kernel ended with a tensor in a queue");
    if (buffer.state == LocalBuffer::State::kAllocated ||
        buffer.state == LocalBuffer::State::kDequeued)
      Fail("the kernel ended without freeing a tensor");
  }
  if (std::any_of(events_.begin(), events_.end(), [](uint64_t set) { return set != 0; })) {
    Fail("the kernel ended with an event that nobody awaited");
  }
}

}  // namespace opserve::ascendc::emulation
