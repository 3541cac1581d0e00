// A server that answers as a test tells it, over a socket, with a health service.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/request.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "opserve/v1/operator_service.grpc.pb.h"

namespace opserve {

// Requests that it can answer.
inline Request RequestOf(Tensor tensor) {
  return {.invocations = {{.operator_name = "Scale", .inputs = {{"x", std::move(tensor)}}}}};
}
inline Request SmallRequest() { return RequestOf(Tensor::Owning<float>({2}, {1, 2})); }

// Thread-safe.
class ScriptedServer final : public v1::OperatorService::Service {
 public:
  // What becomes of the next call, whose number, from 1 on, is `call`. OK: it is answered, Execute
  // with the payloads as one-dimensional FLOAT results.
  using Script = std::function<grpc::Status(int call, grpc::ServerContext* context)>;

  struct Call {
    absl::Time arrival;
    std::vector<std::string> payloads;
  };

  // Listens at "unix:PATH" or "HOST:PORT" (0: any port) and serves. Aborts the test program if that
  // cannot be.
  explicit ScriptedServer(
      const std::string& address = "127.0.0.1:0",
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials());
  ~ScriptedServer() override;

  const std::string& target() const { return target_; }
  void set_script(Script script) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<Call> calls() ABSL_LOCKS_EXCLUDED(mutex_);
  int num_calls() { return static_cast<int>(calls().size()); }

  // What health says; at first, that it serves.
  void SetServing(bool is_serving);

 private:
  grpc::Status Execute(grpc::ServerContext* context, const v1::ExecuteRequest* request,
                       v1::ExecuteResponse* response) override;
  grpc::Status GetServerStatus(grpc::ServerContext* context,
                               const v1::GetServerStatusRequest* request,
                               v1::GetServerStatusResponse* response) override;

  // Records the call and gives what the script says about it.
  grpc::Status Answer(grpc::ServerContext* context, std::vector<std::string> payloads)
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::string target_;
  absl::Mutex mutex_;
  Script script_ ABSL_GUARDED_BY(mutex_);
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace opserve
