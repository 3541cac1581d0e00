// Captured graphs: tasks that were recorded instead of run, to be run again and again as one task.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/context.h"
#include "ops/host_cann/runtime/memory_table.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/task.h"

namespace opserve::host_cann {

struct CapturedTask {
  std::shared_ptr<Task> task;
  int32_t stream_id = 0;                                 // of the stream that it was queued on
  std::vector<std::weak_ptr<const MemoryBlock>> blocks;  // that it touches
  bool touches_dead_memory = false;                      // and others that were not live then

  CapturedTask(std::shared_ptr<Task> task, const Stream& stream);
};

// What a replay runs, and the sums that it needs of it.
struct ReplayPlan {
  std::vector<CapturedTask>
      tasks;  // in the order they were queued, which is also an order of events
  std::vector<std::weak_ptr<const MemoryBlock>> blocks;  // of all tasks, each once
  bool touches_dead_memory = false;                      // some task does
  bool runs_on_any_thread = true;
  int64_t num_kernels = 0;

  // As Task's, of all tasks.
  uint64_t Work() const;

  explicit ReplayPlan(std::vector<CapturedTask> captured);

  // 507035, in checked mode, unless all of the memory is what it was when the tasks were captured:
  // the same bytes at the same place of an allocation made since are an error too.
  TaskResult CheckMemory() const;
};

// Thread-safe. Held by its handle, by its capture and by replays.
class Graph {
 public:
  Graph(std::shared_ptr<Context> context, uint32_t id) : context_(std::move(context)), id_(id) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  const std::shared_ptr<Context>& context() const { return context_; }
  uint32_t id() const { return id_; }

  // Of the runtime's table; set once, before others see the graph.
  void set_handle(aclmdlRI handle) { handle_ = handle; }
  aclmdlRI handle() const { return handle_; }

  // The capture has ended well.
  void SetTasks(std::vector<CapturedTask> tasks) ABSL_LOCKS_EXCLUDED(mutex_);
  // Replaces the tasks of these indices. Replays that have begun run the old ones.
  void Replace(const std::vector<size_t>& indices, const std::vector<CapturedTask>& tasks)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Null: the capture has not ended.
  std::shared_ptr<const ReplayPlan> plan() ABSL_LOCKS_EXCLUDED(mutex_);
  // The same. 107026: null.
  aclError FindPlan(std::shared_ptr<const ReplayPlan>* plan);

 private:
  const std::shared_ptr<Context> context_;
  const uint32_t id_;
  aclmdlRI handle_ = nullptr;

  Mutex mutex_;
  std::shared_ptr<const ReplayPlan> plan_ ABSL_GUARDED_BY(mutex_);
};

// Kernels of a graph that can be replaced. Thread-safe.
struct TaskGroup {
  explicit TaskGroup(std::weak_ptr<Graph> owner) : graph(std::move(owner)) {}

  const std::weak_ptr<Graph> graph;
  std::vector<size_t> indices;  // of the graph's tasks; does not change once others see the group
  std::atomic<bool> is_updated{false};  // by some stream
};

// Kernels that a stream takes in place of those of a group. Guarded by the stream.
class TaskUpdate {
 public:
  explicit TaskUpdate(std::shared_ptr<TaskGroup> group) : group_(std::move(group)) {}
  ~TaskUpdate() { group_->is_updated = false; }
  TaskUpdate(const TaskUpdate&) = delete;
  TaskUpdate& operator=(const TaskUpdate&) = delete;

  // 507009: not a kernel. `task` then stays the caller's.
  aclError Take(const Stream& stream, std::unique_ptr<Task>& task);
  // The task that replaces them. 507000: not as many as the group has. 107017: no graph any more.
  aclError Finish(std::unique_ptr<Task>* task);

 private:
  const std::shared_ptr<TaskGroup> group_;
  std::vector<CapturedTask> tasks_;
};

// Runs the graph's tasks, as they are when its turn comes, up to the first that fails.
std::unique_ptr<Task> MakeReplayTask(std::shared_ptr<Graph> graph,
                                     std::shared_ptr<const ReplayPlan> plan);

}  // namespace opserve::host_cann
