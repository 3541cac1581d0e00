#include "ops/host_cann/runtime/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/faults.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {

CapturedTask::CapturedTask(std::shared_ptr<Task> captured, const Stream& stream)
    : task(std::move(captured)), stream_id(stream.id()) {
  // The blocks are kept weakly: a graph does not keep memory alive, and a replay can tell that it
  // has gone.
  for (const MemoryRange& range : task->memory()) {
    if (range.bytes == 0) continue;
    const BlockPtr block = FindTaskMemory(stream.device(), range.address, range.bytes);
    // Remembered instead of refused: the replay fails, as a kernel outside a capture fails when it
    // runs.
    touches_dead_memory = touches_dead_memory || block == nullptr;
    if (block != nullptr) blocks.push_back(block);
  }
}

ReplayPlan::ReplayPlan(std::vector<CapturedTask> captured) : tasks(std::move(captured)) {
  // By owner, since a weak pointer that has expired still has to be told from others.
  std::set<std::weak_ptr<const MemoryBlock>, std::owner_less<>> all;
  for (const CapturedTask& task : tasks) {
    num_kernels += task.task->is_kernel() ? 1 : 0;
    runs_on_any_thread = runs_on_any_thread && task.task->runs_on_any_thread();
    touches_dead_memory = touches_dead_memory || task.touches_dead_memory;
    all.insert(task.blocks.begin(), task.blocks.end());
  }
  blocks.assign(all.begin(), all.end());
}

uint64_t ReplayPlan::Work() const {
  uint64_t work = 0;
  for (const CapturedTask& task : tasks) {
    const uint64_t own = task.task->work();
    // One long task makes the whole replay long, and sums of such numbers could overflow.
    if (own > kShortWork) return UINT64_MAX;
    work += own;
  }
  return work;
}

TaskResult ReplayPlan::CheckMemory() const {
  if (!Runtime::Get().settings().checked) return {};
  const auto is_live = [](const std::weak_ptr<const MemoryBlock>& weak) {
    const BlockPtr block = weak.lock();
    return block != nullptr && Runtime::Get().memory().Holds(block);
  };
  // The same block, not the same address: memory that was freed and allocated again holds other
  // data.
  if (!touches_dead_memory && std::all_of(blocks.begin(), blocks.end(), is_live)) return {};
  return TaskResult::Failure(ACL_ERROR_RT_VECTOR_CORE_EXCEPTION,
                             "replay: memory of a captured task was not live then, or has been "
                             "freed since");
}

void Graph::SetTasks(std::vector<CapturedTask> tasks) {
  // Built outside the lock: sums and blocks of many tasks take a while.
  auto plan = std::make_shared<const ReplayPlan>(std::move(tasks));
  MutexLock lock(mutex_);
  plan_ = std::move(plan);
}

void Graph::Replace(const std::vector<size_t>& indices, const std::vector<CapturedTask>& tasks) {
  std::shared_ptr<const ReplayPlan> old;  // declared first: its tasks end outside the lock
  MutexLock lock(mutex_);
  // A copy of the plan: replays under way keep the old one, and no lock is held while they run.
  std::vector<CapturedTask> all = plan_->tasks;
  for (size_t i = 0; i < indices.size(); ++i) all[indices[i]] = tasks[i];
  old = std::exchange(plan_, std::make_shared<const ReplayPlan>(std::move(all)));
}

std::shared_ptr<const ReplayPlan> Graph::plan() {
  MutexLock lock(mutex_);
  return plan_;
}

aclError Graph::FindPlan(std::shared_ptr<const ReplayPlan>* plan) {
  *plan = this->plan();
  if (*plan != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_MODEL_CAPTURED, kCallOrder,
              Concat("graph ", id_, " is still being captured"));
}

namespace {

class ReplaceTask final : public Task {
 public:
  ReplaceTask(std::shared_ptr<Graph> graph, std::shared_ptr<TaskGroup> group,
              std::vector<CapturedTask> tasks)
      : graph_(std::move(graph)), group_(std::move(group)), tasks_(std::move(tasks)) {}

  TaskResult Run(Stream&) override {
    graph_->Replace(group_->indices, tasks_);
    return {};
  }
  const char* name() const override { return "task update"; }
  // Prompt although the graph may be large: handing it over costs more than copying a plan.
  bool is_prompt() const override { return true; }
  bool needs_device() const override { return false; }

 private:
  const std::shared_ptr<Graph> graph_;
  const std::shared_ptr<TaskGroup> group_;
  const std::vector<CapturedTask> tasks_;
};

class ReplayTask final : public Task {
 public:
  // Judged by the plan at the time of queueing. An update in between may change the work, but puts
  // kernels in place of kernels, which all run on any thread.
  ReplayTask(std::shared_ptr<Graph> graph, std::shared_ptr<const ReplayPlan> plan)
      : graph_(std::move(graph)),
        work_(plan->Work()),
        num_kernels_(plan->num_kernels),
        runs_on_any_thread_(plan->runs_on_any_thread) {}

  void OnAccepted(Stream& stream, bool /*is_captured*/) override {
    // Each kernel of the graph is a launch for the counters, though the host was charged for one.
    stream.device().launches += num_kernels_;
  }
  TaskResult Run(Stream& stream) override {
    // As it is now: an update queued before this replay counts.
    const std::shared_ptr<const ReplayPlan> plan = graph_->plan();
    TaskResult result = plan->CheckMemory();
    for (const CapturedTask& captured : plan->tasks) {
      if (result.code != ACL_SUCCESS) break;
      // Between tasks: one that has begun ends by itself or looks at the same flag.
      if (stream.IsInterrupted()) return TaskResult::Cancelled();
      result = captured.task->Run(stream);
    }
    return result;
  }
  const char* name() const override { return "replay"; }
  bool runs_on_any_thread() const override { return runs_on_any_thread_; }
  // Any task of the graph may meet a fault that hangs or slows it, which the sum does not know.
  uint64_t work() const override { return Faults::Get().AnyOfKernels() ? UINT64_MAX : work_; }

 private:
  const std::shared_ptr<Graph> graph_;
  const uint64_t work_;
  const int64_t num_kernels_;
  const bool runs_on_any_thread_;
};

}  // namespace

aclError TaskUpdate::Take(const Stream& stream, std::unique_ptr<Task>& task) {
  if (!task->is_kernel()) {
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT, kCallOrder,
                Concat("stream ", stream.id(),
                       " updates a group of tasks, which takes kernels, not a ", task->name()));
  }
  tasks_.emplace_back(std::move(task), stream);
  return ACL_SUCCESS;
}

aclError TaskUpdate::Finish(std::unique_ptr<Task>* task) {
  std::shared_ptr<Graph> graph = group_->graph.lock();
  // Destroyed while the update was open.
  if (graph == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, kBadArgument, "the group's graph has been destroyed");
  }
  // Fewer or more kernels than the group would leave the plan with old ones, or have no place.
  if (tasks_.size() != group_->indices.size()) {
    return Fail(
        ACL_ERROR_RT_INTERNAL_ERROR, kCallOrder,
        Concat("the update has ", tasks_.size(), " tasks, the group ", group_->indices.size()));
  }
  *task = std::make_unique<ReplaceTask>(std::move(graph), group_, std::move(tasks_));
  return ACL_SUCCESS;
}

std::unique_ptr<Task> MakeReplayTask(std::shared_ptr<Graph> graph,
                                     std::shared_ptr<const ReplayPlan> plan) {
  return std::make_unique<ReplayTask>(std::move(graph), std::move(plan));
}

}  // namespace opserve::host_cann
