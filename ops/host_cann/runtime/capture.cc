#include "ops/host_cann/runtime/capture.h"

#include <algorithm>
#include <utility>

#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

Capture::Capture(std::shared_ptr<Graph> graph, std::shared_ptr<Stream> origin,
                 aclmdlRICaptureMode mode)
    : graph_(std::move(graph)), origin_(origin.get()), mode_(mode), streams_{std::move(origin)} {}

Capture::State Capture::state() {
  MutexLock lock(mutex_);
  return state_;
}

aclError Capture::CheckActive() const {
  if (state_ == State::kActive) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED, kCallOrder,
              Concat("the capture of graph ", graph_->id(), " has been invalidated"));
}

aclError Capture::Record(Stream& stream, std::unique_ptr<Task>& task) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckActive());
  const auto group = groups_.find(stream.id());
  if (group != groups_.end() && !task->is_kernel()) {
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, kCallOrder,
                Concat("stream ", stream.id(),
                       " has a group of tasks open, which takes kernels, not a ", task->name()));
  }
  if (tasks_.size() >= kMaxTasks) {
    state_ = State::kInvalidated;
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, kExhausted,
                Concat("the capture of graph ", graph_->id(), " has ", kMaxTasks,
                       " tasks, which is the limit"));
  }
  task->OnAccepted(stream, /*is_captured=*/true);
  if (group != groups_.end()) group->second->indices.push_back(tasks_.size());
  tasks_.emplace_back(std::move(task), stream);
  ++progress_[stream.id()][stream.id()];
  return ACL_SUCCESS;
}

Progress Capture::RecordEvent(const Stream& stream) {
  MutexLock lock(mutex_);
  Progress& own = progress_[stream.id()];
  ++own[stream.id()];
  return own;
}

aclError Capture::WaitForEvent(std::shared_ptr<Stream> stream, const Progress& event) {
  MutexLock lock(mutex_);
  RETURN_IF_FAILED(CheckActive());
  Progress& own = progress_[stream->id()];
  for (const auto& [id, entries] : event) own[id] = std::max(own[id], entries);
  ++own[stream->id()];
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
  if (!is_this_threads() && mode_ != ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD, kCallOrder,
                Concat("another thread began the capture, in mode ", static_cast<int>(mode_)));
  }
  RETURN_IF_FAILED(CheckActive());
  if (!groups_.empty()) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
                Concat("stream ", groups_.begin()->first, " has a group of tasks open"));
  }
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
    if (state_ == State::kEnded) {
      return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kCallOrder, "the capture has ended");
    }
    code = CheckWhole();
    state_ = State::kEnded;
    streams.swap(streams_);
    tasks.swap(tasks_);
    groups_.clear();
  }
  if (code == ACL_SUCCESS) graph_->SetTasks(std::move(tasks));
  for (const std::shared_ptr<Stream>& stream : streams) stream->LeaveCapture(*this);
  return code;
}

namespace {

thread_local aclmdlRICaptureMode thread_mode = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;

bool Forbids(Capture& capture) {
  if (capture.state() == Capture::State::kEnded) return false;
  switch (thread_mode) {
    case ACL_MODEL_RI_CAPTURE_MODE_GLOBAL:
      return capture.mode() == ACL_MODEL_RI_CAPTURE_MODE_GLOBAL ||
             (capture.mode() == ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL &&
              capture.is_this_threads());
    case ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL:
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
