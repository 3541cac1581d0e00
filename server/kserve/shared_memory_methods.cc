#include "server/kserve/shared_memory_methods.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/kserve/infer_request.h"

namespace opserve::server {
namespace {

absl::Status NoRegion(const std::string& name) {
  return MakeError(Reason::kShmInvalid, absl::StatusCode::kNotFound,
                   absl::StrCat("Unable to find shared memory region: '", name, "'"));
}

}  // namespace

absl::Status ListRegions(const NamedRegions* regions, const Caller& caller,
                         const inference::SystemSharedMemoryStatusRequest& request,
                         inference::SystemSharedMemoryStatusResponse* response) {
  std::map<std::string, NamedRegions::Spec> list;
  // Without regions the list is empty, as it is where none was registered.
  if (regions != nullptr) list = regions->List(caller.tenant.id());
  for (const auto& [name, spec] : list) {
    if (!request.name().empty() && name != request.name()) continue;
    auto& region = (*response->mutable_regions())[name];
    region.set_name(name);
    region.set_key(spec.key);
    region.set_offset(spec.offset);
    region.set_byte_size(spec.byte_size);
  }
  const bool is_missing = !request.name().empty() && response->regions().empty();
  return is_missing ? NoRegion(request.name()) : absl::OkStatus();
}

absl::Status RegisterRegion(NamedRegions* regions, const Caller& caller,
                            const inference::SystemSharedMemoryRegisterRequest& request) {
  if (regions == nullptr) return NamedRegionsAreDisabled();
  const std::shared_ptr<const TenantConfig> config = caller.tenant.config();
  // A caller that the system does not name gets only memory of the daemon's own user.
  const uid_t owner = caller.uid.value_or(geteuid());
  return regions->Register(
      caller.tenant.id(), request.name(),
      {.key = request.key(), .offset = request.offset(), .byte_size = request.byte_size()}, owner,
      {.max_bytes = config->shared_memory_bytes, .max_regions = config->shared_memory_regions});
}

absl::Status UnregisterRegion(NamedRegions* regions, const Caller& caller,
                              const inference::SystemSharedMemoryUnregisterRequest& request) {
  if (regions == nullptr) return NamedRegionsAreDisabled();
  // No name stands for all of the tenant's regions.
  if (request.name().empty()) {
    regions->UnregisterAll(caller.tenant.id());
  } else {
    regions->Unregister(caller.tenant.id(), request.name());
  }
  return absl::OkStatus();
}

absl::Status ListCudaRegions(const inference::CudaSharedMemoryStatusRequest& request) {
  return request.name().empty() ? absl::OkStatus() : NoRegion(request.name());
}

absl::Status RegisterCudaRegion(const NamedRegions* regions,
                                const inference::CudaSharedMemoryRegisterRequest& request) {
  // As Triton without a GPU answers.
  if (regions == nullptr) return NamedRegionsAreDisabled();
  return MakeError(Reason::kShmInvalid,
                   absl::StrCat("failed to register CUDA shared memory region: '", request.name(),
                                "', GPUs not supported"));
}

// Clients of system shared memory unregister that of CUDA, too, and give up if they cannot.
absl::Status UnregisterCudaRegion(const NamedRegions* regions) {
  return regions == nullptr ? NamedRegionsAreDisabled() : absl::OkStatus();
}

}  // namespace opserve::server
