#include "server/native/upload_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/message_bytes.h"

namespace opserve::server {
namespace {

constexpr absl::string_view kUpload = "Upload";

// The device for a tensor of `bytes` bytes.
absl::StatusOr<DeviceService*> ChooseDevice(const TensorContext& context, uint32_t tenant,
                                            const v1::UploadHeader& header, uint64_t bytes) {
  const Scheduler& scheduler = *context.scheduler;
  if (header.has_device()) {
    DeviceService* asked = header.device() > INT32_MAX
                               ? nullptr
                               : scheduler.Find(static_cast<int32_t>(header.device()));
    if (asked != nullptr) return asked;
    return InvalidField("device",
                        absl::StrCat("there is no device ", header.device(), "; there are ",
                                     absl::StrJoin(scheduler.devices(), ", ",
                                                   [](std::string* out, const auto& service) {
                                                     absl::StrAppend(out, service->device().id());
                                                   })));
  }
  if (DeviceService* best = scheduler.BestForTensors(*context.residents, tenant, bytes))
    return best;
  return MakeError(Reason::kDeviceUnavailable, "no device is ready");
}

}  // namespace

void UploadCall::Listen(TensorContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.calls->accepts_more.load(std::memory_order_acquire)) new UploadCall(context, queue);
}

UploadCall::UploadCall(TensorContext& context, grpc::ServerCompletionQueue* queue)
    : TransferCall(context, queue),
      pace_(UploadPace(context.upload_stall_timeout, context.upload_min_bytes_per_second), queue,
            {.expect_event = [this] { ExpectEvent(); },
             .on_overdue = [this] { Fail(Stalled()); },
             .event_ended = [this] { EventEnded(); }}) {
  context_.service->RequestUpload(&rpc_, &stream_, queue_, queue_, &arrival_);
}

void UploadCall::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down
    delete this;
    return;
  }
  Listen(context_, queue_);
  if (absl::Status status = Begin(); !status.ok()) {
    Fail(status);
  } else {
    Read();
  }
}

void UploadCall::Read() {
  ExpectEvent();
  is_reading_ = true;
  // Nothing is owed by a client whose bytes are all here, however long the device takes for them.
  if (!is_complete()) pace_.Wait(NextBytes());
  stream_.Read(&incoming_, &read_);
}

uint64_t UploadCall::NextBytes() const {
  if (tensor_ == nullptr) return context_.max_chunk_bytes;  // not announced yet
  return std::min(chunk_bytes_, total_bytes_ - received_bytes_);
}

absl::Status UploadCall::Stalled() const {
  return MakeError(
      Reason::kUploadStalled,
      absl::StrCat("the upload stalled after ", received_bytes_, " of the tensor's ", total_bytes_,
                   " bytes: a client may pause for ",
                   absl::FormatDuration(context_.upload_stall_timeout),
                   " (--upload_stall_timeout) if it sends ", context_.upload_min_bytes_per_second,
                   " bytes per second on average (--upload_min_bytes_per_second)"));
}

void UploadCall::OnRead(bool ok) {
  is_reading_ = false;
  pace_.EndWait();
  if (!ok) {
    reads_ended_ = true;
  } else if (failure_.ok() && !is_finished_) {  // the answer does not wait for this read
    if (absl::Status status = Take(incoming_); !status.ok()) Fail(status);
  }
  incoming_.Clear();
  Proceed();
  EventEnded();
}

absl::Status UploadCall::Take(const grpc::ByteBuffer& bytes) {
  OPSERVE_RETURN_IF_ERROR(CheckMessageBytes(bytes, context_.calls->max_message_bytes));
  auto message = codec::PayloadMessage::Split(bytes, /*max_payloads=*/1);
  if (!message.ok()) return InvalidField("", message.status().message());
  v1::UploadRequest request;
  if (absl::Status status = message->ParseHeader(&request); !status.ok()) {
    return InvalidField("", status.message());
  }
  const bool is_first = tensor_ == nullptr;
  if (request.has_header() != is_first) {
    return InvalidField("header", is_first ? "is missing in the first message"
                                           : "is in another message than the first");
  }
  if (is_first) {
    OPSERVE_RETURN_IF_ERROR(Start(request.header()));
    const bool has_data = !message->payloads().empty() && message->payloads()[0].size > 0;
    if (!has_data) return absl::OkStatus();
  }
  return TakeChunk(*std::move(message), request.crc32c());
}

absl::Status UploadCall::Start(const v1::UploadHeader& header) {
  OPSERVE_ASSIGN_OR_RETURN(TensorSpec spec, ReadSpec(header.dtype(), header.shape()));
  total_bytes_ = static_cast<uint64_t>(NumBytes(spec));
  if (total_bytes_ > context_.max_tensor_bytes) {
    return WithLimit(
        context_.max_tensor_bytes,
        InvalidField("shape",
                     absl::StrCat("takes ", total_bytes_, " bytes, at most ",
                                  context_.max_tensor_bytes, " allowed (--max_tensor_bytes)"),
                     Reason::kTooLarge));
  }
  OPSERVE_RETURN_IF_ERROR(CheckChunkBytes(context_, header.chunk_bytes()));
  chunk_bytes_ = header.chunk_bytes();
  OPSERVE_ASSIGN_OR_RETURN(lease_,
                           ReadLease(header.lease(), context_.residents->limits().max_lease));
  OPSERVE_ASSIGN_OR_RETURN(device_, ChooseDevice(context_, tenant_, header, total_bytes_));
  OPSERVE_RETURN_IF_ERROR(device_->queue().CheckCanEverHold(tenant_, total_bytes_));
  const int32_t device = device_->device().id();
  OPSERVE_ASSIGN_OR_RETURN(reservation_,
                           context_.residents->Reserve(tenant_, device, total_bytes_));
  tensor_ = std::make_shared<ResidentTensor>();
  tensor_->spec = std::move(spec);
  tensor_->device = device;
  tensor_->device_generation = device_->device().generation();
  return absl::OkStatus();
}

absl::Status UploadCall::Book() {
  OPSERVE_ASSIGN_OR_RETURN(tensor_->content->zone_share,
                           device_->queue().TakeMemory(tenant_, total_bytes_));
  chunks_.Expect(*device_, total_bytes_);
  return absl::OkStatus();
}

absl::Status UploadCall::TakeChunk(codec::PayloadMessage message, uint32_t crc32c) {
  const uint64_t bytes = message.payloads().empty() ? 0 : message.payloads()[0].size;
  const uint64_t expected = std::min(chunk_bytes_, total_bytes_ - received_bytes_);
  if (expected == 0) {
    return InvalidField(
        "data", absl::StrCat("there is a message after the tensor's ", total_bytes_, " bytes"));
  }
  if (bytes != expected) {
    return InvalidField("data", absl::StrCat("the chunk from byte ", received_bytes_, " on has ",
                                             bytes, " bytes, expected ", expected));
  }
  if (received_bytes_ == 0) OPSERVE_RETURN_IF_ERROR(Book());
  const uint64_t offset = std::exchange(received_bytes_, received_bytes_ + bytes);
  chunks_.Add({.message = std::move(message),
               .tensor = tensor_.get(),
               .offset = offset,
               .crc32c = crc32c,
               .is_last = is_complete()});
  pace_.Arrived(bytes);
  return absl::OkStatus();
}

void UploadCall::Proceed() {
  if (is_finished_ || step_is_running()) return;
  if (failure_.ok() && chunks_.has_waiting()) {
    if (absl::Status status = CopyNext(); !status.ok()) {
      Fail(status);
      return;
    }
  }
  if (!failure_.ok() || ((reads_ended_ || is_complete()) && !step_is_running())) {
    Complete();
  } else if (!reads_ended_ && !is_reading_) {
    Read();
  }
}

absl::Status UploadCall::CopyNext() {
  ChunkWriter::Copy copy = chunks_.Begin(*state_, tenant_);
  return Submit(copy.device, /*result_bytes=*/0, copy.is_last, std::move(copy.step));
}

void UploadCall::OnStepEnded(const absl::Status& status) {
  chunks_.End(status);
  if (status.ok()) {
    Proceed();
  } else {
    Fail(status);
  }
}

void UploadCall::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
  pace_.EndWait();
  CancelStep();
  Proceed();
}

void UploadCall::Complete() {
  v1::UploadResponse response;
  if (failure_.ok()) failure_ = AddTensor(&response);
  chunks_.Clear();
  tensor_.reset();
  reservation_ = ResidentTensors::Reservation();
  is_finished_ = true;
  ExpectEvent();
  write_.Begin();
  pace_.Stop();
  const grpc::Status status = End(failure_, kUpload);
  if (!status.ok()) {
    stream_.FinishWithError(status, &finished_);
    return;
  }
  const grpc::Slice bytes(response.SerializeAsString());
  stream_.Finish(grpc::ByteBuffer(&bytes, 1), status, &finished_);
}

absl::Status UploadCall::AddTensor(v1::UploadResponse* response) {
  OPSERVE_RETURN_IF_ERROR(state_->Check());  // a cancelled stream ends like one that is complete
  if (tensor_ == nullptr) return InvalidField("header", "is missing: there was no message");
  if (received_bytes_ < total_bytes_) {
    return InvalidField("data", absl::StrCat("ended after ", received_bytes_, " of the tensor's ",
                                             total_bytes_, " bytes"));
  }
  const int32_t device = tensor_->device;
  std::vector<ResidentTensors::New> tensors(1);
  tensors[0] = {std::move(reservation_), std::move(tensor_), lease_};
  OPSERVE_ASSIGN_OR_RETURN(const std::vector<ResidentTensors::Added> added,
                           context_.residents->Add(std::move(tensors), absl::Now()));
  handle_ = added[0].handle;
  response->set_handle(handle_);
  *response->mutable_lease_end() = ToTimestamp(added[0].lease_end);
  response->set_device(static_cast<uint32_t>(device));
  return absl::OkStatus();
}

void UploadCall::OnFinished(bool /*ok*/) {
  write_.End();
  EventEnded();
}

void UploadCall::OnEnd() {
  // Only now it is known: a client that leaves ends its messages like one that has sent them all.
  const bool has_client_left = rpc_.IsCancelled();
  context_.transfers->RecordUpload(has_client_left ? absl::CancelledError() : failure_);
  // The client never got the handle: it left when the answer was on its way.
  if (!handle_.empty() && has_client_left) context_.residents->Release(tenant_, {&handle_, 1});
}

}  // namespace opserve::server
