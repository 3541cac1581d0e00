#include "server/session/request_arrival.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/schedule/lanes/transfer_task.h"

namespace opserve::server {
namespace {

// What a client may have under way: enough for the copy of one part and the next on its way.
constexpr uint64_t kWindowBytes = 4 * codec::kMostChunkBytes;

// The binder checks the sizes; no sum may overflow before it has.
uint64_t Sum(const codec::PayloadSizes& sizes) {
  uint64_t sum = 0;
  for (const uint64_t size : sizes) sum = size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
  return sum;
}

}  // namespace

RequestArrival::RequestArrival(SessionContext& context, grpc::CompletionQueue* queue,
                               uint32_t tenant, codec::PayloadSizes sizes, Receiver receiver)
    : context_(context),
      queue_(queue),
      tenant_(tenant),
      sizes_(std::move(sizes)),
      receiver_(std::move(receiver)),
      total_bytes_(Sum(sizes_)),
      pace_(UploadPace(context.upload_stall_timeout, context.upload_min_bytes_per_second), queue,
            {.expect_event = [this] { ExpectEvent(); },
             .on_overdue = [this] { Fail(Stalled()); },
             .event_ended = [this] { EventEnded(); }}),
      credit_(total_bytes_, kWindowBytes, codec::kMostChunkBytes),
      step_(queue, {.expect_event = [this] { ExpectEvent(); },
                    .over = [this](const absl::Status& status) { HandleStep(status); },
                    .event_ended = [this] { EventEnded(); }}) {
  for (const uint64_t size : sizes_) {
    tensors_.push_back(std::make_shared<ResidentTensor>());
    tensors_.back()->spec = {v1::DATA_TYPE_UINT8, {static_cast<int64_t>(size)}};
  }
}

absl::Status RequestArrival::Begin(const ProgramCall& bound, Priority priority,
                                   std::shared_ptr<CallState> call) {
  call_ = std::move(call);
  device_ = bound.residents.empty()
                ? context_.scheduler->BestForTensors(*context_.residents, tenant_, total_bytes_,
                                                     bound.program.get())
                : context_.scheduler->Find(bound.residents.front().tensor->device);
  if (device_ == nullptr) return MakeError(Reason::kDeviceUnavailable, "no device is ready");
  program_bytes_ = bound.program->memory_plan.total_bytes;
  uses_residents_ = !bound.residents.empty();
  DeviceQueue& queue = device_->queue();
  OPSERVE_RETURN_IF_ERROR(queue.CheckCanEverHold(tenant_, total_bytes_ + program_bytes_));
  // At once, if nobody waits for memory.
  BookingTask::Booked booked;
  absl::StatusOr<std::shared_ptr<void>> share = queue.TakeSpareMemory(tenant_, total_bytes_);
  if (share.ok()) {
    booked.first = *std::move(share);
    share = queue.TakeSpareMemory(tenant_, program_bytes_);
    if (share.ok()) booked.second = *std::move(share);
  }
  const bool is_booked = booked.second != nullptr;
  if (!is_booked) {
    booked = {};
    OPSERVE_RETURN_IF_ERROR(WaitForMemory(priority));
  }
  ExpectEvent();
  deadline_alarm_.Set(queue_, absl::ToChronoTime(call_->deadline()), &deadline_event_);
  if (is_booked) {
    Open(std::move(booked));
    Proceed();
  }
  return absl::OkStatus();
}

absl::Status RequestArrival::WaitForMemory(Priority priority) {
  std::unique_ptr<LaneTask> task = std::make_unique<BookingTask>(
      call_, device_->device().id(),
      BookingTask::Parts{.first_bytes = total_bytes_, .second_bytes = program_bytes_},
      TaskDemand{.tenant = tenant_, .priority = priority}, uses_residents_,
      [this](absl::StatusOr<BookingTask::Booked> booked) {
        const absl::Status status = booked.status();
        if (status.ok()) booked_ = *std::move(booked);
        step_.End(status);
      });
  step_.Begin();
  absl::Status status = context_.scheduler->Submit(&task);
  if (!status.ok()) step_.TakeBack();
  return status;
}

void RequestArrival::Open(BookingTask::Booked booked) {
  is_open_ = true;
  for (const std::shared_ptr<ResidentTensor>& tensor : tensors_) {
    tensor->device = device_->device().id();
    tensor->device_generation = device_->device().generation();
    tensor->content->zone_share = booked.first;
  }
  program_share_ = std::move(booked.second);
  writer_.Expect(*device_, total_bytes_);
  SkipComplete();
  GrantMore();
}

void RequestArrival::SkipComplete() {
  while (payload_ < sizes_.size() && offset_ == sizes_[payload_]) {
    ++payload_;
    offset_ = 0;
  }
}

void RequestArrival::GrantMore() {
  const uint64_t more = credit_.Grant();
  if (more == 0) return;
  pace_.Wait(credit_.on_their_way());
  receiver_.grant(more);
}

absl::Status RequestArrival::Receive(codec::Slices&& chunk) {
  const uint64_t bytes = codec::NumBytes(chunk);
  if (bytes == 0 || bytes > codec::kMostChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a chunk of ", bytes, " bytes, 1 to ", codec::kMostChunkBytes, " allowed"));
  }
  if (!credit_.Receive(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk of ", bytes, " bytes, ",
                                                   credit_.on_their_way(), " more were granted"));
  }
  if (bytes > sizes_[payload_] - offset_) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk of ", bytes, " bytes, of payload ",
                                                   payload_, " ", sizes_[payload_] - offset_,
                                                   " are to come"));
  }
  if (failure_.ok()) {
    pace_.Arrived(bytes);
    if (credit_.on_their_way() == 0) {
      pace_.EndWait();
    } else {
      pace_.Wait(credit_.on_their_way());
    }
    const bool continues = !waiting_.empty() && waiting_.back().payload == payload_;
    if (continues) {
      codec::Slices& together = waiting_.back().bytes;
      for (grpc::Slice& slice : chunk) together.push_back(std::move(slice));
    } else {
      waiting_.push_back({payload_, offset_, std::move(chunk)});
    }
  }
  offset_ += bytes;
  SkipComplete();
  Proceed();
  return absl::OkStatus();
}

void RequestArrival::Proceed() {
  if (is_over_ || step_.is_running()) return;
  if (failure_.ok() && !is_open_) return;
  if (failure_.ok() && !waiting_.empty()) {
    failure_ = CopyNext();
    if (step_.is_running()) return;
  }
  if (failure_.ok() && !credit_.is_complete()) return;
  is_over_ = true;
  deadline_alarm_.Cancel();
  pace_.Stop();
  waiting_.clear();
  writer_.Clear();
  // A request that uses resident tensors may wait for others before it, which need memory.
  if (uses_residents_ || !failure_.ok()) program_share_.reset();
  tensors_.clear();  // if they arrived, they are the request's now
  receiver_.over(failure_);
}

absl::Status RequestArrival::CopyNext() {
  OPSERVE_RETURN_IF_ERROR(call_->Check());
  Waiting next = std::move(waiting_.front());
  waiting_.pop_front();
  copying_bytes_ = codec::NumBytes(next.bytes);
  writer_.Add({.message = codec::PayloadMessage::OfPayload(std::move(next.bytes)),
               .tensor = tensors_[next.payload].get(),
               .offset = next.offset});
  ChunkWriter::Copy copy = writer_.Begin(*call_, tenant_);
  std::unique_ptr<LaneTask> task = std::make_unique<TransferTask>(
      call_, copy.device, TaskDemand{.tenant = tenant_}, TransferTask::Kind{.uses_residents = true},
      std::move(copy.step), [this](const absl::Status& status) { step_.End(status); });
  step_.Begin();
  absl::Status status = context_.scheduler->Submit(&task);
  if (!status.ok()) {
    writer_.End(status);
    step_.TakeBack();
  }
  return status;
}

void RequestArrival::HandleStep(const absl::Status& status) {
  if (!is_open_) {
    if (failure_.ok()) failure_ = status;
    if (failure_.ok()) Open(std::move(booked_));
    booked_ = {};
    Proceed();
    return;
  }
  writer_.End(status);
  if (status.ok()) {
    credit_.Copy(copying_bytes_);
    if (failure_.ok()) GrantMore();
  } else if (failure_.ok()) {
    failure_ = status;
  }
  Proceed();
}

void RequestArrival::HandleDeadline(bool ok) {
  if (ok) Fail(MakeError(Reason::kDeadlineExpired, "the deadline passed while inputs arrived"));
  EventEnded();
}

void RequestArrival::Fail(const absl::Status& status) {
  if (is_over_) return;
  if (failure_.ok()) failure_ = status;
  pace_.EndWait();
  if (step_.is_running()) call_->Cancel();  // it may wait in a queue
  Proceed();
}

absl::Status RequestArrival::Stalled() const {
  return MakeError(
      Reason::kUploadStalled,
      absl::StrCat("the request stalled after ", credit_.received(), " of its payloads' ",
                   total_bytes_, " bytes: a client may pause for ",
                   absl::FormatDuration(context_.upload_stall_timeout),
                   " (--upload_stall_timeout) if it sends ", context_.upload_min_bytes_per_second,
                   " bytes per second on average (--upload_min_bytes_per_second)"));
}

void RequestArrival::ExpectEvent() {
  ++num_events_;
  receiver_.expect_event();
}

void RequestArrival::EventEnded() {
  --num_events_;
  receiver_.event_ended();
}

}  // namespace opserve::server
