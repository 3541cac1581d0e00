#include "tests/unit/client/test_admin_service.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace opserve {
namespace {

grpc::Status Check(const grpc::ServerContext& context, uint32_t device) {
  if (context.deadline() == std::chrono::system_clock::time_point::max()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "a call without deadline"};
  }
  if (device == 0) return grpc::Status::OK;
  return {grpc::StatusCode::NOT_FOUND, "no device " + std::to_string(device)};
}

}  // namespace

grpc::Status TestAdminService::DrainDevice(grpc::ServerContext* context,
                                           const v1::DrainDeviceRequest* request,
                                           v1::DrainDeviceResponse* response) {
  if (request->device() == 1) return {grpc::StatusCode::DEADLINE_EXCEEDED, "still draining"};
  response->set_moved_requests(3);
  return Check(*context, request->device());
}

grpc::Status TestAdminService::ResumeDevice(grpc::ServerContext* context,
                                            const v1::ResumeDeviceRequest* request,
                                            v1::ResumeDeviceResponse*) {
  return Check(*context, request->device());
}

grpc::Status TestAdminService::TrimPool(grpc::ServerContext* context,
                                        const v1::TrimPoolRequest* request,
                                        v1::TrimPoolResponse* response) {
  response->set_trimmed_bytes(4096);
  return Check(*context, request->device());
}

grpc::Status TestAdminService::GetPoolSnapshot(grpc::ServerContext* context,
                                               const v1::GetPoolSnapshotRequest* request,
                                               v1::PoolSnapshot* response) {
  v1::PoolSnapshot::Region* region = response->add_regions();
  region->set_bytes(6144);
  uint64_t offset = 0;
  for (const auto state :
       {v1::PoolSnapshot::Block::STATE_ALLOCATED, v1::PoolSnapshot::Block::STATE_IDLE,
        v1::PoolSnapshot::Block::STATE_RETIRED}) {
    v1::PoolSnapshot::Block* block = region->add_blocks();
    block->set_offset(offset);
    block->set_bytes(2048);
    block->set_state(state);
    offset += 2048;
  }
  region->mutable_blocks(0)->set_requested_bytes(1500);
  response->set_reserved_bytes(6144);
  response->set_allocated_bytes(2048);
  response->set_idle_bytes(2048);
  response->set_retired_bytes(2048);
  return Check(*context, request->device());
}

}  // namespace opserve
