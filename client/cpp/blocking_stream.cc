#include "client/cpp/blocking_stream.h"

#include "absl/time/clock.h"
#include "client/cpp/deadline.h"
#include "client/cpp/grpc_status.h"
#include "grpcpp/support/status.h"

namespace opserve {

BlockingStream::BlockingStream(Transport& transport, const std::string& method, absl::Time deadline)
    : lease_(&transport.queues()), reach_(&transport), context_(transport.NewContext(deadline)) {
  // The start of the call goes out with the first message and has no event of its own.
  context_->set_initial_metadata_corked(true);
  call_ = transport.stub().PrepareCall(context_.get(), method, &lease_.queue());
  call_->StartCall(nullptr);
}

BlockingStream::~BlockingStream() {
  if (context_ == nullptr) return;
  // The status is still awaited: gRPC's objects must not go before the call has ended.
  context_->TryCancel();
  (void)Finish();
}

// Waiting for each write is the backpressure: gRPC holds no more than one message.
bool BlockingStream::Write(grpc::ByteBuffer* message, bool is_last) {
  grpc::WriteOptions options;
  if (is_last) options.set_last_message();
  call_->Write(*message, options, this);
  message->Clear();  // gRPC has its own references
  return Wait();
}

bool BlockingStream::Read(grpc::ByteBuffer* message) {
  call_->Read(message, this);
  return Wait();
}

absl::Status BlockingStream::Finish(const Borrow& borrow) {
  // gRPC keeps the status back as long as there is a message to read.
  grpc::ByteBuffer dropped;
  while (Read(&dropped)) {
  }
  grpc::Status status;
  call_->Finish(&status, this);
  Wait();
  absl::Status result = FromGrpcStatus(status, *context_);
  call_ = nullptr;
  context_ = nullptr;
  WaitUntilReleased(borrow, &lease_.queue());
  return result;
}

bool BlockingStream::Wait() {
  void* tag = nullptr;
  bool ok = false;
  lease_.queue().Next(&tag, &ok);
  return ok;
}

absl::Status CallByStream(Transport& transport, const std::string& method, absl::Duration timeout,
                          absl::FunctionRef<absl::Status(BlockingStream&)> attempt) {
  const absl::Time deadline = absl::Now() + timeout;
  CallAttempts attempts(&transport.retry_policy(), Repeats::kNever);
  for (;;) {
    bool may_have_run = true;
    absl::Status status;
    {
      // The stream, with its queue and context, ends before the wait.
      BlockingStream stream(transport, method, deadline);
      status = attempt(stream);
      may_have_run = stream.MayHaveRun();
    }
    if (status.ok()) {
      transport.retry_policy().RecordSuccess();
      return status;
    }
    const auto wait = attempts.WaitAfter(deadline - absl::Now(), may_have_run, &status);
    if (!wait) return status;
    // Nothing comes; but gRPC gets this thread to make the connection.
    QueuePool::Lease lease(&transport.queues());
    void* tag = nullptr;
    bool ok = false;
    lease.queue().AsyncNext(&tag, &ok, DeadlineAfter(*wait));
  }
}

}  // namespace opserve
