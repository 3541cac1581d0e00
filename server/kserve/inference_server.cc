#include "server/kserve/inference_server.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/kserve/infer_call.h"
#include "server/kserve/infer_stream_call.h"
#include "server/kserve/model_description.h"
#include "server/kserve/model_statistics.h"
#include "server/kserve/models.h"
#include "server/kserve/shared_memory_methods.h"

namespace opserve::server {
namespace {

absl::Status Unsupported(absl::string_view message) { return absl::UnimplementedError(message); }

absl::Status NoRepositories(absl::string_view name) {
  return Unsupported(
      absl::StrCat("'repository_name' specification is not supported, got '", name, "'"));
}

}  // namespace

InferenceServer::InferenceServer(Parts parts, CallContext& calls)
    : parts_(std::move(parts)),
      context_{.service = service_, .calls = calls, .named_regions = parts_.named_regions} {
  AddHealthMethods();
  AddModelMethods();
  AddSharedMemoryMethods();
  AddUnsupportedMethods();
}

template <typename Request, typename Response, typename Base, typename Answer>
void InferenceServer::Add(void (Base::*receive)(grpc::ServerContext*, grpc::ByteBuffer*,
                                                grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>*,
                                                grpc::CompletionQueue*,
                                                grpc::ServerCompletionQueue*, void*),
                          Answer answer) {
  // Each call of the method refers to this description, which the function in listen_ keeps.
  // Methods differ in their messages and answers alone; unary_call.h has the rest.
  auto method = std::make_shared<UnaryMethod<Request, Response>>();
  method->receive = [this, receive](auto* rpc, auto* request, auto* writer, auto* queue,
                                    void* tag) {
    (service_.*receive)(rpc, request, writer, queue, queue, tag);
  };
  method->answer = std::move(answer);
  method->authenticator = &parts_.authenticator;
  listen_.push_back([this, method](grpc::ServerCompletionQueue* queue) {
    UnaryCall<Request, Response>::Listen(*method, parts_.calls, queue);
  });
}

void InferenceServer::ListenForInference(grpc::ServerCompletionQueue* queue) {
  InferCall::Listen(context_, queue);
}

void InferenceServer::Listen(grpc::ServerCompletionQueue* queue) {
  InferStreamCall::Listen(context_, queue);
  for (const auto& listen : listen_) listen(queue);
}

// Readiness is that of the health service, so that all probes of a daemon agree.
void InferenceServer::AddHealthMethods() {
  using Service = AsyncInferenceService;
  Add<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      &Service::RequestServerLive, [](const Caller&, const auto&, auto* response) {
        // A daemon that answers is alive.
        response->set_live(true);
        return absl::OkStatus();
      });
  Add<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      &Service::RequestServerReady, [this](const Caller&, const auto&, auto* response) {
        response->set_ready(parts_.is_serving());
        return absl::OkStatus();
      });
  Add<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      &Service::RequestModelReady, [this](const Caller&, const auto& request, auto* response) {
        return ModelReady(request, response);
      });
}

void InferenceServer::AddModelMethods() {
  using Service = AsyncInferenceService;
  Add<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      &Service::RequestServerMetadata,
      [this](const Caller&, const auto&, auto* response) { return ServerMetadata(response); });
  Add<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      &Service::RequestModelMetadata,
      [this](const Caller&, const auto& request, auto* response) -> absl::Status {
        OPSERVE_ASSIGN_OR_RETURN(const LoadedOperator* op,
                                 FindModel(parts_.operators, request.name(), request.version()));
        DescribeModel(*op->descriptor, response);
        return absl::OkStatus();
      });
  Add<inference::ModelConfigRequest, inference::ModelConfigResponse>(
      &Service::RequestModelConfig,
      [this](const Caller&, const auto& request, auto* response) -> absl::Status {
        OPSERVE_ASSIGN_OR_RETURN(const LoadedOperator* op,
                                 FindModel(parts_.operators, request.name(), request.version()));
        DescribeModel(*op->descriptor, response->mutable_config());
        return absl::OkStatus();
      });
  Add<inference::ModelStatisticsRequest, inference::ModelStatisticsResponse>(
      &Service::RequestModelStatistics, [this](const Caller&, const auto& request, auto* response) {
        return ModelStatistics(request, response);
      });
  Add<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      &Service::RequestRepositoryIndex, [this](const Caller&, const auto& request, auto* response) {
        return RepositoryIndex(request, response);
      });
}

void InferenceServer::AddSharedMemoryMethods() {
  using Service = AsyncInferenceService;
  // Null where regions are not allowed: the calls then say so.
  NamedRegions* const regions = parts_.named_regions;
  Add<inference::SystemSharedMemoryStatusRequest, inference::SystemSharedMemoryStatusResponse>(
      &Service::RequestSystemSharedMemoryStatus,
      [regions](const Caller& caller, const auto& request, auto* response) {
        return ListRegions(regions, caller, request, response);
      });
  Add<inference::SystemSharedMemoryRegisterRequest, inference::SystemSharedMemoryRegisterResponse>(
      &Service::RequestSystemSharedMemoryRegister,
      [this, regions](const Caller& caller, const auto& request, auto*) {
        const absl::Status status = RegisterRegion(regions, caller, request);
        // A registration is no request, so the metrics of requests do not count it.
        if (!status.ok()) parts_.metrics.RecordSharedMemoryRejection(status);
        return status;
      });
  Add<inference::SystemSharedMemoryUnregisterRequest,
      inference::SystemSharedMemoryUnregisterResponse>(
      &Service::RequestSystemSharedMemoryUnregister,
      [regions](const Caller& caller, const auto& request, auto*) {
        return UnregisterRegion(regions, caller, request);
      });
  // Clients ask for regions of every kind, so the answer is an empty list; registering is refused.
  Add<inference::CudaSharedMemoryStatusRequest, inference::CudaSharedMemoryStatusResponse>(
      &Service::RequestCudaSharedMemoryStatus,
      [](const Caller&, const auto& request, auto*) { return ListCudaRegions(request); });
  Add<inference::CudaSharedMemoryRegisterRequest, inference::CudaSharedMemoryRegisterResponse>(
      &Service::RequestCudaSharedMemoryRegister,
      [regions](const Caller&, const auto& request, auto*) {
        return RegisterCudaRegion(regions, request);
      });
  Add<inference::CudaSharedMemoryUnregisterRequest, inference::CudaSharedMemoryUnregisterResponse>(
      &Service::RequestCudaSharedMemoryUnregister,
      [regions](const Caller&, const auto&, auto*) { return UnregisterCudaRegion(regions); });
}

void InferenceServer::AddUnsupportedMethods() {
  // A call of a method that is never requested from gRPC would wait until its deadline.
  using Service = AsyncInferenceService;
  const auto refuse_control = [](const Caller&, const auto& request, auto*) {
    if (!request.repository_name().empty()) return NoRepositories(request.repository_name());
    return Unsupported("explicit model load / unload is not allowed: operators are always loaded");
  };
  Add<inference::RepositoryModelLoadRequest, inference::RepositoryModelLoadResponse>(
      &Service::RequestRepositoryModelLoad, refuse_control);
  Add<inference::RepositoryModelUnloadRequest, inference::RepositoryModelUnloadResponse>(
      &Service::RequestRepositoryModelUnload, refuse_control);
  Add<inference::TraceSettingRequest, inference::TraceSettingResponse>(
      &Service::RequestTraceSetting, [](const Caller&, const auto&, auto*) {
        return Unsupported("the server does not support tracing");
      });
  Add<inference::LogSettingsRequest, inference::LogSettingsResponse>(
      &Service::RequestLogSettings, [](const Caller&, const auto&, auto*) {
        return Unsupported(
            "the server does not support log settings; administrators have "
            "opserve.v1.AdminService/SetLogLevel");
      });
}

absl::Status InferenceServer::ModelReady(const inference::ModelReadyRequest& request,
                                         inference::ModelReadyResponse* response) const {
  // A model that does not exist is not ready, as one that cannot be called; neither is an error
  // here.
  OPSERVE_ASSIGN_OR_RETURN(const LoadedOperator* op,
                           LookUpModel(parts_.operators, request.name(), request.version()));
  response->set_ready(op != nullptr && parts_.scheduler.IsOffered(*op) && parts_.is_serving());
  return absl::OkStatus();
}

absl::Status InferenceServer::ServerMetadata(inference::ServerMetadataResponse* response) const {
  response->set_name("opserve");
  response->set_version(OPSERVE_VERSION);
  // Names of extensions as the protocol has them: clients look for them before they use one.
  for (const char* extension : {"schedule_policy", "model_configuration", "binary_tensor_data",
                                "parameters", "statistics"}) {
    response->add_extensions(extension);
  }
  if (parts_.named_regions != nullptr) response->add_extensions("system_shared_memory");
  return absl::OkStatus();
}

absl::Status InferenceServer::ModelStatistics(const inference::ModelStatisticsRequest& request,
                                              inference::ModelStatisticsResponse* response) const {
  const auto add = [&](const LoadedOperator& op) {
    DescribeStatistics(op.descriptor->name, parts_.statistics.Of(static_cast<size_t>(op.index)),
                       response->add_model_stats());
  };
  if (!request.name().empty()) {
    OPSERVE_ASSIGN_OR_RETURN(const LoadedOperator* op,
                             LookUpModel(parts_.operators, request.name(), request.version()));
    // Triton lists statistics of loaded models only.
    if (op == nullptr || !op->is_available()) {
      return MakeError(Reason::kInvalid,
                       absl::StrCat("requested model '", request.name(), "' is not available"));
    }
    add(*op);
    return absl::OkStatus();
  }
  for (const LoadedOperator& op : parts_.operators.operators()) {
    if (op.is_available()) add(op);
  }
  return absl::OkStatus();
}

absl::Status InferenceServer::RepositoryIndex(const inference::RepositoryIndexRequest& request,
                                              inference::RepositoryIndexResponse* response) const {
  if (!request.repository_name().empty()) return NoRepositories(request.repository_name());
  for (const LoadedOperator& op : parts_.operators.operators()) {
    const bool is_offered = parts_.scheduler.IsOffered(op);
    if (request.ready() && !is_offered) continue;
    auto* model = response->add_models();
    model->set_name(std::string(op.descriptor->name));
    model->set_version(std::string(kModelVersion));
    model->set_state(is_offered ? "READY" : "UNAVAILABLE");
    if (!is_offered) model->set_reason(op.unavailable_reason());
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
