// Calls of methods that no service has.
#pragma once

#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "server/grpc/call_counter.h"
#include "server/grpc/completion_event.h"

namespace opserve::server {

// Refuses one call and destroys itself. gRPC would refuse it without saying why, which some clients
// take for success. (Where a processor of ours checks calls, it does so before this.)
class UnknownMethodCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(grpc::AsyncGenericService& service, ServerCalls& calls,
                     grpc::ServerCompletionQueue* queue);

 private:
  UnknownMethodCall(grpc::AsyncGenericService& service, ServerCalls& calls,
                    grpc::ServerCompletionQueue* queue);
  ~UnknownMethodCall();

  void OnArrival(bool ok);
  void OnFinished(bool ok);

  grpc::AsyncGenericService& service_;
  ServerCalls& calls_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::GenericServerContext rpc_;
  grpc::GenericServerAsyncReaderWriter stream_{&rpc_};
  WriteWatch::Write write_{calls_.writes, rpc_};
  MemberEvent<UnknownMethodCall, &UnknownMethodCall::OnArrival> arrival_{this};
  MemberEvent<UnknownMethodCall, &UnknownMethodCall::OnFinished> finished_{this};
};

}  // namespace opserve::server
