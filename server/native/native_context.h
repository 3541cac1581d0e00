// What the executing calls of the native protocol share.
#pragma once

#include <memory>
#include <vector>

#include "opserve/v1/operator_service.grpc.pb.h"
#include "server/grpc/call_context.h"
#include "server/grpc/given_message.h"
#include "server/native/known_requests.h"
#include "server/schedule/lanes/visitor.h"

namespace opserve::server {

// All methods take and give raw slices: Execute, ExecuteStream and Session so that tensor bytes
// never become a protobuf string, the small calls so that a malformed message has our answer
// (unary_call.h). Reflection still sees the ordinary service.
using AsyncOperatorService = GivingService<v1::OperatorService::WithRawMethod_ListOperators<
    v1::OperatorService::WithRawMethod_Execute<v1::OperatorService::WithRawMethod_ExecuteStream<
        v1::OperatorService::WithRawMethod_Session<v1::OperatorService::WithRawMethod_Prepare<
            v1::OperatorService::WithRawMethod_ReleasePrograms<
                v1::OperatorService::WithRawMethod_GetServerStatus<
                    v1::OperatorService::Service>>>>>>>>;

// All pointers outlive the calls.
struct NativeContext : CallContext {
  AsyncOperatorService* service = nullptr;
  // By visitor (server/schedule/lanes/visitor.h).
  std::vector<std::unique_ptr<KnownRequests>> known_requests;

  // Those of the calling thread, if it is a polling one.
  KnownRequests* KnownRequestsOfThread() const { return OfThisVisitor(known_requests); }
};

}  // namespace opserve::server
