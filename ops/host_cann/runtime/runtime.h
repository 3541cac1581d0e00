// The process's host CANN: settings, devices, and the objects of handles.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/host_cann/runtime/context.h"
#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/event.h"
#include "ops/host_cann/runtime/graph.h"
#include "ops/host_cann/runtime/handle_table.h"
#include "ops/host_cann/runtime/memory_table.h"
#include "ops/host_cann/runtime/notify.h"
#include "ops/host_cann/runtime/settings.h"
#include "ops/host_cann/runtime/stream.h"

namespace opserve::host_cann {

// Thread-safe. Never destroyed: streams and helpers may run until the process ends.
class Runtime {
 public:
  static Runtime& Get();

  // Not empty: the environment holds a malformed value, and nothing works.
  const std::string& settings_error() const { return settings_.error; }
  const Settings& settings() const { return settings_; }

  int num_devices() const { return static_cast<int>(devices_.size()); }
  // Null: no such device.
  Device* FindDevice(int64_t id) const {
    return id >= 0 && id < num_devices() ? devices_[id].get() : nullptr;
  }

  HandleTable<Context>& contexts() { return contexts_; }
  HandleTable<Stream>& streams() { return streams_; }
  HandleTable<Event>& events() { return events_; }
  HandleTable<Notify>& notifies() { return notifies_; }
  HandleTable<Graph>& graphs() { return graphs_; }
  HandleTable<TaskGroup>& task_groups() { return task_groups_; }
  MemoryTable& memory() { return memory_; }

  // Ends the running tasks of all devices' streams and drops the queued ones, without waiting.
  void StopWork();

  // Forgets the graphs that `matches`, and their groups of tasks.
  template <typename Matches>
  void ForgetGraphs(Matches matches) {
    const std::vector<std::shared_ptr<Graph>> forgotten = graphs_.RemoveIf(matches);
    task_groups_.RemoveIf([&](const TaskGroup& group) {
      return std::find(forgotten.begin(), forgotten.end(), group.graph.lock()) != forgotten.end();
    });
  }

  // Drops every context, stream, event, notify, graph and memory of a device.
  void ForgetDevice(Device& device);

 private:
  Runtime();

  Settings settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  HandleTable<Context> contexts_;
  HandleTable<Stream> streams_;
  HandleTable<Event> events_;
  HandleTable<Notify> notifies_;
  HandleTable<Graph> graphs_;
  HandleTable<TaskGroup> task_groups_;
  MemoryTable memory_;
};

}  // namespace opserve::host_cann
