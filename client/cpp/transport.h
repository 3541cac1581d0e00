// Internal: the connection to a target, and raw unary calls over it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/connect_options.h"
#include "client/cpp/queue_pool.h"
#include "client/cpp/request_numbers.h"
#include "client/cpp/retry_policy.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"

namespace opserve {

class Borrow;
class Transport;

// Tells of a call whether it can have left this process. Not thread-safe.
class CallReach {
 public:
  // At the start of the call. `transport` outlives it.
  explicit CallReach(Transport* transport);

  // At its end. A connection that was made meanwhile is still there: if it broke, gRPC would say
  // so, not that the deadline passed.
  bool MayHaveRun() const;

 private:
  Transport* transport_;
  bool was_connected_;
};

// One attempt of a call: Start, wait until the queue gives the tag, Finish; then another may begin.
// Not thread-safe, except Cancel.
class UnaryCall {
 public:
  // `method` is the full path. Shares the bytes of `request`. The call may not move until its tag
  // came back.
  void Start(Transport& transport, const std::string& method, const grpc::ByteBuffer& request,
             absl::Time deadline, grpc::CompletionQueue* queue, void* tag);

  // Between Start and Finish, from any thread.
  void Cancel() { context_->TryCancel(); }

  // Takes the answer and ends the call, and with it all references to the request that gRPC does
  // not need to finish a write to the connection. *response is empty unless the result is OK.
  absl::Status Finish(grpc::ByteBuffer* response);

  // After Finish.
  bool MayHaveRun() const { return reach_->MayHaveRun(); }

 private:
  std::optional<CallReach> reach_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
};

// A connection to a daemon, or one to each of several, made when first needed and remade when it
// breaks. Thread-safe.
class Transport {
 public:
  // kInvalidArgument: `target` is none (see ParseTarget), or `options` cannot be met. kUnavailable:
  // no connection within options.wait_for_ready.
  static absl::StatusOr<std::unique_ptr<Transport>> Create(const std::string& target,
                                                           const ConnectOptions& options = {});

  // Lets a connection that is being made come about first, for at most kSettleTime.
  ~Transport();

  bool IsConnected();

  // Every call of this client begins with one of these.
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline) const;

  // Except a session, which has no deadline and belongs to no trace.
  std::unique_ptr<grpc::ClientContext> NewSessionContext() const;

  // That of the calling thread's work, as ConnectOptions::traceparent says. "": none is to be sent.
  std::string TraceParent() const;

  // Whether requests are to go through sessions.
  bool uses_sessions() const { return uses_sessions_; }

  // Whether calls go round the addresses of the target.
  bool is_balanced() const { return is_balanced_; }

  // Makes a call, as often as the retry policy wants within `timeout`; the calling thread itself
  // waits for gRPC's events. Takes the contents of `request`, which all attempts share. Returns
  // only once `borrow`, if given, is released.
  absl::Status Call(const std::string& method, grpc::ByteBuffer* request, absl::Duration timeout,
                    grpc::ByteBuffer* response, const Borrow* borrow = nullptr);

  grpc::GenericStub& stub() { return stub_; }
  QueuePool& queues() { return queues_; }
  RetryPolicy& retry_policy() { return retry_policy_; }
  RequestNumbers& request_numbers() { return request_numbers_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  static constexpr absl::Duration kSettleTime = absl::Seconds(1);

  Transport(std::string target, const ConnectOptions& options, bool is_balanced,
            std::shared_ptr<grpc::Channel> channel);

  absl::Status WaitForConnection(absl::Duration timeout);

  const std::string target_;
  const std::function<std::string()> traceparent_;
  const std::string authorization_;  // "": none
  const bool uses_sessions_;
  const bool is_balanced_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  QueuePool queues_;
  RetryPolicy retry_policy_;
  RequestNumbers request_numbers_;
};

}  // namespace opserve
