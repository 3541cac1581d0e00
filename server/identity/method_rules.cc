#include "server/identity/method_rules.h"

#include <algorithm>
#include <iterator>

namespace opserve::server {
namespace {

struct Rule {
  absl::string_view path;
  Access access;
};

// A row for each method of each service; a test compares them with the services.
constexpr Rule kRules[] = {
    {"/grpc.health.v1.Health/Check", Access::kAnybody},
    {"/grpc.health.v1.Health/Watch", Access::kAnybody},
    // gRPC 1.51 serves reflection under this name.
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Access::kCaller},
    {"/inference.GRPCInferenceService/ServerLive", Access::kTenant},
    {"/inference.GRPCInferenceService/ServerReady", Access::kTenant},
    {"/inference.GRPCInferenceService/ModelReady", Access::kTenant},
    {"/inference.GRPCInferenceService/ServerMetadata", Access::kTenant},
    {"/inference.GRPCInferenceService/ModelMetadata", Access::kTenant},
    {"/inference.GRPCInferenceService/ModelInfer", Access::kTenant},
    {"/inference.GRPCInferenceService/ModelStreamInfer", Access::kTenant},
    {"/inference.GRPCInferenceService/ModelConfig", Access::kTenant},
    {"/inference.GRPCInferenceService/ModelStatistics", Access::kTenant},
    {"/inference.GRPCInferenceService/RepositoryIndex", Access::kTenant},
    {"/inference.GRPCInferenceService/RepositoryModelLoad", Access::kTenant},
    {"/inference.GRPCInferenceService/RepositoryModelUnload", Access::kTenant},
    {"/inference.GRPCInferenceService/SystemSharedMemoryStatus", Access::kTenant},
    {"/inference.GRPCInferenceService/SystemSharedMemoryRegister", Access::kTenant},
    {"/inference.GRPCInferenceService/SystemSharedMemoryUnregister", Access::kTenant},
    {"/inference.GRPCInferenceService/CudaSharedMemoryStatus", Access::kTenant},
    {"/inference.GRPCInferenceService/CudaSharedMemoryRegister", Access::kTenant},
    {"/inference.GRPCInferenceService/CudaSharedMemoryUnregister", Access::kTenant},
    {"/inference.GRPCInferenceService/TraceSetting", Access::kTenant},
    {"/inference.GRPCInferenceService/LogSettings", Access::kTenant},
    {"/opserve.v1.OperatorService/Execute", Access::kTenant},
    {"/opserve.v1.OperatorService/ExecuteStream", Access::kTenant},
    {"/opserve.v1.OperatorService/Session", Access::kTenant},
    {"/opserve.v1.OperatorService/ListOperators", Access::kTenant},
    {"/opserve.v1.OperatorService/Prepare", Access::kTenant},
    {"/opserve.v1.OperatorService/ReleasePrograms", Access::kTenant},
    {"/opserve.v1.OperatorService/GetServerStatus", Access::kTenant},
    {"/opserve.v1.TensorService/Upload", Access::kTenant},
    {"/opserve.v1.TensorService/Download", Access::kTenant},
    {"/opserve.v1.TensorService/Renew", Access::kTenant},
    {"/opserve.v1.TensorService/Release", Access::kTenant},
    {"/opserve.v1.TensorService/List", Access::kTenant},
    // Peers are no tenants: their daemons may do nothing else.
    {"/opserve.v1.PeerService/Deposit", Access::kPeer},
    {"/opserve.v1.AdminService/GetStatus", Access::kAdministrator},
    {"/opserve.v1.AdminService/WatchStatus", Access::kAdministrator},
    {"/opserve.v1.AdminService/DrainDevice", Access::kAdministrator},
    {"/opserve.v1.AdminService/DrainDaemon", Access::kAdministrator},
    {"/opserve.v1.AdminService/ResumeDevice", Access::kAdministrator},
    {"/opserve.v1.AdminService/TrimPool", Access::kAdministrator},
    {"/opserve.v1.AdminService/GetPoolSnapshot", Access::kAdministrator},
    {"/opserve.v1.AdminService/ListTensors", Access::kAdministrator},
    {"/opserve.v1.AdminService/SetLogLevel", Access::kAdministrator},
    {"/opserve.v1.AdminService/Reload", Access::kAdministrator},
};

}  // namespace

std::optional<Access> AccessTo(absl::string_view path) {
  const auto* found = std::find_if(std::begin(kRules), std::end(kRules),
                                   [path](const Rule& rule) { return rule.path == path; });
  if (found == std::end(kRules)) return std::nullopt;
  return found->access;
}

}  // namespace opserve::server
