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

v1::AdminStatus StatusOf(int sample) {
  v1::AdminStatus status;
  status.mutable_start_time()->set_seconds(1700000000);
  status.mutable_time()->set_seconds(1700000100 + sample);
  status.set_daemon("npu7");
  status.set_version("1.2.3");
  status.set_runtime("host CANN");
  status.set_log_level("info");
  v1::DeviceStatus* device = status.add_devices();
  device->set_state(v1::DeviceStatus::STATE_READY);
  device->set_lanes(4);
  device->set_resident_tensors(2);
  device->set_resident_bytes(1536);
  device->set_completed_requests(1000 + 10 * sample);
  for (const char* name : {"batch", "online"}) {
    v1::TenantStatus* tenant = status.add_tenants();
    tenant->set_name(name);
    tenant->set_weight(1);
    tenant->set_requests(500);
    tenant->add_devices()->set_lane_seconds(10);
  }
  status.mutable_tenants(0)->set_requests(500 + 10 * sample);
  status.mutable_tenants(0)->mutable_devices(0)->set_lane_seconds(10 + 0.5 * sample);
  return status;
}

}  // namespace

grpc::Status TestAdminService::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                                         v1::AdminStatus* response) {
  *response = StatusOf(samples_++);
  return Check(*context, /*device=*/0);
}

grpc::Status TestAdminService::WatchStatus(grpc::ServerContext*,
                                           const v1::WatchStatusRequest* request,
                                           grpc::ServerWriter<v1::AdminStatus>* writer) {
  if (request->interval().seconds() == 7) {
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, "others watch already"};
  }
  for (int i = 0; i < 3; ++i) writer->Write(StatusOf(samples_++));
  return grpc::Status::OK;
}

grpc::Status TestAdminService::ListTensors(grpc::ServerContext* context,
                                           const v1::ListTensorsRequest* request,
                                           v1::ListTensorsResponse* response) {
  if (request->tenant() == "none") return {grpc::StatusCode::NOT_FOUND, "there is no tenant none"};
  response->mutable_time()->set_seconds(1700000100);
  if (request->tenant() == "online") return Check(*context, /*device=*/0);
  response->set_total_tensors(3);
  response->set_total_bytes(1024);
  v1::ListTensorsResponse::Tensor* listed = response->add_tensors();
  listed->set_tenant("batch");
  v1::TensorSummary* tensor = listed->mutable_tensor();
  tensor->set_handle("\x5f\x1c\x09\xa2");
  tensor->set_dtype(v1::DATA_TYPE_BF16);
  tensor->add_shape(8);
  tensor->add_shape(4);
  tensor->set_bytes(512);
  tensor->set_device(1);
  tensor->mutable_creation_time()->set_seconds(1700000000);
  tensor->mutable_lease_end()->set_seconds(1700000090);
  return Check(*context, /*device=*/0);
}

grpc::Status TestAdminService::SetLogLevel(grpc::ServerContext* context,
                                           const v1::SetLogLevelRequest* request,
                                           v1::SetLogLevelResponse*) {
  if (request->level() == "debug") return Check(*context, /*device=*/0);
  return {grpc::StatusCode::INVALID_ARGUMENT, "unknown log level " + request->level()};
}

grpc::Status TestAdminService::Reload(grpc::ServerContext*, const v1::ReloadRequest*,
                                      v1::ReloadResponse*) {
  return {grpc::StatusCode::FAILED_PRECONDITION, "listen needs a restart"};
}

grpc::Status TestAdminService::DrainDevice(grpc::ServerContext* context,
                                           const v1::DrainDeviceRequest* request,
                                           v1::DrainDeviceResponse* response) {
  if (request->device() == 1) return {grpc::StatusCode::DEADLINE_EXCEEDED, "still draining"};
  if (request->device() == 0 && request->unless_last()) {
    return {grpc::StatusCode::FAILED_PRECONDITION, "device 0 is the last that is ready"};
  }
  response->set_moved_requests(3);
  const grpc::Status status = Check(*context, request->device());
  if (status.ok()) ++drains_;
  return status;
}

grpc::Status TestAdminService::DrainDaemon(grpc::ServerContext* context,
                                           const v1::DrainDaemonRequest*,
                                           v1::DrainDaemonResponse* response) {
  v1::DepositStatus* deposit = response->mutable_deposit();
  deposit->set_address("two:1");
  deposit->set_moved_tensors(2);
  deposit->set_moved_bytes(1536);
  deposit->set_moved_programs(1);
  response->set_lost_tensors(daemon_drains_++ == 0 ? 0 : 1);
  return Check(*context, /*device=*/0);
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
  region->mutable_blocks(0)->set_owner(0);
  region->mutable_blocks(0)->mutable_age()->set_seconds(100);
  region->mutable_blocks(2)->set_stream(3);
  response->set_reserved_bytes(6144);
  response->set_allocated_bytes(2048);
  response->set_idle_bytes(2048);
  response->set_retired_bytes(2048);
  return Check(*context, request->device());
}

}  // namespace opserve
