// A caller whose request has an idempotency key or an identity: it may share one run with others.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/request/request.h"
#include "server/request/request_end.h"
#include "server/request/request_input.h"

namespace opserve::server {

// Used by one thread at a time: the one that starts it, then the one that ends it.
class KeyedCaller {
 public:
  // Finds the run or the answer of an equal request, or makes `request` the run, which has a call
  // state of its own, with the deadline of this caller: it goes on as long as anybody waits for it.
  // As Request::Start, of a request that was let in.
  static void Start(std::unique_ptr<Request> request, const RequestInput& input);

 private:
  KeyedCaller(RequestEnd own, OnRequestEnd on_end)
      : own_(std::move(own)), on_end_(std::move(on_end)) {}

  // Tells the caller how the run ended. The run's stages and device matter only to the caller that
  // made it; the others just waited.
  void Tell(const RequestEnd& run);
  // Tells the caller that it left before the end, for this reason.
  void TellLeft(const absl::Status& why);

  RequestEnd own_;
  OnRequestEnd on_end_;
  bool makes_the_run_ = false;
};

}  // namespace opserve::server
