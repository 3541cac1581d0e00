// Internal: the purposes of events of a completion queue that serves several kinds of operations.
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
