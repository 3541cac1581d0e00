// Client of an opserve daemon.
//
//   auto client = opserve::Client::Connect(opserve::Client::DefaultTarget());
//   if (!client.ok()) return client.status();
//   auto response = (*client)->Execute({.operator_name = "L1LossBackward",
//                                       .inputs = {{"grad_output", Tensor::Of<float>({}, one)},
//                                                  {"self", Tensor::Of<float>({2, 3}, self)},
//                                                  {"target", Tensor::Of<float>({2, 3}, target)}},
//                                       .attributes = {{"reduction", "mean"}}});
//   if (!response.ok()) return response.status();
//   absl::StatusOr<absl::Span<const float>> gradient = response->results[0].values<float>();
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/call_handle.h"
#include "client/cpp/connect_options.h"
#include "client/cpp/error.h"
#include "client/cpp/execute_stream.h"
#include "client/cpp/prepared_program.h"
#include "client/cpp/request.h"
#include "client/cpp/resident_tensor.h"
#include "client/cpp/tensor.h"
#include "client/cpp/transfer_options.h"
#include "opserve/v1/operator.pb.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve {

class AsyncCalls;
class GivenUpPrograms;
class Transport;

// A connection to one daemon, or one to each of several between which calls go round; made when
// first needed and remade after it broke. Tensors are in the memory of one daemon: to use resident
// tensors, connect to that one alone.
//
// Thread-safe. Blocking calls wait in the calling thread; asynchronous ones share the client's
// thread, which starts with the first call of a program.
//
// Errors have the daemon's code and message; ErrorDetailOf and RetryPushbackOf tell more. Those
// that arise here: kUnavailable (no connection), kDeadlineExceeded, kCancelled, kInvalidArgument
// (more bytes than a message can have), kInternal (the answer breaks the protocol) and
// kFailedPrecondition (a result's region of shared memory was destroyed meanwhile).
//
// Operators are pure: repeating a call is safe, unless it replaces or donates tensors. So Execute,
// ExecuteAsync, Renew, Release, ListTensors, ListOperators and GetServerStatus repeat it themselves
// after kUnavailable (which a broken connection gives too) and kResourceExhausted, unless the
// daemon says that it is of no use: after the wait that the daemon asks for or, if it has no
// opinion, up to 50 ms, 100 ms, 200 ms and so on up to 5 s, drawn at random. The timeout is that of
// all attempts; if the next one cannot begin before it passes, the call ends at once. A daemon that
// falls silent is noticed too (ConnectOptions::keepalive). A call that has run nowhere, because the
// daemon is away, waits for it until the timeout; so do Upload, Download and streams that are not
// connected yet. ConnectOptions::retry bounds how often a call, and all calls of the client
// together, are repeated. The error is then that of the last attempt, and its message tells how
// many there were. All attempts send the caller's bytes from where they are. Upload, Download and
// the requests of a stream are not repeated.
class Client {
 public:
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

  // The target of this user's programs: $OPSERVE_TARGET or, if it is empty or not set, the Unix
  // socket on which a daemon serves this user by default: opserve/opserve.sock in
  // $XDG_RUNTIME_DIR, else /tmp/opserve-UID/opserve.sock.
  static std::string DefaultTarget();

  // `target`: "unix:PATH" or "HOST:PORT" for one daemon. For several: "dns:///HOST:PORT", a daemon
  // at each address of HOST, or a list with commas and no spaces, in which each is unix:PATH, each
  // IPV4:PORT or each [IPV6]:PORT. Calls then go in turn to those daemons that are connected and
  // that report themselves as serving (gRPC's health service).
  //
  // kInvalidArgument: it is none of these, or `options` cannot be met: see ConnectOptions.
  // kUnavailable: no connection within options.wait_for_ready.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& target,
                                                         const ConnectOptions& options = {});

  // Cancels the asynchronous calls in flight and waits until their callbacks have returned. Not to
  // be called from a callback, nor while a blocking call runs.
  ~Client();

  // Runs a program and waits for its results.
  absl::StatusOr<Response> Execute(const Request& request);

  // Runs one operator with the default timeout and waits for all its outputs.
  absl::StatusOr<Response> Execute(Invocation invocation);

  // Runs a program in the protocol's own form, such as one that was read from a file. Its payloads
  // are the storages of `payloads`.
  absl::StatusOr<Response> Execute(const v1::ExecuteRequest& request,
                                   const std::vector<Tensor>& payloads,
                                   absl::Duration timeout = kDefaultTimeout);

  // A program to be called like a function, any number of times; nothing is sent before the first
  // call. `request` may have inputs (InputOf), has no destinations, and its tensors are copied; its
  // timeout, receipt, priority and key belong to the calls. See program.h and prepared_program.h.
  //
  // kInvalidArgument: an input is used by nothing, or has two dtypes or shapes.
  absl::StatusOr<PreparedProgram> Prepare(const Request& request);

  // Likewise, in the protocol's own form; the kinds of its inputs are those that the calls have.
  PreparedProgram Prepare(v1::PrepareRequest program);

  // Runs a program; `callback` is called exactly once, from the client's thread, which it holds up
  // while it runs. It may start further calls; while the client is being destroyed these end with
  // kCancelled at once. A request that cannot be sent is reported before ExecuteAsync returns, from
  // the calling thread.
  CallHandle ExecuteAsync(const Request& request, Callback callback);

  // The same, with the response in a future.
  std::future<absl::StatusOr<Response>> ExecuteAsync(const Request& request);

  // Opens a stream for requests that are to be pipelined. Does not wait: faults of the connection
  // or the daemon show in the requests. kInvalidArgument: options.window is 0.
  absl::StatusOr<std::unique_ptr<ExecuteStream>> OpenStream(const StreamOptions& options = {});

  // Puts a tensor into the memory of a device, where it stays for its lease, and waits until it is
  // there. Elements that are not contiguous are copied first; others are sent from where they are,
  // and kept alive as Tensor describes. Nothing remains of an upload that does not end well; it is
  // not repeated.
  //
  // kInvalidArgument: a view that does not fit its storage, or the daemon's refusal. kDataLoss: it
  // got other bytes than were sent. kResourceExhausted: the quota or the device is full.
  absl::StatusOr<ResidentTensor> Upload(const Tensor& tensor, const UploadOptions& options = {});

  // The elements of a resident tensor, in a block of their own; no source(). Not repeated.
  //
  // kNotFound: no such tensor, or its lease has ended. kFailedPrecondition: the device has lost it.
  // kDataLoss: other bytes came, or fewer, than the daemon sent. kResourceExhausted: no memory.
  absl::StatusOr<Result> Download(const std::string& handle, const DownloadOptions& options = {});

  // The elements of resident tensors, each named once, as they are at one moment between two
  // requests; in the order of `handles`. Requests with the tensors go on meanwhile; one that
  // replaces a tensor takes memory for both contents until the old one is here. None for none. Not
  // repeated. Errors are as Download's; the daemon's name the position in `handles`.
  absl::StatusOr<std::vector<SnapshotTensor>> Snapshot(const std::vector<std::string>& handles,
                                                       const DownloadOptions& options = {});

  // Lets leases end `lease` from now (zero: the daemon's default), though none earlier than it
  // would have; gives their ends in the order of `handles`, of which there are at most 1024. On an
  // error, as from Download, no lease is changed.
  absl::StatusOr<std::vector<absl::Time>> Renew(const std::vector<std::string>& handles,
                                                absl::Duration lease,
                                                absl::Duration timeout = kDefaultTimeout);

  // Frees resident tensors, at most 1024, and gives their number. Handles that are unknown are
  // passed over, so that it may be repeated; calls in progress still use the tensors.
  absl::StatusOr<uint32_t> Release(const std::vector<std::string>& handles,
                                   absl::Duration timeout = kDefaultTimeout);

  // The caller's resident tensors, in the order of their handles. One that is created or released
  // meanwhile may be among them or not.
  absl::StatusOr<std::vector<TensorInfo>> ListTensors(absl::Duration timeout = kDefaultTimeout);

  // The operators of these names, or all. kNotFound: one is unknown.
  absl::StatusOr<std::vector<v1::OperatorDescriptor>> ListOperators(
      const std::vector<std::string>& names = {}, absl::Duration timeout = kDefaultTimeout);

  absl::StatusOr<v1::GetServerStatusResponse> GetServerStatus(
      absl::Duration timeout = kDefaultTimeout);

  // Whether there is a connection right now.
  bool IsConnected() const;

 private:
  explicit Client(std::unique_ptr<Transport> transport);

  void ReleaseGivenUpPrograms();

  const std::shared_ptr<Transport> transport_;  // also that of streams, which may outlive this
  const std::shared_ptr<GivenUpPrograms> given_up_programs_;
  // Uses transport_, so goes first. That of prepared programs, too, while the client lives.
  const std::shared_ptr<AsyncCalls> calls_;
};

}  // namespace opserve
