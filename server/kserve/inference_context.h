// Shared state of the Open Inference Protocol's calls.
#pragma once

#include <memory>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "server/grpc/call_context.h"
#include "server/grpc/given_message.h"
#include "server/kserve/known_inferences.h"
#include "server/shared_memory/named_regions.h"

namespace opserve::server {

// ModelInfer and ModelStreamInfer take and give raw slices, as Execute does; the others use the
// generated types.
template <typename Service>
using InferenceHealthMethods = inference::GRPCInferenceService::WithRawMethod_ServerLive<
    inference::GRPCInferenceService::WithRawMethod_ServerReady<
        inference::GRPCInferenceService::WithRawMethod_ModelReady<Service>>>;
template <typename Service>
using InferenceModelMethods = inference::GRPCInferenceService::WithRawMethod_ServerMetadata<
    inference::GRPCInferenceService::WithRawMethod_ModelMetadata<
        inference::GRPCInferenceService::WithRawMethod_ModelConfig<
            inference::GRPCInferenceService::WithRawMethod_ModelStatistics<Service>>>>;
template <typename Service>
using InferenceRepositoryMethods = inference::GRPCInferenceService::WithRawMethod_RepositoryIndex<
    inference::GRPCInferenceService::WithRawMethod_RepositoryModelLoad<
        inference::GRPCInferenceService::WithRawMethod_RepositoryModelUnload<Service>>>;
template <typename Service>
using InferenceSystemMemoryMethods =
    inference::GRPCInferenceService::WithRawMethod_SystemSharedMemoryStatus<
        inference::GRPCInferenceService::WithRawMethod_SystemSharedMemoryRegister<
            inference::GRPCInferenceService::WithRawMethod_SystemSharedMemoryUnregister<Service>>>;
template <typename Service>
using InferenceCudaMemoryMethods =
    inference::GRPCInferenceService::WithRawMethod_CudaSharedMemoryStatus<
        inference::GRPCInferenceService::WithRawMethod_CudaSharedMemoryRegister<
            inference::GRPCInferenceService::WithRawMethod_CudaSharedMemoryUnregister<Service>>>;
template <typename Service>
using InferenceSettingMethods = inference::GRPCInferenceService::WithRawMethod_TraceSetting<
    inference::GRPCInferenceService::WithRawMethod_LogSettings<Service>>;

using AsyncInferenceService = GivingService<InferenceHealthMethods<InferenceModelMethods<
    InferenceRepositoryMethods<InferenceSystemMemoryMethods<InferenceCudaMemoryMethods<
        InferenceSettingMethods<inference::GRPCInferenceService::WithRawMethod_ModelInfer<
            inference::GRPCInferenceService::WithRawMethod_ModelStreamInfer<
                inference::GRPCInferenceService::Service>>>>>>>>>;

// All outlive the calls.
struct InferenceContext {
  AsyncInferenceService& service;
  CallContext& calls;
  NamedRegions* const named_regions;  // null: regions cannot be registered by name
  // By visitor (server/schedule/lanes/visitor.h).
  std::vector<std::unique_ptr<KnownInferences>> known = {};
};

}  // namespace opserve::server
