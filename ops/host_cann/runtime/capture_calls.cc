// The ABI's functions that capture streams and replay graphs.
#include <atomic>

#include "acl/acl.h"
#include "ops/host_cann/runtime/app_log.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/launch_charge.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

aclError CheckMode(aclmdlRICaptureMode mode) {
  if (mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL && mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("mode is ", static_cast<int>(mode), ", must be 0 to 2"));
}

// The stream of a handle that is not null, to capture or to update with.
aclError FindNamedStream(aclrtStream handle, std::shared_ptr<Stream>* stream) {
  RETURN_IF_FAILED(RequireNotNull(handle, "stream"));
  return UsableStream(handle, stream);
}

aclError RefuseDefault(const Stream& stream) {
  if (!stream.config().is_default) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
              "stream is a default stream, which cannot be captured");
}

// The capture that a stream is part of. 107029: none.
aclError FindCapture(Stream& stream, std::shared_ptr<Capture>* capture) {
  *capture = stream.capture();
  if (*capture != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, kCallOrder,
              Concat("stream ", stream.id(), " is not being captured"));
}

// The graph of a handle, of the calling thread's context.
// Graphs belong to a context as streams do, and are refused from another with a code of their own.
aclError FindGraph(aclmdlRI handle, std::shared_ptr<Graph>* graph) {
  RETURN_IF_FAILED(RequireNotNull(handle, "modelRI"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  std::shared_ptr<Graph> found = Runtime::Get().graphs().Find(handle);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "modelRI is not a live graph");
  }
  if (found->context() != context) {
    return Fail(ACL_ERROR_RT_MODEL_CONTEXT, kWrongContext,
                Concat("graph ", found->id(), " does not belong to this thread's context"));
  }
  *graph = std::move(found);
  return ACL_SUCCESS;
}

void ForgetGraph(const Graph* graph) {
  Runtime::Get().ForgetGraphs([graph](const Graph& other) { return &other == graph; });
}

aclError QueueReplay(Stream& stream, std::shared_ptr<Graph> graph) {
  std::shared_ptr<const ReplayPlan> plan;
  // The plan first: a graph under capture has none, and is refused before the stream is looked at.
  RETURN_IF_FAILED(graph->FindPlan(&plan));
  // A graph cannot be part of another graph here.
  RETURN_IF_FAILED(CheckNotCaptured(stream));
  // One launch for the whole graph: that is the gain of replays, which the charge makes visible.
  ChargeLaunch();
  return stream.Enqueue(MakeReplayTask(std::move(graph), std::move(plan)));
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  static std::atomic<uint32_t> next_id{0};
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(stream, "stream"));
  // By the vendor's documents older training products capture nothing.
  if (!CurrentSoc().generation->captures_streams) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " does not capture streams"));
  }
  RETURN_IF_FAILED(CheckMode(mode));
  std::shared_ptr<Stream> origin;
  RETURN_IF_FAILED(UsableStream(stream, &origin));
  RETURN_IF_FAILED(RefuseDefault(*origin));
  Context& context = *origin->context();
  auto graph = std::make_shared<Graph>(origin->context(), next_id++);
  // The handle exists from the start: aclmdlRICaptureGetInfo gives it out while the capture is
  // under way.
  graph->set_handle(Runtime::Get().graphs().Insert(graph));
  auto capture = std::make_shared<Capture>(graph, origin, mode);
  const aclError code = origin->EnterCapture(capture);
  if (code == ACL_SUCCESS) {
    // Only now, so that a refused capture never keeps threads from using memory.
    context.AddCapture(capture);
  } else {
    // The stream is captured already, or updates a group: nothing else knows the new graph.
    ForgetGraph(graph.get());
  }
  return code;
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(stream, "stream"));
  // Either may be null, not both: the call would have no result.
  if (status == nullptr) RETURN_IF_FAILED(RequireNotNull(modelRI, "status and modelRI"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(UsableStreamOfAnyContext(stream, &found));
  const std::shared_ptr<Capture> capture = found->capture();
  aclmdlRICaptureStatus current = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  if (capture != nullptr) {
    current = capture->state() == Capture::State::kActive ? ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE
                                                          : ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED;
  }
  if (status != nullptr) *status = current;
  if (modelRI != nullptr) *modelRI = capture == nullptr ? nullptr : capture->graph()->handle();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindNamedStream(stream, &found));
  RETURN_IF_FAILED(RefuseDefault(*found));
  std::shared_ptr<Capture> capture;
  RETURN_IF_FAILED(FindCapture(*found, &capture));
  if (modelRI == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, "modelRI is null");
  }
  // A joined stream cannot end the capture: the origin waits for all others, and it alone knows the
  // end.
  if (capture->origin() != found.get()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED, kCallOrder,
                Concat("the capture of stream ", found->id(), " began on stream ",
                       capture->origin()->id()));
  }
  const aclError code = capture->End();
  // Its graph lives and is that thread's; this one must not forget it.
  if (code == ACL_ERROR_RT_STREAM_NOT_CAPTURED) return code;  // another thread was first
  *modelRI = code == ACL_SUCCESS ? capture->graph()->handle() : nullptr;
  // The handle that aclmdlRICaptureGetInfo gave out goes stale here.
  if (code != ACL_SUCCESS) ForgetGraph(capture->graph().get());
  return code;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(mode, "mode"));
  RETURN_IF_FAILED(CheckMode(*mode));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(CurrentContext(&context));
  *mode = ExchangeThreadCaptureMode(*mode);
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindNamedStream(stream, &found));
  std::shared_ptr<Capture> capture;
  RETURN_IF_FAILED(FindCapture(*found, &capture));
  return capture->BeginGroup(*found);
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(handle, "handle"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindNamedStream(stream, &found));
  std::shared_ptr<Capture> capture;
  RETURN_IF_FAILED(FindCapture(*found, &capture));
  std::shared_ptr<TaskGroup> group;
  RETURN_IF_FAILED(capture->EndGroup(*found, &group));
  *handle = Runtime::Get().task_groups().Insert(std::move(group));
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(handle, "handle"));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindNamedStream(stream, &found));
  RETURN_IF_FAILED(CheckNotCaptured(*found));
  std::shared_ptr<TaskGroup> group = Runtime::Get().task_groups().Find(handle);
  // The group outlives its graph as a handle; the weak pointer tells.
  const std::shared_ptr<Graph> graph = group == nullptr ? nullptr : group->graph.lock();
  if (graph == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "handle is not a group of a live graph");
  }
  std::shared_ptr<const ReplayPlan> plan;
  // Of a capture that has ended: before that the group's tasks have no places in a plan.
  RETURN_IF_FAILED(graph->FindPlan(&plan));
  // Two streams that update one group would replace each other's tasks. ~TaskUpdate clears the
  // mark, so a refusal by BeginUpdate below does so too.
  if (group->is_updated.exchange(true)) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
                "handle is a group that a stream is updating");
  }
  return found->BeginUpdate(std::make_unique<TaskUpdate>(std::move(group)));
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Stream> found;
  RETURN_IF_FAILED(FindNamedStream(stream, &found));
  RETURN_IF_FAILED(CheckNotCaptured(*found));
  // Taken before it is checked: after an error the stream is out of the update and queues tasks
  // again.
  const std::unique_ptr<TaskUpdate> update = found->TakeUpdate();
  if (update == nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS, kCallOrder,
                Concat("stream ", found->id(), " updates no group of tasks"));
  }
  std::unique_ptr<Task> task;
  RETURN_IF_FAILED(update->Finish(&task));
  // As a task of the stream: replays that are queued before it still run the old kernels.
  return found->Enqueue(std::move(task));
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Graph> graph;
  RETURN_IF_FAILED(FindGraph(modelRI, &graph));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  return QueueReplay(*target, std::move(graph));
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(CheckTimeoutMs(timeout));
  std::shared_ptr<Graph> graph;
  RETURN_IF_FAILED(FindGraph(modelRI, &graph));
  std::shared_ptr<Stream> target;
  // The call has no stream of its own: it replays on the context's default stream.
  RETURN_IF_FAILED(UsableStream(nullptr, &target));
  RETURN_IF_FAILED(QueueReplay(*target, std::move(graph)));
  RETURN_IF_FAILED(target->Wait(DeadlineAfterMs(timeout)));
  return target->TakeError();
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Graph> graph;
  RETURN_IF_FAILED(FindGraph(modelRI, &graph));
  // A graph under capture is not destroyed: its streams still record into it.
  std::shared_ptr<const ReplayPlan> plan;
  RETURN_IF_FAILED(graph->FindPlan(&plan));
  // The handle goes; replays that are queued hold the graph until they have run.
  ForgetGraph(graph.get());
  return ACL_SUCCESS;
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<Graph> graph;
  RETURN_IF_FAILED(FindGraph(modelRI, &graph));
  std::shared_ptr<const ReplayPlan> plan;
  RETURN_IF_FAILED(graph->FindPlan(&plan));
  for (size_t i = 0; i < plan->tasks.size(); ++i) {
    const CapturedTask& captured = plan->tasks[i];
    // As lines of CANN's log with level INFO: without the log's variables nothing appears.
    WriteLogLine(ACL_INFO, __func__, "", 0,
                 Concat("graph ", graph->id(), " task ", i, " stream ", captured.stream_id, ": ",
                        captured.task->name()));
  }
  return ACL_SUCCESS;
}
