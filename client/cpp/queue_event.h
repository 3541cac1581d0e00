// Internal: what the events of a completion queue of several kinds of operations are for.
#pragma once

namespace opserve {

// The tag of an operation, as `static_cast<QueueEvent*>`; outlives it.
class QueueEvent {
 public:
  // Handles the end of the operation, on the thread that polls the queue. `ok` is gRPC's.
  virtual void Complete(bool ok) = 0;

 protected:
  ~QueueEvent() = default;
};

}  // namespace opserve
