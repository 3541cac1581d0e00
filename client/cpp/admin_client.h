// Client of a daemon's administration, which has a listener of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/connect_options.h"
#include "client/cpp/error.h"
#include "client/cpp/request.h"
#include "opserve/v1/admin_service.grpc.pb.h"
#include "opserve/v1/admin_service.pb.h"

namespace opserve {

class Transport;

// A connection to one daemon's admin listener, made when first needed and remade after it broke.
// Thread-safe; calls wait in the calling thread and are not repeated: that is the administrator's
// decision. Errors are as a Client's; kNotFound: the daemon has no such device.
class AdminClient {
 public:
  // `target` and errors: as for Client::Connect. Devices are those of one daemon, so there should
  // be one at the target. options.retry means nothing here.
  static absl::StatusOr<std::unique_ptr<AdminClient>> Connect(const std::string& target,
                                                              const ConnectOptions& options = {});

  ~AdminClient();

  // Takes a device out of service and waits until it has nothing more to do; gives how many of its
  // requests other devices took over.
  // kDeadlineExceeded: it still drains, and goes on. kFailedPrecondition: it is not ready, or no
  // other is and `last` is kSpare, and nothing has changed.
  enum class Last { kDrain, kSpare };
  absl::StatusOr<uint32_t> DrainDevice(uint32_t device, absl::Duration timeout = kDefaultTimeout,
                                       Last last = Last::kDrain);

  // Ends the daemon's service as SIGTERM does, deposits its resident tensors included, and waits
  // until that is over; the daemon then waits for its end.
  // kDeadlineExceeded: it still drains, and goes on.
  absl::StatusOr<v1::DrainDaemonResponse> DrainDaemon(absl::Duration timeout = kDefaultTimeout);

  // Puts a drained or quarantined device back into service and waits until it is ready.
  // kInternal: it does not become so.
  absl::Status ResumeDevice(uint32_t device, absl::Duration timeout = kDefaultTimeout);

  // Gives the idle memory of a device's pool back to the device; gives its bytes.
  absl::StatusOr<uint64_t> TrimPool(uint32_t device, absl::Duration timeout = kDefaultTimeout);

  // Every region and block of a device's pool at one moment.
  absl::StatusOr<v1::PoolSnapshot> GetPoolSnapshot(uint32_t device,
                                                   absl::Duration timeout = kDefaultTimeout);

  // The resident tensors of the tenant with this name, or of all if it is "", the largest first,
  // with the first bytes of their handles. kNotFound: there is no such tenant.
  absl::StatusOr<v1::ListTensorsResponse> ListTensors(const std::string& tenant,
                                                      absl::Duration timeout = kDefaultTimeout);

  // The daemon's state right now: devices, tenants, memory, connections.
  absl::StatusOr<v1::AdminStatus> GetStatus(absl::Duration timeout = kDefaultTimeout);

  // Gives the status to `go_on` at once and then after each `interval` (100 ms to 1 hour), in the
  // calling thread, until it returns false; that is success. It waits as long as the daemon takes.
  // kInvalidArgument: the interval. kResourceExhausted: too many watch already. kUnavailable: the
  // daemon stops.
  absl::Status Watch(absl::Duration interval,
                     const std::function<bool(const v1::AdminStatus&)>& go_on);

  // Sets the lowest level that is logged: debug, info, warning, error or off.
  // kInvalidArgument: none of these.
  absl::Status SetLogLevel(const std::string& level, absl::Duration timeout = kDefaultTimeout);

  // Has the daemon read its configuration and TLS files again. After an error all is as it was.
  // kInvalidArgument: a file is wrong. kFailedPrecondition: it changes a setting that needs a
  // restart. kDataLoss: it is empty, or would take all tenants away.
  absl::StatusOr<v1::ReloadResponse> Reload(absl::Duration timeout = kDefaultTimeout);

  // Whether there is a connection right now.
  bool IsConnected() const;

 private:
  explicit AdminClient(std::unique_ptr<Transport> transport);

  // A method of the stub.
  template <typename Request, typename Response>
  using Method = grpc::Status (v1::AdminService::Stub::*)(grpc::ClientContext*, const Request&,
                                                          Response*);
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(Method<Request, Response> method, const Request& request,
                                absl::Duration timeout);

  const std::unique_ptr<Transport> transport_;
  const std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace opserve
