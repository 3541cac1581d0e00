// A caller whose request has an idempotency key or an identity: it may share one run with others.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/request/idempotency_cache.h"
#include "server/request/request.h"
#include "server/request/request_end.h"
#include "server/request/request_input.h"

namespace opserve::server {

// Used by one thread at a time: the one that starts it, then the one that ends it.
class KeyedCaller {
 public:
  // By which the request is known. With an idempotency key it has no digest yet.
  static IdempotencyCache::Repeatable RepeatableOf(const RequestInput& input);

  // Finds the run or the answer of an equal request: null, and the caller is told, now or when that
  // run ends. Otherwise gives `request` back, which is the run and has a call state of its own,
  // with the deadline of this caller: it goes on as long as anybody waits for it.
  static std::unique_ptr<Request> Enter(std::unique_ptr<Request> request,
                                        IdempotencyCache::Repeatable repeatable);

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
