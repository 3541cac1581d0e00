#include "client/cpp/admin_client.h"

#include <utility>

#include "client/cpp/deadline.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/transport.h"

namespace opserve {

using Stub = v1::AdminService::Stub;

AdminClient::AdminClient(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), stub_(v1::AdminService::NewStub(transport_->channel())) {}

AdminClient::~AdminClient() = default;

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::Connect(const std::string& target) {
  absl::StatusOr<std::unique_ptr<Transport>> transport = Transport::Create(target);
  if (!transport.ok()) return transport.status();
  return std::unique_ptr<AdminClient>(new AdminClient(*std::move(transport)));
}

template <typename Request, typename Response>
absl::StatusOr<Response> AdminClient::Call(Method<Request, Response> method, uint32_t device,
                                           absl::Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(DeadlineAfter(timeout));
  Request request;
  request.set_device(device);
  Response response;
  const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status, context);
  return response;
}

absl::StatusOr<uint32_t> AdminClient::DrainDevice(uint32_t device, absl::Duration timeout) {
  const auto response = Call(&Stub::DrainDevice, device, timeout);
  if (!response.ok()) return response.status();
  return response->moved_requests();
}

absl::Status AdminClient::ResumeDevice(uint32_t device, absl::Duration timeout) {
  return Call(&Stub::ResumeDevice, device, timeout).status();
}

absl::StatusOr<uint64_t> AdminClient::TrimPool(uint32_t device, absl::Duration timeout) {
  const auto response = Call(&Stub::TrimPool, device, timeout);
  if (!response.ok()) return response.status();
  return response->trimmed_bytes();
}

absl::StatusOr<v1::PoolSnapshot> AdminClient::GetPoolSnapshot(uint32_t device,
                                                              absl::Duration timeout) {
  return Call(&Stub::GetPoolSnapshot, device, timeout);
}

bool AdminClient::IsConnected() const { return transport_->IsConnected(); }

}  // namespace opserve
