// Writing words of device memory and waiting for them, as work on a stream.
#include <atomic>
#include <cstdint>

#include "acl/acl.h"
#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"
#include "ops/host_cann/runtime/waiters.h"

namespace opserve::host_cann {
namespace {

// Writes by aclrtValueWrite wake waits at once. Copies, kernels and the program can write the word
// too, without a word to anything: a wait looks again by itself after this time.
constexpr std::chrono::milliseconds kLookAgain{1};

Waiters& WaitersForWrites() {
  static Waiters* const waiters = new Waiters;
  return *waiters;
}

// The memory of the word at `address`. Null: `*gone` says that it is not live any more.
BlockPtr HoldWord(const Stream& stream, const void* address, TaskResult* gone) {
  BlockPtr block = FindDeviceMemory(stream.device(), address, sizeof(uint64_t));
  if (block == nullptr && Runtime::Get().settings().checked) {
    *gone = TaskResult::Failure(ACL_ERROR_RT_SYS_DMA,
                                "value task: devAddr is not live device memory any more");
  }
  return block;
}

class ValueWriteTask final : public Task {
 public:
  ValueWriteTask(uint64_t* word, uint64_t value) : word_(word), value_(value) {}

  TaskResult Run(Stream& stream) override {
    TaskResult result;
    const BlockPtr held = HoldWord(stream, word_, &result);
    if (result.code != ACL_SUCCESS) return result;
    // A whole word at once; kernels on other threads may read it.
    std::atomic_ref<uint64_t>(*word_).store(value_, std::memory_order_release);
    // All waits look again, as a write does not know the words they wait for.
    WaitersForWrites().WakeAll();
    return result;
  }
  const char* name() const override { return "value write"; }
  std::vector<MemoryRange> memory() const override { return {{word_, sizeof(*word_), "devAddr"}}; }

 private:
  uint64_t* const word_;
  const uint64_t value_;
};

bool Compares(uint64_t word, uint64_t value, uint32_t flag) {
  switch (flag) {
    case ACL_STREAM_WAIT_VALUE_GEQ:
      // By the sign of the difference: a counter may wrap.
      return static_cast<int64_t>(word - value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ:
      return word == value;
    case ACL_STREAM_WAIT_VALUE_AND:
      return (word & value) != 0;
    default:
      return ~(word | value) != 0;  // ACL_STREAM_WAIT_VALUE_NOR
  }
}

class ValueWaitTask final : public Task {
 public:
  ValueWaitTask(uint64_t* word, uint64_t value, uint32_t flag)
      : word_(word), value_(value), flag_(flag) {}

  TaskResult Run(Stream& stream) override {
    TaskResult result;
    const BlockPtr held = HoldWord(stream, word_, &result);
    if (result.code != ACL_SUCCESS) return result;
    // Before the first look, so that no write between the look and the sleep is missed.
    const Waiters::Scope waiter(WaitersForWrites(), stream.shared_from_this());
    const std::atomic_ref<uint64_t> word(*word_);
    Stream::Waited waited;
    // A look of its own each round: the call has no timeout.
    do {
      waited = stream.WaitInTask(Clock::now() + kLookAgain, [&](bool releasing) {
        return releasing || Compares(word.load(std::memory_order_acquire), value_, flag_);
      });
    } while (waited == Stream::Waited::kTimeout);
    return waited == Stream::Waited::kCancelled ? TaskResult::Cancelled() : result;
  }
  const char* name() const override { return "value wait"; }
  std::vector<MemoryRange> memory() const override { return {{word_, sizeof(*word_), "devAddr"}}; }
  bool runs_on_any_thread() const override { return false; }

 private:
  uint64_t* const word_;
  const uint64_t value_;
  const uint32_t flag_;
};

// The stream and the word of a call. `flag` is at most `last_flag`.
aclError FindWord(void* address, uint32_t flag, uint32_t last_flag, aclrtStream handle,
                  std::shared_ptr<Stream>* stream) {
  if (!CurrentSoc().generation->has_value_tasks) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " has no tasks on words of memory"));
  }
  RETURN_IF_FAILED(RequireNotNull(address, "devAddr"));
  if (flag > last_flag) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("flag is ", flag, ", must be at most ", last_flag));
  }
  // The word is accessed atomically.
  if (reinterpret_cast<uintptr_t>(address) % sizeof(uint64_t) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, "devAddr is not aligned to 8 bytes");
  }
  RETURN_IF_FAILED(UsableStream(handle, stream));
  return CheckDeviceMemory((*stream)->device(), address, sizeof(uint64_t), "devAddr");
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(FindWord(devAddr, flag, /*last_flag=*/0, stream, &target));
  return target->Enqueue(std::make_unique<ValueWriteTask>(static_cast<uint64_t*>(devAddr), value));
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(FindWord(devAddr, flag, ACL_STREAM_WAIT_VALUE_NOR, stream, &target));
  return target->Enqueue(
      std::make_unique<ValueWaitTask>(static_cast<uint64_t*>(devAddr), value, flag));
}
