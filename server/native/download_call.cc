#include "server/native/download_call.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "proto/codec/payload_message.h"
#include "proto/status/status_macros.h"
#include "server/grpc/message_bytes.h"
#include "server/grpc/result_slice.h"

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
  const ResidentTensors& residents = *context_.residents;
  std::vector<std::shared_ptr<ResidentTensor>> tensors;
  if (request.handles().empty()) {
    OPSERVE_ASSIGN_OR_RETURN(tensors.emplace_back(),
                             residents.Find(tenant_, request.handle(), absl::Now()));
  } else if (!request.handle().empty()) {
    return InvalidField("handle", "there are `handles`, too");
  } else {
    const std::vector<const std::string*> handles(request.handles().pointer_begin(),
                                                  request.handles().pointer_end());
    OPSERVE_ASSIGN_OR_RETURN(tensors, residents.FindAll(tenant_, handles, absl::Now()));
  }
  std::vector<TensorClaims::Wish> wishes;
  for (std::shared_ptr<ResidentTensor>& tensor : tensors) {
    wishes.push_back({tensor.get()});
    const auto bytes = static_cast<uint64_t>(NumBytes(tensor->spec));
    parts_.push_back({.tensor = std::move(tensor), .bytes = bytes});
    total_bytes_ += bytes;
  }
  return BeginReading(wishes) ? TakeContents() : absl::OkStatus();
}

absl::Status DownloadCall::TakeContents() {
  absl::Status status;
  for (Part& part : parts_) {
    status.Update(CheckNotBroken(*part.tensor));
    part.content = part.tensor->content;
    part.device = part.tensor->device;
    part.device_generation = part.tensor->device_generation;
    part.version = part.tensor->version;
    context_.transfers->Hold(part.bytes);
  }
  EndReading();
  has_contents_ = status.ok();
  return status;
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
  if (failure_.ok() && !is_writing_) WriteNext();
  if (failure_.ok() && !chunk_) {
    if (absl::Status status = CopyNext(); !status.ok()) {
      Fail(status);
      return;
    }
  }
  const bool is_complete = !step_is_running() && !chunk_ && num_announced_ == parts_.size();
  if (!is_writing_ && (!failure_.ok() || is_complete)) Finish();
}

void DownloadCall::LetGo(Part& part) {
  if (std::exchange(part.content, nullptr) != nullptr) context_.transfers->LetGo(part.bytes);
}

void DownloadCall::WriteNext() {
  // Without a chunk that waits: at the beginning, or the rest of the parts is empty.
  const bool is_announced = chunk_ && copied_part_ < num_announced_;
  if (!is_announced && num_announced_ < parts_.size()) {
    Write(HeaderMessage(parts_[num_announced_++]));
  } else if (chunk_) {
    Write(ChunkMessage(*std::exchange(chunk_, std::nullopt)));
  }
}

grpc::ByteBuffer DownloadCall::HeaderMessage(const Part& part) const {
  const TensorSpec& spec = part.tensor->spec;
  v1::DownloadResponse message;
  message.mutable_header()->set_dtype(spec.dtype);
  message.mutable_header()->mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
  message.mutable_header()->set_chunk_bytes(chunk_bytes_);
  message.mutable_header()->set_version(part.version);
  if (&part == &parts_.front()) message.mutable_header()->set_total_bytes(total_bytes_);
  return codec::BuildPayloadMessage(message, {});
}

absl::Status DownloadCall::CopyNext() {
  while (copied_part_ < parts_.size() && copied_bytes_ == parts_[copied_part_].bytes) {
    LetGo(parts_[copied_part_++]);  // its memory does not wait for the rest of the snapshot
    copied_bytes_ = 0;
  }
  if (copied_part_ == parts_.size()) return absl::OkStatus();
  const Part& part = parts_[copied_part_];
  const uint64_t offset = copied_bytes_;
  const uint64_t bytes = std::min(chunk_bytes_, part.bytes - offset);
  copied_bytes_ += bytes;
  submitted_bytes_ += bytes;
  return Submit(part.device, bytes, /*is_last=*/submitted_bytes_ == total_bytes_,
                [this, &part, offset, bytes](LaneContext& lane) -> absl::Status {
                  OPSERVE_ASSIGN_OR_RETURN(
                      chunk_,
                      CopyFromDevice(*part.content, part.device_generation, offset, bytes, lane));
                  return absl::OkStatus();
                });
}

void DownloadCall::OnStepEnded(const absl::Status& status) {
  if (!status.ok()) {
    Fail(status);
    return;
  }
  if (!has_contents_) {
    if (absl::Status taken = TakeContents(); !taken.ok()) return Fail(taken);
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
  for (Part& part : parts_) LetGo(part);
  parts_.clear();
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

void DownloadCall::OnEnd() {
  context_.transfers->RecordDownload(rpc_.IsCancelled() ? absl::CancelledError() : failure_);
}

}  // namespace opserve::server
