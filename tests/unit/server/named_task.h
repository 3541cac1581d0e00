// Tasks that wait in a queue under a name, for tests of queues alone.
#pragma once

#include <memory>
#include <utility>

#include "server/schedule/policy/fair_queue.h"

namespace opserve::server {

template <typename Name>
struct NamedTask final : QueuedTask {
  explicit NamedTask(Name name) : name(std::move(name)) {}
  const Name name;
};

template <typename Name>
std::unique_ptr<QueuedTask> Named(Name name) {
  return std::make_unique<NamedTask<Name>>(std::move(name));
}

template <typename Name>
const Name& NameOf(const QueueEntry& entry) {
  return static_cast<const NamedTask<Name>&>(*entry.task).name;
}

}  // namespace opserve::server
