#include "server/session/result_departure.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpc/support/time.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/result_slice.h"
#include "server/observability/stage_clock.h"
#include "server/run/tensor_transfer.h"
#include "server/schedule/lanes/transfer_task.h"

namespace opserve::server {
namespace {

// A queue that was full may have room then.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(5);

}  // namespace

ResultDeparture::ResultDeparture(SessionContext& context, grpc::CompletionQueue* queue,
                                 uint32_t tenant, uint64_t connection,
                                 std::shared_ptr<CallState> call, const RequestEnd& end,
                                 std::string header, Sender sender)
    : context_(context),
      queue_(queue),
      tenant_(tenant),
      connection_(connection),
      call_(std::move(call)),
      sender_(std::move(sender)),
      end_(end),
      header_(std::move(header)),
      answer_bytes_(header_.size()),
      step_(queue, {.expect_event = [this] { ExpectEvent(); },
                    .over = [this](const absl::Status& status) { HandleStep(status); },
                    .event_ended = [this] { EventEnded(); }}) {
  for (const HeldResults::Result& result : held().results) {
    answer_bytes_ += codec::PayloadPrefix(result.bytes).bytes().size() + result.bytes;
  }
}

// No event is announced for the alarm, since only the polling thread may: the session does not end
// before the request, nor this before the alarm has rung.
void ResultDeparture::Begin() {
  begin_alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_REALTIME), &begin_event_);
}

void ResultDeparture::HandleBegin(bool /*ok*/) {
  sender_.begin();
  ExpectEvent();
  deadline_alarm_.Set(queue_, absl::ToChronoTime(call_->deadline()), &deadline_event_);
  Proceed();
}

// A client that reads too slowly does not keep the memory for longer.
void ResultDeparture::HandleDeadline(bool ok) {
  if (ok) {
    Fail(MakeError(Reason::kDeadlineExpired,
                   "the deadline passed before the client had read enough of the results"));
  }
  EventEnded();
}

void ResultDeparture::Proceed() {
  ExpectEvent();
  ProceedOrEnd();
  EventEnded();
}

void ResultDeparture::Fail(const absl::Status& status) {
  if (is_over_) return;
  ExpectEvent();
  if (step_.is_running()) call_->Cancel();  // it may wait in a queue
  End(status);
  EventEnded();
}

void ResultDeparture::ProceedOrEnd() {
  if (is_over_ || step_.is_running()) return;
  if (sender_.waiting() >= kWindowBytes) return;
  MoveWindow();
  const absl::Status status = CopyWindow();
  if (!status.ok()) End(status);
}

void ResultDeparture::MoveWindow() {
  const std::vector<HeldResults::Result>& results = held().results;
  window_.clear();
  uint64_t room = kWindowBytes;
  // Empty ones at its end are the window's, so that none comes after the last bytes.
  while (next_result_ < results.size() && (room > 0 || results[next_result_].bytes == 0)) {
    const uint64_t left = results[next_result_].bytes - next_offset_;
    const uint64_t bytes = std::min(room, left);
    window_.push_back({next_result_, next_offset_, bytes});
    room -= bytes;
    next_offset_ = bytes < left ? next_offset_ + bytes : 0;
    if (bytes == left) ++next_result_;
  }
}

absl::Status ResultDeparture::CopyWindow() {
  OPSERVE_RETURN_IF_ERROR(call_->Check());
  std::vector<HeldResults::Result> parts;
  uint64_t bytes = 0;
  for (const Piece& piece : window_) {
    if (piece.bytes == 0) continue;
    parts.push_back({held().results[piece.result].offset + piece.offset, piece.bytes});
    bytes += piece.bytes;
  }
  std::unique_ptr<LaneTask> task = std::make_unique<TransferTask>(
      call_, held().device,
      // Before the tenant's requests that wait: this one has had its turn, and a window is small.
      TaskDemand{.tenant = tenant_,
                 .priority = Priority::kHigh,
                 .pinned_bytes = PinnedPool::BlockBytes(bytes),
                 .connection = connection_},
      TransferTask::Kind{.uses_residents = true},
      [this, parts = std::move(parts)](LaneContext& lane) -> absl::Status {
        OPSERVE_ASSIGN_OR_RETURN(auto copied, CopyHeld(held(), parts, lane));
        copied_ = ToSlice(std::move(copied));
        return absl::OkStatus();
      },
      [this](const absl::Status& status) { step_.End(status); });
  step_.Begin();
  const absl::Status status = context_.scheduler->Submit(&task);
  if (status.ok()) return status;
  if (absl::IsResourceExhausted(status)) {
    is_delayed_ = true;
    step_.End(absl::OkStatus(), absl::Now() + kRetryDelay);
    return absl::OkStatus();
  }
  step_.TakeBack();
  return status;
}

void ResultDeparture::HandleStep(const absl::Status& status) {
  if (is_over_) return LetGo();
  const absl::Status now = std::exchange(is_delayed_, false) ? CopyWindow() : status;
  if (step_.is_running()) return;
  if (!now.ok()) return End(now);
  context_.metrics->RecordCopies(CopyPath::kGrpc, 0, copied_.size());
  codec::Slices bytes = TakeCopied();
  if (next_result_ == held().results.size()) return End(std::move(bytes));
  sender_.send(std::move(bytes));
  ProceedOrEnd();
}

codec::Slices ResultDeparture::TakeCopied() {
  codec::Slices slices;
  if (!header_.empty()) slices.emplace_back(std::exchange(header_, ""));
  const grpc::Slice copied = std::exchange(copied_, grpc::Slice());
  size_t begin = 0;
  for (const Piece& piece : window_) {
    if (piece.offset == 0) {
      const codec::PayloadPrefix prefix(held().results[piece.result].bytes);
      slices.emplace_back(prefix.bytes().data(), prefix.bytes().size());
    }
    if (piece.bytes == 0) continue;
    slices.push_back(copied.sub(begin, begin + piece.bytes));
    begin += piece.bytes;
  }
  return slices;
}

void ResultDeparture::End(absl::StatusOr<codec::Slices> last) {
  is_over_ = true;
  deadline_alarm_.Cancel();
  // Before the answer, like all that a request has: another may follow it at once.
  if (!step_.is_running()) LetGo();
  end_.status = last.status();
  end_.clock.Book(Stage::kWrite);
  sender_.over(std::move(last));
}

void ResultDeparture::LetGo() {
  copied_ = grpc::Slice();
  end_.answer.reset();
}

void ResultDeparture::ExpectEvent() {
  ++num_events_;
  sender_.expect_event();
}

void ResultDeparture::EventEnded() {
  --num_events_;
  sender_.event_ended();
}

}  // namespace opserve::server
