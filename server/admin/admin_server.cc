#include "server/admin/admin_server.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "google/protobuf/util/time_util.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/authenticator.h"
#include "server/grpc/compression.h"
#include "server/grpc/malformed_requests.h"
#include "server/grpc/status_conversion.h"
#include "server/identity/audit.h"
#include "server/net/connection_gate.h"
#include "server/net/listener.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Enough to drain every device of a machine at once and still to look at a pool.
constexpr int kMaxThreads = 16;
constexpr int kMaxWatchers = 8;
constexpr absl::Duration kShortestInterval = absl::Milliseconds(100);
constexpr absl::Duration kLongestInterval = absl::Hours(1);
// Arguments of a call go into the audit log.
constexpr size_t kMaxArgumentBytes = 64;
// An administrator waits this long for each message where the clients' server is stuck or gone.
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);

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

void ToProto(const DeviceMemoryPool::Snapshot& snapshot, absl::Time now, v1::PoolSnapshot* to) {
  for (const DeviceMemoryPool::Snapshot::Region& region : snapshot.regions) {
    v1::PoolSnapshot::Region* to_region = to->add_regions();
    to_region->set_bytes(region.bytes);
    for (const DeviceMemoryPool::Snapshot::Block& block : region.blocks) {
      v1::PoolSnapshot::Block* to_block = to_region->add_blocks();
      to_block->set_offset(block.offset);
      to_block->set_bytes(block.bytes);
      to_block->set_state(ToProto(block.state));
      to_block->set_requested_bytes(block.requested_bytes);
      to_block->set_stream(block.stream);
      if (block.owner) to_block->set_owner(*block.owner);
      if (block.state != DeviceMemoryPool::Snapshot::BlockState::kAllocated) continue;
      // The clock may have been read before the snapshot was taken.
      const absl::Duration age = std::max(now - block.lent, absl::ZeroDuration());
      *to_block->mutable_age() =
          google::protobuf::util::TimeUtil::NanosecondsToDuration(absl::ToInt64Nanoseconds(age));
    }
  }
  to->set_reserved_bytes(snapshot.statistics.reserved_bytes);
  to->set_allocated_bytes(snapshot.statistics.allocated_bytes);
  to->set_idle_bytes(snapshot.statistics.idle_bytes);
  to->set_retired_bytes(snapshot.statistics.retired_bytes);
}

}  // namespace

// Written with gRPC's synchronous API: a call that waits holds a thread of this server, and none
// that serves clients.
class AdminService final : public v1::AdminService::Service {
 public:
  AdminService(const Config& config, Scheduler& scheduler, AdminServer::Hooks hooks)
      : default_deadline_(config.default_deadline),
        max_deadline_(config.max_deadline),
        scheduler_(scheduler),
        hooks_(std::move(hooks)) {}

  // Ends the calls that would go on for ever.
  void EndWatching() { over_.Notify(); }

  grpc::Status GetStatus(grpc::ServerContext* /*rpc*/, const v1::GetStatusRequest* /*request*/,
                         v1::AdminStatus* response) override {
    *response = hooks_.status();  // looked at all the time, so not in the audit log
    return grpc::Status::OK;
  }

  grpc::Status WatchStatus(grpc::ServerContext* rpc, const v1::WatchStatusRequest* request,
                           grpc::ServerWriter<v1::AdminStatus>* writer) override {
    absl::Duration interval = absl::Seconds(request->interval().seconds()) +
                              absl::Nanoseconds(request->interval().nanos());
    if (!request->has_interval()) interval = absl::Seconds(1);
    if (interval < kShortestInterval || interval > kLongestInterval) {
      return ToGrpcStatus(
          InvalidCall("", "interval",
                      absl::StrCat("is ", absl::FormatDuration(interval), ", must be ",
                                   absl::FormatDuration(kShortestInterval), " to ",
                                   absl::FormatDuration(kLongestInterval)),
                      /*aclnn_status=*/0),
          rpc);
    }
    // One thread of the few is the watcher's for as long as it watches; some must be left.
    if (watchers_.fetch_add(1) >= kMaxWatchers) {
      watchers_.fetch_sub(1);
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              absl::StrCat(kMaxWatchers, " others watch already")};
    }
    // Ends at the first write after the client has gone, or with the server.
    while (!rpc->IsCancelled() && writer->Write(hooks_.status()) &&
           !over_.WaitForNotificationWithTimeout(interval)) {
    }
    watchers_.fetch_sub(1);
    return grpc::Status::OK;
  }

  grpc::Status SetLogLevel(grpc::ServerContext* rpc, const v1::SetLogLevelRequest* request,
                           v1::SetLogLevelResponse* /*response*/) override {
    const std::string level = request->level().substr(0, kMaxArgumentBytes);
    return Audited("SetLogLevel", level, rpc, opserve::server::SetLogLevel(level));
  }

  grpc::Status Reload(grpc::ServerContext* rpc, const v1::ReloadRequest* /*request*/,
                      v1::ReloadResponse* response) override {
    absl::StatusOr<v1::ReloadResponse> outcome = hooks_.reload();
    if (outcome.ok()) *response = *std::move(outcome);
    return Audited("Reload", "", rpc, outcome.status());
  }

  grpc::Status ListTensors(grpc::ServerContext* rpc, const v1::ListTensorsRequest* request,
                           v1::ListTensorsResponse* response) override {
    const std::string tenant = request->tenant().substr(0, kMaxArgumentBytes);
    absl::StatusOr<v1::ListTensorsResponse> outcome = hooks_.list_tensors(tenant);
    if (outcome.ok()) *response = *std::move(outcome);
    return Audited("ListTensors", tenant, rpc, outcome.status());
  }

  grpc::Status DrainDevice(grpc::ServerContext* rpc, const v1::DrainDeviceRequest* request,
                           v1::DrainDeviceResponse* response) override {
    // The deadline is for the wait alone: the drain goes on when the call has ended.
    return Serve("DrainDevice", rpc, request->device(), [&](DeviceService& device) -> absl::Status {
      OPSERVE_ASSIGN_OR_RETURN(const uint32_t moved, BeginDrain(device, request->unless_last()));
      response->set_moved_requests(moved);
      return device.AwaitDrained(Deadline(*rpc));
    });
  }

  grpc::Status DrainDaemon(grpc::ServerContext* rpc, const v1::DrainDaemonRequest* /*request*/,
                           v1::DrainDaemonResponse* response) override {
    // However late the caller's deadline is: a drain ends by itself.
    absl::StatusOr<v1::DrainDaemonResponse> outcome =
        hooks_.drain(absl::FromChrono(rpc->deadline()));
    if (outcome.ok()) *response = *std::move(outcome);
    return Audited("DrainDaemon", "", rpc, outcome.status());
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
      ToProto(device.device().memory().snapshot(), absl::Now(), response);
      return absl::OkStatus();
    });
  }

 private:
  // Calls about a device all end here, so that each is in the audit log, refused ones included.
  template <typename Call>
  grpc::Status Serve(const char* method, grpc::ServerContext* rpc, uint32_t id, Call call) {
    DeviceService* device = id > INT32_MAX ? nullptr : scheduler_.Find(static_cast<int32_t>(id));
    return Audited(method, absl::StrCat("device ", id), rpc,
                   device == nullptr ? NoDevice(id) : call(*device));
  }

  absl::StatusOr<uint32_t> BeginDrain(DeviceService& device, bool unless_last) {
    // One at a time: otherwise of two calls each could take the other's device for one that stays.
    absl::MutexLock lock(&drain_mutex_);
    if (unless_last && IsLastReady(device)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "device ", device.device().id(), " is the last that is ready; nothing has changed"));
    }
    return device.BeginDrain();
  }

  bool IsLastReady(const DeviceService& device) const {
    if (device.device().state() != DeviceState::kReady) return false;
    return std::none_of(
        scheduler_.devices().begin(), scheduler_.devices().end(), [&device](const auto& other) {
          return other.get() != &device && other->device().state() == DeviceState::kReady;
        });
  }

  static grpc::Status Audited(const char* method, const std::string& arguments,
                              grpc::ServerContext* rpc, const absl::Status& outcome) {
    AuditAdminCall(method, arguments, Authenticator::UidOf(*rpc), outcome);
    return ToGrpcStatus(outcome, rpc);
  }

  absl::Status NoDevice(uint32_t id) const {
    return absl::NotFoundError(absl::StrCat(
        "there is no device ", id, "; there are ",
        absl::StrJoin(scheduler_.devices(), ", ", [](std::string* out, const auto& service) {
          absl::StrAppend(out, service->device().id());
        })));
  }

  // A call without a deadline must end as well, since its thread is one of few.
  absl::Time Deadline(const grpc::ServerContext& rpc) const {
    const absl::Time now = absl::Now();
    const bool has_deadline = rpc.deadline() != std::chrono::system_clock::time_point::max();
    return std::min(has_deadline ? absl::FromChrono(rpc.deadline()) : now + default_deadline_,
                    now + max_deadline_);
  }

  const absl::Duration default_deadline_;
  const absl::Duration max_deadline_;
  Scheduler& scheduler_;
  const AdminServer::Hooks hooks_;
  std::atomic<int> watchers_ = 0;
  absl::Mutex drain_mutex_;  // one decision to drain at a time
  absl::Notification over_;
};

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const Config& config,
                                                                Listener bound,
                                                                Scheduler& scheduler, Hooks hooks) {
  auto server = std::unique_ptr<AdminServer>(
      new AdminServer(std::make_unique<AdminService>(config, scheduler, std::move(hooks)),
                      config.write_stall_timeout));
  OPSERVE_RETURN_IF_ERROR(server->Listen(std::move(bound)));
  return server;
}

absl::Status AdminServer::Listen(Listener listener) {
  address_ = listener.address().ToString();
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("admin");
  // A call has a thread for as long as it lasts.
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  RefuseCompression(&builder);
  RefuseMalformedRequests(&builder);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::NUM_CQS, 1);
  builder.RegisterService(service_.get());
  // Every user may connect; the processor admits the daemon's own user and root.
  auto gate = std::make_unique<UserGate>(
      &Authenticator::ForAdministrators, [](uint32_t) { return true; }, &builder);
  acceptor_.Add(std::move(listener), std::move(gate));
  // gRPC has one set of sockets for the process, and the thread that waits for them serves all.
  // With this queue the builder's own threads leave the waiting to others. Otherwise they took half
  // of the clients' messages off the wire, and had to wake the thread that serves clients for each.
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start");
  poller_ = std::thread([this] { PollSeldom(); });
  return acceptor_.Start();
}

AdminServer::AdminServer(std::unique_ptr<AdminService> service, absl::Duration write_stall_timeout)
    : service_(std::move(service)),
      acceptor_({.limits = {.total = kMaxConnections,
                            .per_listener = kMaxConnections,
                            .per_user = kMaxConnections,
                            // An administrator's connection may be idle for as long as it likes.
                            .silence = absl::InfiniteDuration()},
                 .trusts_peers = true,
                 .stall_timeout = write_stall_timeout},
                ledger_) {}

void AdminServer::PollSeldom() {
  void* tag = nullptr;
  bool ok = false;
  while (!is_over_.WaitForNotificationWithTimeout(kPollInterval)) {
    queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
  }
}

AdminServer::~AdminServer() {
  // Before Shutdown, which waits for them.
  service_->EndWatching();
  if (server_ != nullptr) server_->Shutdown();
  is_over_.Notify();
  if (poller_.joinable()) poller_.join();
  if (queue_ == nullptr) return;
  // gRPC wants a queue drained before it is destroyed, although nothing was ever on this one.
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
  }
}

}  // namespace opserve::server
