// The events of a completion queue.
#pragma once

namespace opserve::server {

// The tag of one operation on a completion queue. Every event of a queue is handled by the one
// thread that polls it, so data that only these handlers touch needs no lock.
class CompletionEvent {
 public:
  virtual ~CompletionEvent() = default;
  // The operation has ended; `ok` as gRPC defines it for the operation. May destroy the call the
  // event belongs to. Must not block.
  virtual void Complete(bool ok) = 0;
};

// Calls a member function of the call it belongs to.
template <typename Call, void (Call::*kHandler)(bool ok)>
class MemberEvent final : public CompletionEvent {
 public:
  explicit MemberEvent(Call* call) : call_(call) {}
  void Complete(bool ok) override { (call_->*kHandler)(ok); }

 private:
  Call* const call_;
};

}  // namespace opserve::server
