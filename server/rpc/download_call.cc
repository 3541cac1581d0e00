#include "server/rpc/download_call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "proto/codec/payload_message.h"
#include "proto/status/status_macros.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/pinned_slice.h"

namespace opserve::server {
namespace {

constexpr absl::string_view kDownload = "Download";
// Large enough for a message's own cost not to matter, small enough for two to be held per client.
constexpr uint64_t kDefaultChunkBytes = 1 << 20;

grpc::ByteBuffer ChunkMessage(DownloadChunk chunk) {
  v1::DownloadResponse header;
  header.set_crc32c(chunk.crc32c);
  const grpc::Slice data = ToSlice(std::move(chunk.data));
  return codec::BuildPayloadMessage(header, {&data, 1});
}

}  // namespace

void DownloadCall::Listen(TensorContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) new DownloadCall(context, queue);
}

DownloadCall::DownloadCall(TensorContext& context, grpc::ServerCompletionQueue* queue)
    : TransferCall(context, queue) {
  context_.service->RequestDownload(&rpc_, &request_, &stream_, queue_, queue_, &arrival_);
}

void DownloadCall::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down
    delete this;
    return;
  }
  Listen(context_, queue_);
  absl::Status status = Begin();
  if (status.ok()) status = Start();
  if (status.ok()) {
    Proceed();
  } else {
    Fail(status);
  }
}

absl::Status DownloadCall::Start() {
  v1::DownloadRequest request;
  OPSERVE_RETURN_IF_ERROR(ParseMessage(context_.calls->max_message_bytes, &request_, &request));
  chunk_bytes_ = request.chunk_bytes() > 0 ? request.chunk_bytes()
                                           : std::min(kDefaultChunkBytes, context_.max_chunk_bytes);
  OPSERVE_RETURN_IF_ERROR(CheckChunkBytes(context_, chunk_bytes_));
  OPSERVE_ASSIGN_OR_RETURN(tensor_,
                           context_.residents->Find(tenant_, request.handle(), absl::Now()));
  total_bytes_ = static_cast<uint64_t>(NumBytes(tensor_->spec));

  v1::DownloadResponse first;
  first.mutable_header()->set_dtype(tensor_->spec.dtype);
  first.mutable_header()->mutable_shape()->Add(tensor_->spec.shape.begin(),
                                               tensor_->spec.shape.end());
  first.mutable_header()->set_chunk_bytes(chunk_bytes_);
  Write(codec::BuildPayloadMessage(first, {}));
  if (BeginReading(*tensor_)) TakeContent();
  return absl::OkStatus();
}

void DownloadCall::TakeContent() {
  content_ = tensor_->content;
  EndReading();
}

void DownloadCall::Write(const grpc::ByteBuffer& message) {
  ExpectEvent();
  is_writing_ = true;
  // Written through: the operation ends when the message has left for the client, not when gRPC has
  // room to queue it. Only so is it a bound on memory.
  write_.Begin();
  stream_.Write(message, grpc::WriteOptions().set_write_through(), &written_);
}

void DownloadCall::OnWritten(bool ok) {
  write_.End();
  is_writing_ = false;
  if (ok) {
    Proceed();
  } else {
    Fail(absl::CancelledError("the client reads no more"));
  }
  EventEnded();
}

void DownloadCall::Proceed() {
  if (is_finished_ || step_is_running()) return;
  if (failure_.ok() && !is_writing_ && chunk_) {
    Write(ChunkMessage(*std::exchange(chunk_, std::nullopt)));
  }
  if (failure_.ok() && !chunk_ && copied_bytes_ < total_bytes_) {
    if (absl::Status status = CopyNext(); !status.ok()) {
      Fail(status);
      return;
    }
  }
  const bool is_complete = !step_is_running() && !chunk_ && copied_bytes_ == total_bytes_;
  if (!is_writing_ && (!failure_.ok() || is_complete)) Finish();
}

absl::Status DownloadCall::CopyNext() {
  const uint64_t offset = copied_bytes_;
  const uint64_t bytes = std::min(chunk_bytes_, total_bytes_ - offset);
  copied_bytes_ += bytes;
  const bool is_last = copied_bytes_ == total_bytes_;
  return Submit(
      tensor_->device, bytes, is_last, [this, offset, bytes](LaneContext& lane) -> absl::Status {
        OPSERVE_ASSIGN_OR_RETURN(chunk_, CopyFromDevice(*tensor_, *content_, offset, bytes, lane));
        return absl::OkStatus();
      });
}

void DownloadCall::OnStepEnded(const absl::Status& status) {
  if (!status.ok()) {
    Fail(status);
    return;
  }
  if (content_ == nullptr) {
    TakeContent();
  } else {
    context_.metrics->RecordCopies(CopyPath::kGrpc, 0, chunk_->data.size());
  }
  Proceed();
}

void DownloadCall::OnDeadline(const absl::Status& status) {
  if (is_finished_) return;
  // A message that the client does not read would keep the answer behind it waiting for ever.
  if (is_writing_) rpc_.TryCancel();
  Fail(status);
}

void DownloadCall::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
  CancelStep();
  Proceed();
}

void DownloadCall::Finish() {
  tensor_.reset();
  content_.reset();
  chunk_.reset();
  is_finished_ = true;
  ExpectEvent();
  write_.Begin();
  stream_.Finish(End(failure_, kDownload), &finished_);
}

void DownloadCall::OnFinished(bool /*ok*/) {
  write_.End();
  EventEnded();
}

}  // namespace opserve::server
