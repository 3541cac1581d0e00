// The admin service of a daemon for tests of clients: canned answers about device 0.
#pragma once

#include "opserve/v1/admin_service.grpc.pb.h"

namespace opserve {

// Draining moves 3 requests, trimming gives 4096 bytes, the pool has one region of three blocks,
// resuming succeeds. Device 1 never ends draining. NOT_FOUND for any other; INVALID_ARGUMENT for a
// call without deadline.
class TestAdminService final : public v1::AdminService::Service {
 private:
  grpc::Status DrainDevice(grpc::ServerContext* context, const v1::DrainDeviceRequest* request,
                           v1::DrainDeviceResponse* response) override;
  grpc::Status ResumeDevice(grpc::ServerContext* context, const v1::ResumeDeviceRequest* request,
                            v1::ResumeDeviceResponse* response) override;
  grpc::Status TrimPool(grpc::ServerContext* context, const v1::TrimPoolRequest* request,
                        v1::TrimPoolResponse* response) override;
  grpc::Status GetPoolSnapshot(grpc::ServerContext* context,
                               const v1::GetPoolSnapshotRequest* request,
                               v1::PoolSnapshot* response) override;
};

}  // namespace opserve
