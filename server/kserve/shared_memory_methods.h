// Calls about shared memory: regions by name, and those of CUDA, which there are none of.
#pragma once

#include "absl/status/status.h"
#include "inference/grpc_service.pb.h"
#include "server/grpc/unary_call.h"
#include "server/shared_memory/named_regions.h"

namespace opserve::server {

// `regions`: null if they are not allowed; then nothing can be registered or unregistered
// (kUnimplemented), and there is nothing to list. Errors of Register: those of NamedRegions.
absl::Status ListRegions(const NamedRegions* regions, const Caller& caller,
                         const inference::SystemSharedMemoryStatusRequest& request,
                         inference::SystemSharedMemoryStatusResponse* response);
absl::Status RegisterRegion(NamedRegions* regions, const Caller& caller,
                            const inference::SystemSharedMemoryRegisterRequest& request);
absl::Status UnregisterRegion(NamedRegions* regions, const Caller& caller,
                              const inference::SystemSharedMemoryUnregisterRequest& request);

absl::Status ListCudaRegions(const inference::CudaSharedMemoryStatusRequest& request);
absl::Status RegisterCudaRegion(const NamedRegions* regions,
                                const inference::CudaSharedMemoryRegisterRequest& request);
absl::Status UnregisterCudaRegion(const NamedRegions* regions);

}  // namespace opserve::server
