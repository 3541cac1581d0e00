// Work on a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/memory_range.h"

namespace opserve::host_cann {

class Stream;

// How a task ended.
struct TaskResult {
  aclError code = ACL_SUCCESS;
  std::string text;        // of a failure: its description, without label
  bool cancelled = false;  // stopped on request: not an error to report

  static TaskResult Failure(aclError code, std::string text) { return {code, std::move(text)}; }
  static TaskResult Cancelled() {
    return {ACL_ERROR_RT_STREAM_ABORT, "the stream was aborted", /*cancelled=*/true};
  }
};

// A task that touches no more is prompt: a core does it in less time than another thread needs to
// wake up, some 20 microseconds.
inline constexpr size_t kPromptBytes = 128 << 10;
inline constexpr uint64_t kPromptElements = kPromptBytes / 2;

// Work that is done within some 100 ms, whatever the operator.
inline constexpr uint64_t kShortWork = uint64_t{1} << 25;

// Destroyed by the stream after Run or Drop, outside its locks. One that is captured belongs to a
// graph, and replays on several threads may run it at once.
class Task {
 public:
  virtual ~Task() = default;

  // Called once, before all else, when `stream` takes the task: to run it, or captured.
  virtual void OnAccepted(Stream& /*stream*/, bool /*is_captured*/) {}

  // Does the work, on a thread that executes `stream`. Waits only through Stream::WaitInTask.
  virtual TaskResult Run(Stream& stream) = 0;

  // Called instead of Run if the task will never run.
  virtual void Drop() {}

  // For messages: "kernel aclnnL1LossBackward", "copy".
  virtual const char* name() const = 0;

  // The memory that it touches, as far as that is known now.
  virtual std::vector<MemoryRange> memory() const { return {}; }

  // Whether it stands for an operator's kernel.
  virtual bool is_kernel() const { return false; }

  // Whether it fails while the device is lost; events and callbacks come nevertheless.
  virtual bool needs_device() const { return true; }

  // Whether a thread that waits for the stream may run it. Not for tasks that wait for other
  // threads or run the caller's code.
  virtual bool runs_on_any_thread() const { return true; }

  // Whether it takes less time than handing it to another thread. An idle stream runs it at once,
  // on the thread that queues it.
  virtual bool is_prompt() const { return false; }

  // Elements to compute or bytes to copy, from which its time can be told; no more than kShortWork
  // only if nothing makes it take longer.
  virtual uint64_t work() const { return UINT64_MAX; }

 protected:
  uint64_t sequence() const { return sequence_; }

 private:
  friend class Stream;
  uint64_t sequence_ = 0;         // position in its stream, from 1
  uint32_t thread_id_ = 0;        // the thread that queued it
  TaskResult* result_ = nullptr;  // where a caller waits for the result instead of the stream
};

}  // namespace opserve::host_cann
