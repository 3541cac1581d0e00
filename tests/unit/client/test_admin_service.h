// The admin service of a daemon for tests of clients: canned answers about device 0.
#pragma once

#include <atomic>

#include "opserve/v1/admin_service.grpc.pb.h"

namespace opserve {

// The status is that of one device and two tenants; each later one is a second later, and ten
// requests and half a second of lane time of the first tenant further. A watcher is told three
// times without waiting, then the service ends the call; one who wants an interval of 7 s is
// refused. The only log level is debug, and the configuration cannot be reloaded. Draining moves 3
// requests, unless the last ready device, which device 0 is, is to be spared; trimming gives 4096
// bytes, the daemon itself moves two tensors and a program and then, if it is drained again, loses
// one; the pool has one region of three blocks, resuming succeeds. Device 1 never ends draining.
// NOT_FOUND for any other; INVALID_ARGUMENT for a call without deadline. Of the resident tensors,
// three of 1 KiB altogether, one of the tenant "batch" is listed; "online" has none, and there is
// no "none".
class TestAdminService final : public v1::AdminService::Service {
 public:
  // Times that device 0 was drained.
  int drains() const { return drains_; }

 private:
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest* request,
                         v1::AdminStatus* response) override;
  grpc::Status WatchStatus(grpc::ServerContext* context, const v1::WatchStatusRequest* request,
                           grpc::ServerWriter<v1::AdminStatus>* writer) override;
  grpc::Status ListTensors(grpc::ServerContext* context, const v1::ListTensorsRequest* request,
                           v1::ListTensorsResponse* response) override;
  grpc::Status SetLogLevel(grpc::ServerContext* context, const v1::SetLogLevelRequest* request,
                           v1::SetLogLevelResponse* response) override;
  grpc::Status Reload(grpc::ServerContext* context, const v1::ReloadRequest* request,
                      v1::ReloadResponse* response) override;
  grpc::Status DrainDevice(grpc::ServerContext* context, const v1::DrainDeviceRequest* request,
                           v1::DrainDeviceResponse* response) override;
  grpc::Status DrainDaemon(grpc::ServerContext* context, const v1::DrainDaemonRequest* request,
                           v1::DrainDaemonResponse* response) override;
  grpc::Status ResumeDevice(grpc::ServerContext* context, const v1::ResumeDeviceRequest* request,
                            v1::ResumeDeviceResponse* response) override;
  grpc::Status TrimPool(grpc::ServerContext* context, const v1::TrimPoolRequest* request,
                        v1::TrimPoolResponse* response) override;
  grpc::Status GetPoolSnapshot(grpc::ServerContext* context,
                               const v1::GetPoolSnapshotRequest* request,
                               v1::PoolSnapshot* response) override;

  std::atomic<int> samples_ = 0;
  std::atomic<int> drains_ = 0;
  std::atomic<int> daemon_drains_ = 0;
};

}  // namespace opserve
