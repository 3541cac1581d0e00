#include "server/grpc/unknown_method_call.h"

namespace opserve::server {

void UnknownMethodCall::Listen(grpc::AsyncGenericService& service, ServerCalls& calls,
                               grpc::ServerCompletionQueue* queue) {
  if (calls.accepts_more.load(std::memory_order_acquire)) {
    new UnknownMethodCall(service, calls, queue);
  }
}

UnknownMethodCall::UnknownMethodCall(grpc::AsyncGenericService& service, ServerCalls& calls,
                                     grpc::ServerCompletionQueue* queue)
    : service_(service), calls_(calls), queue_(queue) {
  calls_.alive.Add();
  service_.RequestCall(&rpc_, &stream_, queue_, queue_, &arrival_);
}

UnknownMethodCall::~UnknownMethodCall() { calls_.alive.Remove(); }

void UnknownMethodCall::OnArrival(bool ok) {
  // The server shuts down.
  if (!ok) {
    delete this;
    return;
  }
  calls_.open.Add();
  Listen(service_, calls_, queue_);
  write_.Begin();
  // Without reading: a call that is refused costs no message.
  stream_.Finish({grpc::StatusCode::UNIMPLEMENTED, "this listener has no such method"}, &finished_);
}

void UnknownMethodCall::OnFinished(bool /*ok*/) {
  write_.End();
  calls_.open.Remove();
  delete this;
}

}  // namespace opserve::server
