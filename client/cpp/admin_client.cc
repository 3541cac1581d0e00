#include "client/cpp/admin_client.h"

#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/time_message.h"
#include "client/cpp/transport.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

using Stub = v1::AdminService::Stub;

template <typename Request>
Request About(uint32_t device) {
  Request request;
  request.set_device(device);
  return request;
}

}  // namespace

AdminClient::AdminClient(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), stub_(v1::AdminService::NewStub(transport_->channel())) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::Connect(const std::string& target,
                                                                  const ConnectOptions& options) {
  OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                           Transport::Create(target, options));
  return std::unique_ptr<AdminClient>(new AdminClient(std::move(transport)));
}

template <typename Request, typename Response>
absl::StatusOr<Response> AdminClient::Call(Method<Request, Response> method, const Request& request,
                                           absl::Duration timeout) {
  // Not by way of the retry policy: an administrator decides about each repetition.
  const auto context = transport_->NewContext(absl::Now() + timeout);
  Response response;
  const grpc::Status status = (stub_.get()->*method)(context.get(), request, &response);
  if (!status.ok()) return FromGrpcStatus(status, *context);
  return response;
}

absl::StatusOr<uint32_t> AdminClient::DrainDevice(uint32_t device, absl::Duration timeout,
                                                  Last last) {
  auto request = About<v1::DrainDeviceRequest>(device);
  request.set_unless_last(last == Last::kSpare);
  OPSERVE_ASSIGN_OR_RETURN(const auto response, Call(&Stub::DrainDevice, request, timeout));
  return response.moved_requests();
}

absl::StatusOr<v1::DrainDaemonResponse> AdminClient::DrainDaemon(absl::Duration timeout) {
  return Call(&Stub::DrainDaemon, v1::DrainDaemonRequest(), timeout);
}

absl::Status AdminClient::ResumeDevice(uint32_t device, absl::Duration timeout) {
  return Call(&Stub::ResumeDevice, About<v1::ResumeDeviceRequest>(device), timeout).status();
}

absl::StatusOr<uint64_t> AdminClient::TrimPool(uint32_t device, absl::Duration timeout) {
  OPSERVE_ASSIGN_OR_RETURN(const auto response,
                           Call(&Stub::TrimPool, About<v1::TrimPoolRequest>(device), timeout));
  return response.trimmed_bytes();
}

absl::StatusOr<v1::PoolSnapshot> AdminClient::GetPoolSnapshot(uint32_t device,
                                                              absl::Duration timeout) {
  return Call(&Stub::GetPoolSnapshot, About<v1::GetPoolSnapshotRequest>(device), timeout);
}

absl::StatusOr<v1::AdminStatus> AdminClient::GetStatus(absl::Duration timeout) {
  return Call(&Stub::GetStatus, v1::GetStatusRequest(), timeout);
}

absl::Status AdminClient::Watch(absl::Duration interval,
                                const std::function<bool(const v1::AdminStatus&)>& go_on) {
  // Without a deadline: a watch lasts until one side ends it.
  const auto context = transport_->NewContext(absl::InfiniteFuture());
  v1::WatchStatusRequest request;
  EncodeDuration(interval, request.mutable_interval());
  const auto reader = stub_->WatchStatus(context.get(), request);
  v1::AdminStatus sample;
  while (reader->Read(&sample)) {
    if (go_on(sample)) continue;
    // Ending the reader alone would wait for the daemon.
    context->TryCancel();
    reader->Finish();  // says that the call was cancelled
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromGrpcStatus(status, *context);
  return absl::UnavailableError("the daemon stops");  // it ends the call for no other reason
}

absl::StatusOr<v1::ListTensorsResponse> AdminClient::ListTensors(const std::string& tenant,
                                                                 absl::Duration timeout) {
  v1::ListTensorsRequest request;
  request.set_tenant(tenant);
  return Call(&Stub::ListTensors, request, timeout);
}

absl::Status AdminClient::SetLogLevel(const std::string& level, absl::Duration timeout) {
  v1::SetLogLevelRequest request;
  request.set_level(level);
  return Call(&Stub::SetLogLevel, request, timeout).status();
}

absl::StatusOr<v1::ReloadResponse> AdminClient::Reload(absl::Duration timeout) {
  return Call(&Stub::Reload, v1::ReloadRequest(), timeout);
}

bool AdminClient::IsConnected() const { return transport_->IsConnected(); }

}  // namespace opserve
