// A reference to an asynchronous call.
#pragma once

#include <memory>
#include <utility>

namespace opserve {

// Internal: a call that can be ended early. Thread-safe.
class CancellableCall {
 public:
  // No effect once the call has ended.
  virtual void Cancel() = 0;

 protected:
  ~CancellableCall() = default;
};

// Refers to an asynchronous call. A value type; may outlive the call and the client. Thread-safe.
class CallHandle {
 public:
  CallHandle() = default;
  explicit CallHandle(std::weak_ptr<CancellableCall> call) : call_(std::move(call)) {}

  // Asks for the end of the call: its callback runs soon, with kCancelled or the result that was on
  // its way. No effect once the call has ended.
  void Cancel() const {
    if (const std::shared_ptr<CancellableCall> call = call_.lock()) call->Cancel();
  }

 private:
  std::weak_ptr<CancellableCall> call_;
};

}  // namespace opserve
