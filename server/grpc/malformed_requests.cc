#include "server/grpc/malformed_requests.h"

#include <memory>
#include <utility>
#include <vector>

#include "grpcpp/support/interceptor.h"
#include "grpcpp/support/server_interceptor.h"
#include "proto/status/error.h"
#include "server/grpc/status_conversion.h"

namespace opserve::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

// Of one call. gRPC's own handlers tell of a message that is none by handing interceptors no
// message, then by the status INTERNAL.
class MalformedRequests final : public grpc::experimental::Interceptor {
 public:
  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE)) {
      has_message_ = methods->GetRecvMessage() != nullptr;
    }
    // An INTERNAL of the method itself had a message, and stays as it is.
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS) &&
        !has_message_ && methods->GetSendStatus().error_code() == grpc::StatusCode::INTERNAL) {
      Refuse(methods);
    }
    methods->Proceed();
  }

 private:
  static void Refuse(InterceptorBatchMethods* methods) {
    const absl::Status status = InvalidCall("", "", "malformed message", /*aclnn_status=*/0);
    const v1::StatusDetails details = ToStatusDetails(status);
    methods->ModifySendStatus(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, details.message(),
                                           details.SerializeAsString()));
    methods->GetSendTrailingMetadata()->emplace("opserve-reason",
                                                std::string(ReasonText(Reason::kInvalid)));
  }

  bool has_message_ = true;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* /*info*/) override {
    return new MalformedRequests;  // gRPC's
  }
};

}  // namespace

void RefuseMalformedRequests(grpc::ServerBuilder* builder) {
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> factories;
  factories.push_back(std::make_unique<Factory>());
  builder->experimental().SetInterceptorCreators(std::move(factories));
}

}  // namespace opserve::server
