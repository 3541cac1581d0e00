// A capture that is under way: the streams that are part of it, and the tasks recorded so far.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/graph.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/stream.h"

namespace opserve::host_cann {

// What has come before a place in a captured stream: entries of each stream, by its id.
using Progress = std::map<int32_t, uint64_t>;

// Thread-safe. Held by its streams; a stream's lock may be held in calls, as this takes none.
class Capture {
 public:
  // In one capture.
  static constexpr size_t kMaxTasks = 65536;

  enum class State { kActive, kInvalidated, kEnded };

  // `origin` is not told of it.
  Capture(std::shared_ptr<Graph> graph, std::shared_ptr<Stream> origin, aclmdlRICaptureMode mode);

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  const Stream* origin() const { return origin_; }
  aclmdlRICaptureMode mode() const { return mode_; }
  // Whether the calling thread began it.
  bool is_this_threads() const { return thread_ == std::this_thread::get_id(); }
  State state() ABSL_LOCKS_EXCLUDED(mutex_);

  // Records a task of one of the streams. After an error `task` stays the caller's.
  //   207005 too many, which invalidates the capture    507903 invalidated, or ended
  //   507009 a task that is no kernel, while a group is open
  aclError Record(Stream& stream, std::unique_ptr<Task>& task) ABSL_LOCKS_EXCLUDED(mutex_);

  // An event is recorded on a stream: what it stands for.
  Progress RecordEvent(const Stream& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  // A stream waits for an event of this capture. One that is not part of it joins. 507903:
  // invalidated, or ended.
  aclError WaitForEvent(std::shared_ptr<Stream> stream, const Progress& event)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The stream's group. 107033: one is open, or none. 507903: invalidated; the group is dropped.
  aclError BeginGroup(const Stream& stream) ABSL_LOCKS_EXCLUDED(mutex_);
  aclError EndGroup(const Stream& stream, std::shared_ptr<TaskGroup>* group)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Invalidate() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the capture, well or not: its streams, the origin included, are free. If all is well the
  // graph has the tasks.
  //   107029 another thread has ended it    507903 invalidated
  //   107038 another thread began it, not in mode RELAXED
  //   107033 a group is open                107025 a stream has not been joined back
  aclError End() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  aclError CheckActive() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  aclError CheckWhole() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Graph> graph_;
  const Stream* const origin_;
  const aclmdlRICaptureMode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kActive;
  std::vector<std::shared_ptr<Stream>> streams_ ABSL_GUARDED_BY(mutex_);
  // Of each stream, by its id: all that has come before its next entry.
  std::map<int32_t, Progress> progress_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, std::shared_ptr<TaskGroup>> groups_ ABSL_GUARDED_BY(mutex_);  // open ones
  std::vector<CapturedTask> tasks_ ABSL_GUARDED_BY(mutex_);
};

// Sets the calling thread's own mode, at first GLOBAL, and returns the old one.
aclmdlRICaptureMode ExchangeThreadCaptureMode(aclmdlRICaptureMode mode);

// `refusal` if the captures under way in the context do not let the calling thread use memory at
// once, 0 otherwise.
aclError CheckMayUseMemory(Context& context,
                           aclError refusal = ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);

// 107027 if the stream is captured, 0 otherwise.
aclError CheckNotCaptured(Stream& stream);

}  // namespace opserve::host_cann
