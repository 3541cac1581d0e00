// The sender's end of a Deposit call: one message at a time, each waited for.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "opserve/v1/peer_service.pb.h"
#include "server/config/peer_config.h"

namespace opserve::server {

// Used by one thread, but for Cancel. Messages are raw, so that elements are sent from the buffers
// that the device copied them to.
class DepositStream {
 public:
  // A stream with a connection of its own, not connected yet. The files of `config` are read anew,
  // as they may have been renewed. All waits end at `deadline`. kInvalidArgument: a file cannot be
  // read.
  static absl::StatusOr<std::unique_ptr<DepositStream>> Create(const DepositConfig& config,
                                                               absl::Time deadline);
  // Ends the call, by cancelling it unless Close has ended it.
  ~DepositStream();
  DepositStream(const DepositStream&) = delete;
  DepositStream& operator=(const DepositStream&) = delete;

  // Connects and begins the call; once, first. The error of the connection.
  absl::Status Begin();
  // An error is the call's, which is over then.
  absl::Status Send(const grpc::ByteBuffer& message);
  absl::Status Send(const v1::DepositRequest& request);
  // kInternal: the receiver's message is not of the step `expected`.
  absl::StatusOr<v1::DepositResponse> Receive(v1::DepositResponse::StepCase expected);
  // Says that nothing follows, and waits for the receiver's status.
  absl::Status Close();

  // Ends the present wait and all later ones. Thread-safe.
  void Cancel() { context_.TryCancel(); }

 private:
  explicit DepositStream(std::shared_ptr<grpc::Channel> channel);
  // Waits for the one operation that was started; whether it succeeded.
  bool Await();
  // The status of a call that has ended.
  absl::Status End();
  // The same where the call ought to have gone on: never OK.
  absl::Status Ended();

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool is_over_ = true;  // no call has begun, or it has ended
};

// Checks that the files of `config` can be read. kInvalidArgument: names the one that cannot.
absl::Status CheckDepositFiles(const DepositConfig& config);

}  // namespace opserve::server
