// A single call that runs a program, from arrival to the confirmation that its answer was sent,
// whatever its protocol says.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/grpc/call_context.h"
#include "server/grpc/completion_event.h"
#include "server/grpc/given_message.h"
#include "server/request/request_end.h"
#include "server/run/call_state.h"

namespace opserve::server {

// Owns itself: it waits for a call, serves it and destroys itself after its last event. The
// handlers run on the queue's polling thread; only the answer may come from a device's thread.
//
// Derived classes define the virtual functions; their constructors ask their service for a call,
// with rpc_, request_, writer_, queue_ and arrival_.
class SingleCall {
 public:
  SingleCall(const SingleCall&) = delete;
  SingleCall& operator=(const SingleCall&) = delete;

 protected:
  SingleCall(CallContext& context, grpc::ServerCompletionQueue* queue);
  virtual ~SingleCall();

  // Waits for the next call of the kind, unless the server takes no more.
  virtual void ListenForNext() = 0;
  // Takes request_ apart and starts its execution, for BeginCall's state; or refuses it. Either
  // ends in Answer.
  virtual void Start(Tenant* tenant, const StageClock& clock) = 0;
  virtual grpc::ByteBuffer BuildAnswer(const RequestAnswer& answer) const = 0;
  // Translates an error into the protocol's terms, for its clients.
  virtual absl::Status ErrorFor(const absl::Status& status) const { return status; }

  // Makes the state of the call, which ends with the call's deadline, or after `timeout`.
  std::shared_ptr<CallState> BeginCall(absl::Duration timeout = absl::InfiniteDuration());

  // The last thing that happens to a call before OnFinished; `this` must not be used after it by
  // another thread than the polling one.
  void Answer(const RequestEnd& end);

  CallContext& context_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext rpc_;
  grpc::ByteBuffer request_;
  uint64_t connection_ = 0;  // ConnectionKey, from Start on
  bool is_local_ = false;    // at a Unix socket, likewise
  grpc::ServerAsyncResponseWriter<GivenMessage> writer_{&rpc_};

 private:
  void OnArrival(bool ok);
  void OnFinished(bool ok);
  void OnDone(bool ok);
  void DestroyAfterLastEvent();

 protected:
  MemberEvent<SingleCall, &SingleCall::OnArrival> arrival_{this};

 private:
  WriteWatch::Write write_{context_.calls->writes, rpc_};
  MemberEvent<SingleCall, &SingleCall::OnFinished> finished_{this};
  MemberEvent<SingleCall, &SingleCall::OnDone> done_{this};
  std::shared_ptr<CallState> state_;  // from BeginCall on
  int events_to_come_ = 0;            // OnFinished, OnDone
  bool is_in_flight_ = false;         // counted in context_.in_flight
};

}  // namespace opserve::server
