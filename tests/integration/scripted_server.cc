#include "tests/integration/scripted_server.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/server_builder.h"

namespace opserve {

ScriptedServer::ScriptedServer(const std::string& address,
                               std::shared_ptr<grpc::ServerCredentials> credentials)
    : target_(address) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, std::move(credentials), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
  if (!absl::StartsWith(address, "unix:")) {
    target_ = absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
  }
  SetServing(true);
}

ScriptedServer::~ScriptedServer() { server_->Shutdown(); }

void ScriptedServer::set_script(Script script) {
  absl::MutexLock lock(&mutex_);
  script_ = std::move(script);
}

std::vector<ScriptedServer::Call> ScriptedServer::calls() {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

void ScriptedServer::SetServing(bool is_serving) {
  server_->GetHealthCheckService()->SetServingStatus(is_serving);
}

grpc::Status ScriptedServer::Answer(grpc::ServerContext* context,
                                    std::vector<std::string> payloads) {
  Script script;
  int call = 0;
  {
    absl::MutexLock lock(&mutex_);
    calls_.push_back({absl::Now(), std::move(payloads)});
    call = static_cast<int>(calls_.size());
    script = script_;
  }
  return script ? script(call, context) : grpc::Status::OK;
}

grpc::Status ScriptedServer::Execute(grpc::ServerContext* context,
                                     const v1::ExecuteRequest* request,
                                     v1::ExecuteResponse* response) {
  for (const std::string& payload : request->payloads()) {
    v1::Tensor* tensor = response->add_results()->mutable_tensor();
    tensor->set_dtype(v1::DATA_TYPE_FLOAT);
    tensor->add_shape(static_cast<int64_t>(payload.size() / sizeof(float)));
    tensor->set_payload(response->payloads_size());
    response->add_payloads(payload);
  }
  return Answer(context, {request->payloads().begin(), request->payloads().end()});
}

grpc::Status ScriptedServer::GetServerStatus(grpc::ServerContext* context,
                                             const v1::GetServerStatusRequest*,
                                             v1::GetServerStatusResponse*) {
  return Answer(context, {});
}

}  // namespace opserve
