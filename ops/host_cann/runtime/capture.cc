#include "ops/host_cann/runtime/capture.h"

#include <algorithm>
#include <utility>

#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

// The origin is part of the capture from the start. It is named by pointer as well, since streams_
// is emptied at the end.
Capture::Capture(std::shared_ptr<Graph> graph, std::shared_ptr<Stream> origin,
                 aclmdlRICaptureMode mode)
    : graph_(std::move(graph)), origin_(origin.get()), mode_(mode), streams_{std::move(origin)} {}

Capture::State Capture::state() {
  MutexLock lock(mutex_);
  return state_;
}

aclError Capture::CheckActive() const {
  // Invalidated and ended are one code: a stream that still records has been overtaken by another
  // thread's end.
  if (state_ == State::kActive) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, kCallOrder,
              Concat("the capture of graph ", graph_->id(), " has been invalidated"));
}

aclError Capture::Record(Stream& stream, std::unique_ptr<Task>& task) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckActive());
  const auto group = groups_.find(stream.id());
  // A group can be updated only as a whole, kernel by kernel, so nothing else may be in it.
  if (group != groups_.end() && !task->is_kernel()) {
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, kCallOrder,
                Concat("stream ", stream.id(),
                       " has a group of tasks open, which takes kernels, not a ", task->name()));
  }
  if (tasks_.size() >= kMaxTasks) {
    // A graph that lacks a task must not be replayed, hence the whole capture is invalid, not this
    // task alone.
    state_ = State::kInvalidated;
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, kExhausted,
                Concat("the capture of graph ", graph_->id(), " has ", kMaxTasks,
                       " tasks, which is the limit"));
  }
  task->OnAccepted(stream, /*is_captured=*/true);
  // The group remembers the place in the graph's tasks, which is all that an update needs later.
  if (group != groups_.end()) group->second->indices.push_back(tasks_.size());
  tasks_.emplace_back(std::move(task), stream);
  // The stream's own entry counts the tasks, records and waits of it. CheckWhole compares these
  // counts.
  ++progress_[stream.id()][stream.id()];
  return ACL_SUCCESS;
}

Progress Capture::RecordEvent(const Stream& stream) {
  MutexLock lock(mutex_);
  Progress& own = progress_[stream.id()];
  // A record is an entry of its own: two records of one stream are different places.
  ++own[stream.id()];
  return own;
}

aclError Capture::WaitForEvent(std::shared_ptr<Stream> stream, const Progress& event) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckActive());
  Progress& own = progress_[stream->id()];
  // All that came before the event comes before the stream's next entries. The maximum, as the
  // stream may have seen more of some streams than the event.
  for (const auto& [id, entries] : event) own[id] = std::max(own[id], entries);
  // The wait is an entry too: a stream that joins and does nothing else must be joined back as
  // well.
  ++own[stream->id()];
  // The stream's first wait makes it part of the capture, and End sets it free.
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) {
    streams_.push_back(std::move(stream));
  }
  return ACL_SUCCESS;
}

aclError Capture::BeginGroup(const Stream& stream) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckActive());
  if (groups_.emplace(stream.id(), std::make_shared<TaskGroup>(graph_)).second) return ACL_SUCCESS;
  return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
              Concat("stream ", stream.id(), " has a group of tasks open"));
}

aclError Capture::EndGroup(const Stream& stream, std::shared_ptr<TaskGroup>* group) {
  MutexLock lock(mutex_);
  const auto found = groups_.find(stream.id());
  if (found == groups_.end()) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
                Concat("stream ", stream.id(), " has no group of tasks open"));
  }
  std::shared_ptr<TaskGroup> ended = std::move(found->second);
  // Taken out even if the capture is invalid: the group is over for the caller either way.
  groups_.erase(found);
  RETURN_IF_FAILED(CheckActive());
  *group = std::move(ended);
  return ACL_SUCCESS;
}

void Capture::Invalidate() {
  MutexLock lock(mutex_);
  if (state_ == State::kActive) state_ = State::kInvalidated;
}

aclError Capture::CheckWhole() const {
  // RELAXED lets any thread end the capture; the other modes tie it to the thread that began it.
  if (!is_this_threads() && mode_ != ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, kCallOrder,
                Concat("another thread began the capture, in mode ", static_cast<int>(mode_)));
  }
  RETURN_IF_FAILED(CheckActive());
  if (!groups_.empty()) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
                Concat("stream ", groups_.begin()->first, " has a group of tasks open"));
  }
  // The origin has joined all others if it has seen the last entry of each: `progress_[id][id]` is
  // the number of entries that stream `id` has.
  const auto origin = progress_.find(origin_->id());
  const Progress seen = origin == progress_.end() ? Progress() : origin->second;
  for (const auto& [id, progress] : progress_) {
    const auto found = seen.find(id);
    if (found != seen.end() && found->second == progress.at(id)) continue;
    return Fail(ACL_ERROR_RT_STREAM_UNJOINED, kCallOrder,
                Concat("stream ", id, " joined the capture and has not been joined back: stream ",
                       origin_->id(), " does not wait for an event behind its last task"));
  }
  return ACL_SUCCESS;
}

aclError Capture::End() {
  std::vector<std::shared_ptr<Stream>> streams;
  std::vector<CapturedTask> tasks;
  aclError code = ACL_SUCCESS;
  {
    MutexLock lock(mutex_);
    // Two threads may both have found the capture; the second gets the code of a stream that is not
    // captured.
    if (state_ == State::kEnded) {
      return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kCallOrder, "the capture has ended");
    }
    // The capture ends whatever the check says: the streams must be free after an error too.
    code = CheckWhole();
    state_ = State::kEnded;
    streams.swap(streams_);
    tasks.swap(tasks_);
    groups_.clear();
  }
  // Outside the lock, and before the streams are free: a replay that follows on one of them finds
  // the tasks.
  if (code == ACL_SUCCESS) graph_->SetTasks(std::move(tasks));
  // LeaveCapture takes the stream's lock, which Stream::Abort holds while it takes this one.
  for (const std::shared_ptr<Stream>& stream : streams) stream->LeaveCapture(*this);
  return code;
}

namespace {

thread_local aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

// Whether a capture in its mode keeps a thread in its own mode from touching memory at once.
bool Forbids(Capture& capture) {
  // The context lists captures until they are destroyed.
  if (capture.state() == Capture::State::kEnded) return false;
  switch (thread_mode) {
    // Kept off by GLOBAL captures of any thread, and by its own in mode THREAD_LOCAL.
    case ACL_MODEL_RI_CAPTURE_MODE_GLOBAL:
      return capture.mode() == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL ||
             (capture.mode() == ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL &&
              capture.is_this_threads());
    case ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL:
      // Kept off by its own captures only.
      return capture.mode() != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && capture.is_this_threads();
    case ACL_MODEL_RI_CAPTURE_MODE_RELAXED:
      break;
  }
  return false;
}

}  // namespace

aclmdlRICaptureMode ExchangeThreadCaptureMode(aclmdlRICaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

aclError CheckMayUseMemory(Context& context, aclError refusal) {
  for (const std::shared_ptr<Capture>& capture : context.captures()) {
    if (!Forbids(*capture)) continue;
    return Fail(refusal, kCallOrder,
                Concat("the capture of graph ", capture->graph()->id(), " in mode ",
                       static_cast<int>(capture->mode()), " does not let this thread, in mode ",
                       static_cast<int>(thread_mode), ", use memory at once"));
  }
  return ACL_SUCCESS;
}

aclError CheckNotCaptured(Stream& stream) {
  if (stream.capture() == nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CAPTURED, kCallOrder,
              Concat("stream ", stream.id(), " is being captured"));
}

}  // namespace opserve::host_cann
