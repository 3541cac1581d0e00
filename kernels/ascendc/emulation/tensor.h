// AscendC::GlobalTensor, LocalTensor, TBuf, TQue and TPipe, as far as our kernel uses them.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core.h"

namespace AscendC {

namespace emulated {

using opserve::ascendc::emulation::Core;
using opserve::ascendc::emulation::Instruction;
using opserve::ascendc::emulation::kLocalAlignment;
using opserve::ascendc::emulation::Unit;

}  // namespace emulated

// Places of the queues: VECIN is filled by copies in and read by vector instructions, VECOUT the
// other way out, VECCALC is the vector unit's own.
enum class TPosition : uint8_t { VECIN, VECOUT, VECCALC };

template <typename T, typename U>
struct IsSameType {
  static constexpr bool value = false;
};
template <typename T>
struct IsSameType<T, T> {
  static constexpr bool value = true;
};

// An array in global memory; copies are checked against its size and against what the launch may
// touch.
template <typename T>
class GlobalTensor {
 public:
  void SetGlobalBuffer(T* address, uint64_t num_elements) {
    address_ = address;
    num_elements_ = num_elements;
  }
  // From element `offset` on.
  GlobalTensor operator[](uint64_t offset) const {
    if (offset > num_elements_) {
      emulated::Core::Current().Fail("a global tensor from its element " + std::to_string(offset) +
                                     " of " + std::to_string(num_elements_) + " on");
    }
    GlobalTensor rest;
    rest.SetGlobalBuffer(address_ + offset, num_elements_ - offset);
    return rest;
  }
  T* GetPhyAddr() const { return address_; }
  uint64_t GetSize() const { return num_elements_; }

 private:
  T* address_ = nullptr;
  uint64_t num_elements_ = 0;
};

// Elements of a buffer of local memory, from a byte on.
template <typename T>
class LocalTensor {
 public:
  LocalTensor() = default;
  LocalTensor(int buffer, size_t offset, TPosition position)
      : buffer_(buffer), offset_(offset), position_(position) {}

  LocalTensor operator[](uint32_t element) const {
    return LocalTensor(buffer_, offset_ + element * sizeof(T), position_);
  }
  // By the scalar unit.
  T GetValue(uint32_t element) const {
    emulated::Instruction read("GetValue", emulated::Unit::kScalar);
    return *reinterpret_cast<const T*>(
        read.Read(buffer_, offset_ + element * sizeof(T), sizeof(T), sizeof(T)));
  }

  int buffer() const { return buffer_; }
  size_t offset() const { return offset_; }  // bytes
  TPosition position() const { return position_; }

 private:
  int buffer_ = -1;
  size_t offset_ = 0;
  TPosition position_ = TPosition::VECCALC;
};

template <TPosition kPosition>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get() {
    if (buffer_ < 0) emulated::Core::Current().Fail("TBuf::Get before InitBuffer");
    return LocalTensor<T>(buffer_, 0, kPosition);
  }

 private:
  friend class TPipe;
  int buffer_ = -1;
};

// `kDepth`: tensors that may be in the queue at once. How many buffers there are is said to
// InitBuffer.
template <TPosition kPosition, int32_t kDepth>
class TQue {
  using State = opserve::ascendc::emulation::LocalBuffer::State;

 public:
  template <typename T>
  LocalTensor<T> AllocTensor() {
    emulated::Core& core = emulated::Core::Current();
    // In turns, as on the device, where the next instruction may still use the buffer freed last.
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const int buffer = buffers_[next_++ % buffers_.size()];
      if (core.buffer(buffer).state != State::kFree) continue;
      core.buffer(buffer).state = State::kAllocated;
      core.Poison(buffer);
      return LocalTensor<T>(buffer, 0, kPosition);
    }
    core.Fail("AllocTensor: all " + std::to_string(buffers_.size()) +
              " buffers of the queue are in use");
  }

  template <typename T>
  void EnQue(const LocalTensor<T>& tensor) {
    Change("EnQue", tensor, State::kAllocated, State::kAllocated, State::kQueued);
    waiting_.push_back(tensor.buffer());
    if (waiting_.size() > kDepth) {
      emulated::Core::Current().Fail("EnQue: more tensors than the queue's depth of " +
                                     std::to_string(kDepth));
    }
  }

  template <typename T>
  LocalTensor<T> DeQue() {
    emulated::Core& core = emulated::Core::Current();
    if (waiting_.empty()) core.Fail("DeQue: the queue is empty");
    const int buffer = waiting_.front();
    waiting_.pop_front();
    core.buffer(buffer).state = State::kDequeued;
    core.Settle(buffer);
    return LocalTensor<T>(buffer, 0, kPosition);
  }

  template <typename T>
  void FreeTensor(LocalTensor<T>& tensor) {
    Change("FreeTensor", tensor, State::kAllocated, State::kDequeued, State::kFree);
  }

 private:
  friend class TPipe;

  template <typename T>
  void Change(const char* call, const LocalTensor<T>& tensor, State from, State or_from, State to) {
    emulated::Core& core = emulated::Core::Current();
    for (const int buffer : buffers_) {
      if (buffer != tensor.buffer()) continue;
      State& state = core.buffer(buffer).state;
      if (state != from && state != or_from)
        core.Fail(std::string(call) + ": not a tensor that the kernel holds");
      state = to;
      return;
    }
    core.Fail(std::string(call) + ": not a tensor of this queue");
  }

  std::vector<int> buffers_;
  std::deque<int> waiting_;
  size_t next_ = 0;
};

enum class HardEvent : uint8_t { V_S, S_V };

class TPipe {
 public:
  template <TPosition kPosition, int32_t kDepth>
  void InitBuffer(TQue<kPosition, kDepth>& queue, uint8_t num_buffers, uint32_t bytes) {
    emulated::Core& core = emulated::Core::Current();
    for (int i = 0; i < num_buffers; ++i) {
      queue.buffers_.push_back(core.AddBuffer(bytes));
      core.buffer(queue.buffers_.back()).state =
          opserve::ascendc::emulation::LocalBuffer::State::kFree;
    }
  }
  template <TPosition kPosition>
  void InitBuffer(TBuf<kPosition>& buffer, uint32_t bytes) {
    buffer.buffer_ = emulated::Core::Current().AddBuffer(bytes);
  }
  // A number for SetFlag that is not in use.
  int8_t FetchEventID(HardEvent) { return 0; }
};

}  // namespace AscendC
