// Client of a daemon's administration, which has a listener of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/error.h"
#include "client/cpp/request.h"
#include "opserve/v1/admin_service.grpc.pb.h"
#include "opserve/v1/admin_service.pb.h"

namespace opserve {

class Transport;

// A connection to one daemon's admin listener, made when first needed and remade after it broke.
// Thread-safe; calls wait in the calling thread. Errors are as a Client's; kNotFound: the daemon
// has no such device.
class AdminClient {
 public:
  // `target`: "unix:PATH" or "HOST:PORT". kInvalidArgument: it is neither.
  static absl::StatusOr<std::unique_ptr<AdminClient>> Connect(const std::string& target);

  ~AdminClient();

  // Takes a device out of service and waits until it has nothing more to do; gives how many of its
  // requests other devices took over.
  // kDeadlineExceeded: it still drains, and goes on. kFailedPrecondition: it is not ready.
  absl::StatusOr<uint32_t> DrainDevice(uint32_t device, absl::Duration timeout = kDefaultTimeout);

  // Puts a drained or quarantined device back into service and waits until it is ready.
  // kInternal: it does not become so.
  absl::Status ResumeDevice(uint32_t device, absl::Duration timeout = kDefaultTimeout);

  // Gives the idle memory of a device's pool back to the device; gives its bytes.
  absl::StatusOr<uint64_t> TrimPool(uint32_t device, absl::Duration timeout = kDefaultTimeout);

  // Every region and block of a device's pool at one moment.
  absl::StatusOr<v1::PoolSnapshot> GetPoolSnapshot(uint32_t device,
                                                   absl::Duration timeout = kDefaultTimeout);

  // Whether there is a connection right now.
  bool IsConnected() const;

 private:
  explicit AdminClient(std::unique_ptr<Transport> transport);

  // A method of the stub, whose request has nothing but a device.
  template <typename Request, typename Response>
  using Method = grpc::Status (v1::AdminService::Stub::*)(grpc::ClientContext*, const Request&,
                                                          Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method, uint32_t device,
                                absl::Duration timeout);

  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace opserve
