#include "client/cpp/blocking_stream.h"

#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "grpcpp/support/status.h"

namespace opserve {

BlockingStream::BlockingStream(Transport& transport, const std::string& method,
                               absl::Duration timeout)
    : lease_(&transport.queues()), context_(transport.NewStreamContext(absl::Now() + timeout)) {
  // The start of the call goes out with the first message and has no event of its own.
  context_->set_initial_metadata_corked(true);
  call_ = transport.stub().PrepareCall(context_.get(), method, &lease_.queue());
  call_->StartCall(nullptr);
}

BlockingStream::~BlockingStream() {
  if (context_ == nullptr) return;
  context_->TryCancel();
  (void)Finish();
}

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

}  // namespace opserve
