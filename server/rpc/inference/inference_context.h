// What the calls of the Open Inference Protocol share.
#pragma once

#include "inference/grpc_service.grpc.pb.h"
#include "server/rpc/execute_service.h"
#include "server/shared_memory/named_regions.h"

namespace opserve::server {

// ModelInfer and ModelStreamInfer take and give raw slices, as Execute does; the others use the
// generated types.
template <typename Service>
using InferenceHealthMethods = inference::GRPCInferenceService::WithAsyncMethod_ServerLive<
    inference::GRPCInferenceService::WithAsyncMethod_ServerReady<
        inference::GRPCInferenceService::WithAsyncMethod_ModelReady<Service>>>;
template <typename Service>
using InferenceModelMethods = inference::GRPCInferenceService::WithAsyncMethod_ServerMetadata<
    inference::GRPCInferenceService::WithAsyncMethod_ModelMetadata<
        inference::GRPCInferenceService::WithAsyncMethod_ModelConfig<
            inference::GRPCInferenceService::WithAsyncMethod_ModelStatistics<Service>>>>;
template <typename Service>
using InferenceRepositoryMethods = inference::GRPCInferenceService::WithAsyncMethod_RepositoryIndex<
    inference::GRPCInferenceService::WithAsyncMethod_RepositoryModelLoad<
        inference::GRPCInferenceService::WithAsyncMethod_RepositoryModelUnload<Service>>>;
template <typename Service>
using InferenceSystemMemoryMethods =
    inference::GRPCInferenceService::WithAsyncMethod_SystemSharedMemoryStatus<
        inference::GRPCInferenceService::WithAsyncMethod_SystemSharedMemoryRegister<
            inference::GRPCInferenceService::WithAsyncMethod_SystemSharedMemoryUnregister<
                Service>>>;
template <typename Service>
using InferenceCudaMemoryMethods =
    inference::GRPCInferenceService::WithAsyncMethod_CudaSharedMemoryStatus<
        inference::GRPCInferenceService::WithAsyncMethod_CudaSharedMemoryRegister<
            inference::GRPCInferenceService::WithAsyncMethod_CudaSharedMemoryUnregister<Service>>>;
template <typename Service>
using InferenceSettingMethods = inference::GRPCInferenceService::WithAsyncMethod_TraceSetting<
    inference::GRPCInferenceService::WithAsyncMethod_LogSettings<Service>>;

using AsyncInferenceService = InferenceHealthMethods<InferenceModelMethods<
    InferenceRepositoryMethods<InferenceSystemMemoryMethods<InferenceCudaMemoryMethods<
        InferenceSettingMethods<inference::GRPCInferenceService::WithRawMethod_ModelInfer<
            inference::GRPCInferenceService::WithRawMethod_ModelStreamInfer<
                inference::GRPCInferenceService::Service>>>>>>>>;

// All outlive the calls.
struct InferenceContext {
  AsyncInferenceService& service;
  ExecuteContext& execute;
  NamedRegions* const named_regions;  // null: regions cannot be registered by name
};

}  // namespace opserve::server
