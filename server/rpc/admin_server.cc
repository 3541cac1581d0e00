#include "server/rpc/admin_server.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "ops/catalog/status_macros.h"
#include "server/observability/log.h"
#include "server/rpc/status_conversion.h"
#include "server/rpc/unix_socket.h"

namespace opserve::server {
namespace {

// Enough to drain every device of a machine at once and still to look at a pool.
constexpr int kMaxThreads = 16;

v1::PoolSnapshot::Block::State ToProto(DeviceMemoryPool::Snapshot::BlockState state) {
  switch (state) {
    case DeviceMemoryPool::Snapshot::BlockState::kAllocated:
      return v1::PoolSnapshot::Block::STATE_ALLOCATED;
    case DeviceMemoryPool::Snapshot::BlockState::kIdle:
      return v1::PoolSnapshot::Block::STATE_IDLE;
    case DeviceMemoryPool::Snapshot::BlockState::kRetired:
      return v1::PoolSnapshot::Block::STATE_RETIRED;
  }
  return v1::PoolSnapshot::Block::STATE_UNSPECIFIED;
}

void ToProto(const DeviceMemoryPool::Snapshot& snapshot, v1::PoolSnapshot* to) {
  for (const DeviceMemoryPool::Snapshot::Region& region : snapshot.regions) {
    v1::PoolSnapshot::Region* to_region = to->add_regions();
    to_region->set_bytes(region.bytes);
    for (const DeviceMemoryPool::Snapshot::Block& block : region.blocks) {
      v1::PoolSnapshot::Block* to_block = to_region->add_blocks();
      to_block->set_offset(block.offset);
      to_block->set_bytes(block.bytes);
      to_block->set_state(ToProto(block.state));
      to_block->set_requested_bytes(block.requested_bytes);
    }
  }
  to->set_reserved_bytes(snapshot.statistics.reserved_bytes);
  to->set_allocated_bytes(snapshot.statistics.allocated_bytes);
  to->set_idle_bytes(snapshot.statistics.idle_bytes);
  to->set_retired_bytes(snapshot.statistics.retired_bytes);
}

class AdminService final : public v1::AdminService::Service {
 public:
  AdminService(const Config& config, Scheduler& scheduler)
      : default_deadline_(config.default_deadline),
        max_deadline_(config.max_deadline),
        scheduler_(scheduler) {}

  grpc::Status DrainDevice(grpc::ServerContext* rpc, const v1::DrainDeviceRequest* request,
                           v1::DrainDeviceResponse* response) override {
    return Serve("DrainDevice", rpc, request->device(), [&](DeviceService& device) -> absl::Status {
      OPSERVE_ASSIGN_OR_RETURN(const uint32_t moved, device.Drain(Deadline(*rpc)));
      response->set_moved_requests(moved);
      return absl::OkStatus();
    });
  }

  grpc::Status ResumeDevice(grpc::ServerContext* rpc, const v1::ResumeDeviceRequest* request,
                            v1::ResumeDeviceResponse* /*response*/) override {
    return Serve("ResumeDevice", rpc, request->device(),
                 [&](DeviceService& device) { return device.Resume(Deadline(*rpc)); });
  }

  grpc::Status TrimPool(grpc::ServerContext* rpc, const v1::TrimPoolRequest* request,
                        v1::TrimPoolResponse* response) override {
    return Serve("TrimPool", rpc, request->device(), [&](DeviceService& device) -> absl::Status {
      OPSERVE_ASSIGN_OR_RETURN(const uint64_t trimmed, device.TrimPool(Deadline(*rpc)));
      response->set_trimmed_bytes(trimmed);
      return absl::OkStatus();
    });
  }

  grpc::Status GetPoolSnapshot(grpc::ServerContext* rpc, const v1::GetPoolSnapshotRequest* request,
                               v1::PoolSnapshot* response) override {
    return Serve("GetPoolSnapshot", rpc, request->device(), [&](DeviceService& device) {
      ToProto(device.device().memory().snapshot(), response);
      return absl::OkStatus();
    });
  }

 private:
  template <typename Call>
  grpc::Status Serve(const char* method, grpc::ServerContext* rpc, uint32_t id, Call call) {
    DeviceService* device = id > INT32_MAX ? nullptr : scheduler_.Find(static_cast<int32_t>(id));
    const absl::Status status = device == nullptr ? NoDevice(id) : call(*device);
    LogInfo("admin_call", {{"method", method},
                           {"device", id},
                           {"outcome", absl::StatusCodeToString(status.code())},
                           {"error", std::string(status.message())}});
    return ToGrpcStatus(status, rpc);
  }

  absl::Status NoDevice(uint32_t id) const {
    return absl::NotFoundError(absl::StrCat(
        "there is no device ", id, "; there are ",
        absl::StrJoin(scheduler_.devices(), ", ", [](std::string* out, const auto& service) {
          absl::StrAppend(out, service->device().id());
        })));
  }

  absl::Time Deadline(const grpc::ServerContext& rpc) const {
    const absl::Time now = absl::Now();
    const bool has_deadline = rpc.deadline() != std::chrono::system_clock::time_point::max();
    return std::min(has_deadline ? absl::FromChrono(rpc.deadline()) : now + default_deadline_,
                    now + max_deadline_);
  }

  const absl::Duration default_deadline_;
  const absl::Duration max_deadline_;
  Scheduler& scheduler_;
};

// Lets the owner connect, nobody else.
absl::Status RestrictToOwner(const std::string& path) {
  if (chmod(path.c_str(), 0600) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot set the mode of ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const Config& config,
                                                                Scheduler& scheduler) {
  auto server = std::unique_ptr<AdminServer>(
      new AdminServer(std::make_unique<AdminService>(config, scheduler)));
  OPSERVE_RETURN_IF_ERROR(server->Listen(*config.admin_listen));
  return server;
}

absl::Status AdminServer::Listen(ListenAddress address) {
  if (!address.is_local()) {
    return absl::InvalidArgumentError(
        absl::StrCat("administration on ", address.ToString(),
                     ": must be a Unix socket or a loopback address (--admin_listen)"));
  }
  if (address.is_unix) OPSERVE_RETURN_IF_ERROR(PrepareSocketPath(address.path));
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("admin");
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterService(service_.get());
  int port = 0;
  builder.AddListeningPort(address.ToString(), grpc::InsecureServerCredentials(), &port);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || (!address.is_unix && port == 0)) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", address.ToString(),
                                               ": is it in use, or not this machine's?"));
  }
  if (address.is_unix) OPSERVE_RETURN_IF_ERROR(RestrictToOwner(address.path));
  address.port = port;
  address_ = address.ToString();
  return absl::OkStatus();
}

AdminServer::~AdminServer() {
  if (server_ != nullptr) server_->Shutdown();
}

}  // namespace opserve::server
