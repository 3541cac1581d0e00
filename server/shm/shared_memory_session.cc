#include "server/shm/shared_memory_session.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/status_conversion.h"
#include "server/identity/audit.h"

namespace opserve::server {
namespace {

absl::Status Invalid(absl::string_view problem) { return MakeError(Reason::kShmInvalid, problem); }

absl::Status CheckNoDescriptor(const SharedMemorySession::Packet& packet) {
  if (packet.descriptors.empty()) return absl::OkStatus();
  return Invalid("only register_region takes a file descriptor");
}

}  // namespace

SharedMemorySession::~SharedMemorySession() {
  // Requests that use its regions keep them to their end.
  if (is_identified()) parts_.regions.RemoveConnection(key_);
}

std::string SharedMemorySession::Answer(const Packet& packet) {
  v1::SharedMemoryResponse response;
  const absl::Status status = Handle(packet, &response);
  if (!status.ok()) {
    // A part of the answer may have been made before the error.
    response.Clear();
    *response.mutable_error() = ToStatusDetails(status);
    parts_.metrics.RecordSharedMemoryRejection(status);
  }
  // Also beside an error: a client that is known needs the key for its next requests.
  if (is_identified()) response.set_connection(key_);
  return response.SerializeAsString();
}

absl::Status SharedMemorySession::Handle(const Packet& packet, v1::SharedMemoryResponse* response) {
  v1::SharedMemoryRequest request;
  // The rest of a longer packet is lost, so it cannot be read.
  if (!packet.is_whole || packet.bytes.size() > kMaxPacketBytes) {
    return Invalid(
        absl::StrCat("a packet of more than ", kMaxPacketBytes, " bytes or one file descriptor"));
  }
  if (!request.ParseFromArray(packet.bytes.data(), static_cast<int>(packet.bytes.size()))) {
    return Invalid("the packet is not a SharedMemoryRequest");
  }
  if (!is_identified()) {
    OPSERVE_RETURN_IF_ERROR(Identify(request.token()));
  } else if (!request.token().empty()) {
    // The tenant of a connection never changes.
    return Invalid("only the first request of a connection takes a token");
  }
  return Dispatch(request, packet, response);
}

absl::Status SharedMemorySession::Identify(const std::string& token) {
  Credentials credentials = {.uid = uid_};
  if (!token.empty()) credentials.token = token;
  const absl::StatusOr<Tenant*> tenant = parts_.tenants.Identify(credentials);
  if (!tenant.ok()) {
    // One try for a connection: the client is told, and disconnected.
    is_over_ = true;
    AuditDenied("shared_memory", tenant.status(), uid_, /*certificate_names=*/{});
    return tenant.status();
  }
  tenant_ = *tenant;
  // Calls name this key with a region (SharedMemoryRange.connection), on any gRPC connection.
  key_ = parts_.regions.AddConnection(tenant_->id());
  return absl::OkStatus();
}

absl::Status SharedMemorySession::Dispatch(const v1::SharedMemoryRequest& request,
                                           const Packet& packet,
                                           v1::SharedMemoryResponse* response) {
  switch (request.request_case()) {
    case v1::SharedMemoryRequest::kRegisterRegion:
      return Register(request.register_region(), packet);
    case v1::SharedMemoryRequest::kUnregisterRegion:
      OPSERVE_RETURN_IF_ERROR(CheckNoDescriptor(packet));
      return parts_.regions.Unregister(key_, request.unregister_region().region());
    case v1::SharedMemoryRequest::kListRegions:
      OPSERVE_RETURN_IF_ERROR(CheckNoDescriptor(packet));
      for (const SharedRegions::Listed& listed : parts_.regions.List(key_)) {
        v1::SharedRegionStatus* region = response->add_regions();
        region->set_region(listed.id);
        region->set_size(listed.size);
        region->set_read_only(listed.is_read_only);
      }
      return absl::OkStatus();
    case v1::SharedMemoryRequest::REQUEST_NOT_SET:
      break;
  }
  return Invalid("the request asks for nothing");
}

absl::Status SharedMemorySession::Register(const v1::RegisterRegion& request,
                                           const Packet& packet) {
  if (packet.descriptors.size() != 1) {
    return Invalid(absl::StrCat("register_region takes one file descriptor, there are ",
                                packet.descriptors.size()));
  }
  // As of now, since a reload may have changed the limits.
  const std::shared_ptr<const TenantConfig> config = tenant_->config();
  return parts_.regions.Register(
      key_, request.region(), packet.descriptors[0].get(),
      {.offset = request.offset(), .size = request.size(), .read_only = request.read_only()},
      {.max_bytes = config->shared_memory_bytes, .max_regions = config->shared_memory_regions});
}

}  // namespace opserve::server
