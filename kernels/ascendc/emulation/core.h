// The emulated vector core: its local memory, who has written what there, and what it may touch of
// global memory.
//
// Every rule that a kernel breaks ends the run with a Violation. The rules are those of the Ascend
// C API reference (CANN 8.0 to 9.0, Atlas A2), named at the functions that check them; README.md
// lists what is not modelled.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace opserve::ascendc::emulation {

// Atlas A2: local ("unified") memory of a vector core, and the part of it that Select uses itself.
inline constexpr size_t kUnifiedBufferBytes = 192 * 1024;
inline constexpr size_t kSelectReserveBytes = 8 * 1024;
inline constexpr size_t kLocalAlignment = 32;
inline constexpr int kMaxPipeBuffers = 64;

// A rule of the device that the kernel broke: what() says which, by which call, on which core.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Units that work at the same time; each finishes its own instructions in order.
enum class Unit : uint8_t { kVector, kCopyIn, kCopyOut, kScalar };

// Memory of the device that a launch may use.
struct GlobalRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool is_writable = false;
};

// A buffer of local memory that a pipe has handed to a queue or a TBuf.
struct LocalBuffer {
  // kOwned: a TBuf's, for good. The others: a queue's.
  enum class State : uint8_t { kOwned, kFree, kAllocated, kQueued, kDequeued };
  size_t offset = 0;
  size_t bytes = 0;
  State state = State::kOwned;
};

// One core during one launch. Not thread-safe: a core is emulated by one thread.
class Core {
 public:
  Core(int64_t block, int64_t num_blocks, size_t unified_buffer_bytes,
       const std::vector<GlobalRange>& global)
      : block_(block),
        num_blocks_(num_blocks),
        memory_(unified_buffer_bytes),
        pending_(unified_buffer_bytes / kLocalAlignment),
        global_(global) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // The core whose kernel runs on this thread. Throws Violation outside of a launch.
  static Core& Current();

  int64_t block() const { return block_; }
  int64_t num_blocks() const { return num_blocks_; }
  size_t unified_buffer_bytes() const { return memory_.size(); }
  size_t used_bytes() const { return used_bytes_; }

  [[noreturn]] void Fail(const std::string& message) const;

  // A new buffer of `bytes`, rounded up to 32 as InitBuffer does. Its index.
  int AddBuffer(size_t bytes);
  LocalBuffer& buffer(int index) { return buffers_.at(index); }
  const std::vector<LocalBuffer>& buffers() const { return buffers_; }

  // Fills the buffer with NaNs of every dtype and forgets who used it.
  void Poison(int index);
  // Orders what was done to the buffer so far before all that follows.
  void Settle(int index);
  // PipeBarrier<PIPE_V>; WaitFlag of an event between the vector unit and the scalar unit.
  void SettleVector();
  void SettleVectorForScalar();
  void SettleScalarForVector();

  // Checks an access to global memory.
  void CheckGlobal(const char* call, const void* address, size_t bytes, bool writes) const;

  // SetFlag and WaitFlag, by the event's number within its kind.
  void SetEvent(int kind, int event);
  void WaitEvent(int kind, int event);

  // What must hold when a kernel ends: every queue is empty, every buffer given back, every flag
  // awaited.
  void CheckFinished() const;

 private:
  friend class Instruction;

  const int64_t block_;
  const int64_t num_blocks_;
  std::vector<uint8_t> memory_;
  std::vector<uint8_t>
      pending_;  // per 32 bytes: accesses that nothing has ordered yet, bits of core.cc
  const std::vector<GlobalRange>& global_;
  std::vector<LocalBuffer> buffers_;
  std::vector<uint64_t> events_;  // set and not awaited: one bit per event, by kind
  size_t used_bytes_ = 0;
};

// One instruction of the current core: what it reads and writes of local memory. Checks that each
// buffer is held, the ranges, that each starts on `alignment` bytes, and that what earlier
// instructions did there has been ordered. Counts as done when it is destroyed.
class Instruction {
 public:
  Instruction(const char* call, Unit unit) : core_(Core::Current()), call_(call), unit_(unit) {}
  ~Instruction();
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;

  // `bytes` of local memory from byte `offset` of the buffer on.
  const uint8_t* Read(int buffer, size_t offset, size_t bytes, size_t alignment = kLocalAlignment);
  uint8_t* Write(int buffer, size_t offset, size_t bytes, size_t alignment = kLocalAlignment);

  [[noreturn]] void Fail(const std::string& message) const {
    core_.Fail(std::string(call_) + ": " + message);
  }

 private:
  struct Range {
    size_t first_block;
    size_t last_block;
    bool writes;
  };
  Range RangeOf(int buffer, size_t offset, size_t bytes, size_t alignment, bool writes) const;
  uint8_t* Add(const Range& range, int buffer, size_t offset);

  Core& core_;
  const char* const call_;
  const Unit unit_;
  std::array<Range, 4> ranges_;
  size_t num_ranges_ = 0;
};

// Makes a core the current one of this thread for as long as it lives.
class CurrentCore {
 public:
  explicit CurrentCore(Core* core);
  ~CurrentCore();
  CurrentCore(const CurrentCore&) = delete;
  CurrentCore& operator=(const CurrentCore&) = delete;
};

}  // namespace opserve::ascendc::emulation
