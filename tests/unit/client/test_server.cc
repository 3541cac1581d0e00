#include "tests/unit/client/test_server.h"

#include <cstdlib>
#include <filesystem>

#include "google/protobuf/text_format.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace opserve {
namespace {

void DescribeScale(v1::OperatorDescriptor* scale) {
  scale->set_name("Scale");
  scale->set_summary("Multiplies x by a factor.");
  scale->set_documentation("Given x and y:\n\n    out = factor * x + 0 * y\n\nNaN stays NaN.");
  scale->set_available(true);
  for (const char* name : {"x", "y"}) {
    v1::InputDescriptor* input = scale->add_inputs();
    input->set_name(name);
    input->set_documentation(std::string("The operand ") + name + ".");
    input->add_dtypes(v1::DATA_TYPE_FLOAT);
    input->add_dtypes(v1::DATA_TYPE_BF16);
  }
  v1::AttributeDescriptor* factor = scale->add_attributes();
  factor->set_name("factor");
  factor->set_type(v1::AttributeDescriptor::TYPE_DOUBLE);
  factor->mutable_default_value()->set_double_value(1.5);
  v1::AttributeDescriptor* mode = scale->add_attributes();
  mode->set_name("mode");
  mode->set_type(v1::AttributeDescriptor::TYPE_INT64);
  mode->mutable_default_value()->set_int64_value(1);
  mode->set_minimum(0);
  mode->set_maximum(3);
  int64_t value = 0;
  for (const char* name : {"none", "mean"}) {
    v1::NamedValue* named = mode->add_names();
    named->set_name(name);
    named->set_value(value++);
  }
  v1::AttributeDescriptor* negate = scale->add_attributes();
  negate->set_name("negate");
  negate->set_type(v1::AttributeDescriptor::TYPE_BOOL);
  negate->mutable_default_value()->set_bool_value(false);
  v1::OutputDescriptor* out = scale->add_outputs();
  out->set_name("out");
  out->add_dtypes(v1::DATA_TYPE_FLOAT);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "opserve-test-XXXXXX";
  const char* created = mkdtemp(pattern.data());
  if (created == nullptr) std::abort();
  path_ = created;
}

TemporaryDirectory::~TemporaryDirectory() { std::filesystem::remove_all(path_); }

TestServer::TestServer() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort(admin_target(), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  builder.RegisterService(&tensors_);
  builder.RegisterService(&admin_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
}

std::unique_ptr<Client> TestServer::Connect() const {
  return *Client::Connect(target(), {.wait_for_ready = absl::Seconds(30)});
}

TestServer::~TestServer() {
  LetGo();
  server_->Shutdown();
}

void TestServer::HoldCalls() {
  set_execute([this](auto* context, const auto& request, auto* response) {
    let_go_.WaitForNotification();
    return Echo(context, request, response);
  });
}

void TestServer::set_prepare(PrepareHandler prepare) {
  absl::MutexLock lock(&mutex_);
  prepare_ = std::move(prepare);
}

grpc::Status TestServer::Prepare(grpc::ServerContext* /*context*/,
                                 const v1::PrepareRequest* request, v1::PrepareResponse* response) {
  PrepareHandler prepare;
  {
    absl::MutexLock lock(&mutex_);
    prepare = prepare_;
  }
  if (prepare == nullptr) return {grpc::StatusCode::UNIMPLEMENTED, "no programs"};
  prepare(*request, response);
  return grpc::Status::OK;
}

void TestServer::LetGo() {
  if (!let_go_.HasBeenNotified()) let_go_.Notify();
}

void TestServer::set_status(const v1::GetServerStatusResponse& status) {
  absl::MutexLock lock(&mutex_);
  status_ = status;
}

void TestServer::set_execute(Handler execute) {
  absl::MutexLock lock(&mutex_);
  execute_ = std::move(execute);
}

void TestServer::set_session(SessionHandler session) {
  absl::MutexLock lock(&mutex_);
  session_ = std::move(session);
}

void TestServer::add_operator(const std::string& descriptor) {
  absl::MutexLock lock(&mutex_);
  if (!google::protobuf::TextFormat::ParseFromString(descriptor, &added_.emplace_back())) {
    std::abort();
  }
}

v1::ExecuteRequest TestServer::last_request() {
  absl::MutexLock lock(&mutex_);
  return last_request_;
}

grpc::Status TestServer::Echo(grpc::ServerContext*, const v1::ExecuteRequest& request,
                              v1::ExecuteResponse* response) {
  const v1::Invocation& last = request.invocations(request.invocations_size() - 1);
  const v1::Tensor& tensor = last.inputs(0).tensor();
  v1::Result* result = response->add_results();
  result->mutable_source()->set_invocation(request.invocations_size() - 1);
  result->mutable_source()->set_output("out");
  result->mutable_tensor()->set_dtype(tensor.dtype());
  *result->mutable_tensor()->mutable_shape() = tensor.shape();
  result->mutable_tensor()->set_payload(0);
  if (tensor.has_resident_tensor()) {
    result->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    response->add_payloads(std::string(4, '\0'));
  } else {
    response->add_payloads(request.payloads(tensor.payload()));
  }
  if (request.want_receipt()) {
    response->mutable_receipt()->set_execute_ns(1500);
    response->mutable_receipt()->set_total_ns(3000);
    response->mutable_receipt()->set_plan_hits(1);
    response->mutable_receipt()->set_device_memory_bytes(2048);
    response->mutable_receipt()->set_pool_outcome(v1::Receipt::POOL_OUTCOME_HIT);
  }
  return grpc::Status::OK;
}

grpc::Status TestServer::ListOperators(grpc::ServerContext*,
                                       const v1::ListOperatorsRequest* request,
                                       v1::ListOperatorsResponse* response) {
  absl::MutexLock lock(&mutex_);
  for (const v1::OperatorDescriptor& added : added_) {
    const bool is_named = request->names_size() == 1 && request->names(0) == added.name();
    if (is_named || request->names().empty()) *response->add_operators() = added;
    if (is_named) return grpc::Status::OK;
  }
  for (const std::string& name : request->names()) {
    if (name != "Scale") return {grpc::StatusCode::NOT_FOUND, "no operator " + name};
  }
  DescribeScale(response->add_operators());
  if (request->names().empty()) response->add_operators()->set_name("Absent");
  return grpc::Status::OK;
}

grpc::Status TestServer::Execute(grpc::ServerContext* context, const v1::ExecuteRequest* request,
                                 v1::ExecuteResponse* response) {
  Handler execute;
  {
    absl::MutexLock lock(&mutex_);
    last_request_ = *request;
    execute = execute_;
  }
  return execute(context, *request, response);
}

grpc::Status TestServer::Session(grpc::ServerContext* context, SessionStream* stream) {
  SessionHandler handler;
  {
    absl::MutexLock lock(&mutex_);
    handler = session_;
  }
  return handler ? handler(context, stream) : Service::Session(context, stream);
}

grpc::Status TestServer::GetServerStatus(grpc::ServerContext*, const v1::GetServerStatusRequest*,
                                         v1::GetServerStatusResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    if (status_) {
      *response = *status_;
      return grpc::Status::OK;
    }
  }
  response->set_version("1.2.3");
  response->set_runtime("host CANN");
  response->mutable_start_time()->set_seconds(1700000000);
  v1::DeviceStatus* device = response->add_devices();
  device->set_device(0);
  device->set_soc_name("TestSoC");
  device->set_state(v1::DeviceStatus::STATE_READY);
  device->set_lanes(4);
  device->set_queued_requests(7);
  device->set_memory_total_bytes(uint64_t{64} << 30);
  device->set_completed_requests(12345);
  device->set_resident_tensors(3);
  device->set_resident_bytes(1536);
  v1::DeviceStatus* lost = response->add_devices();
  lost->set_device(1);
  lost->set_soc_name("TestSoC");
  lost->set_state(v1::DeviceStatus::STATE_QUARANTINED);
  lost->set_state_reason("lost (507899)");
  lost->set_quarantines(2);
  v1::WrongOperator* wrong = device->add_wrong_operators();
  wrong->set_operator_("Scale");
  wrong->set_problem("golden case: element 0 is 3, must be 1");
  return grpc::Status::OK;
}

}  // namespace opserve
