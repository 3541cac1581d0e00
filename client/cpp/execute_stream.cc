#include "client/cpp/execute_stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/async_calls.h"
#include "client/cpp/message.h"
#include "client/cpp/transport.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {
namespace {

// The stream whose callback this thread runs.
thread_local const ExecuteStream* called_back = nullptr;

}  // namespace

ExecuteStream::ExecuteStream(std::shared_ptr<Transport> transport,
                             std::shared_ptr<AsyncCalls> calls, const StreamOptions& options)
    : transport_(std::move(transport)),
      calls_(std::move(calls)),
      window_(options.window),
      deadline_(absl::Now() + options.timeout) {}

ExecuteStream::~ExecuteStream() {
  std::vector<std::weak_ptr<AsyncCall>> calls;
  {
    absl::MutexLock lock(&mutex_);
    is_finishing_ = true;
    is_cancelled_ = true;
    for (const auto& [number, call] : in_progress_) calls.push_back(call);
  }
  for (const std::weak_ptr<AsyncCall>& weak : calls) {
    if (const std::shared_ptr<AsyncCall> call = weak.lock()) call->Cancel();
  }
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &ExecuteStream::IsIdle));
}

void ExecuteStream::Execute(const Request& request, Callback callback) {
  absl::StatusOr<EncodedRequest> encoded = EncodeRequest(request, &transport_->request_numbers());
  // Refused requests come back by way of the callback, on the thread that made the request.
  const absl::StatusOr<uint64_t> number = encoded.ok() ? Enter() : encoded.status();
  if (!number.ok()) return std::move(callback)(number.status());
  const absl::Duration time_left = deadline_ - absl::Now();
  const bool ends_with_stream = time_left < request.timeout;
  auto done = [this, number = *number, ends_with_stream, callback = std::move(callback)](
                  const absl::Status& status, const grpc::ByteBuffer& response) mutable {
    called_back = this;
    std::move(callback)(status.ok() ? DecodeResponse(response) : status);
    called_back = nullptr;
    const bool is_streams_end = ends_with_stream && absl::IsDeadlineExceeded(status);
    Leave(number, is_streams_end ? status : absl::OkStatus());
  };
  const absl::Duration timeout = std::min(request.timeout, time_left);
  SetCall(*number, calls_->Start(&*encoded, timeout, std::move(done)));
}

std::future<absl::StatusOr<Response>> ExecuteStream::Execute(const Request& request) {
  std::promise<absl::StatusOr<Response>> promise;
  std::future<absl::StatusOr<Response>> future = promise.get_future();
  // The promise goes into the callback, which the stream calls once whatever happens.
  Execute(request, [promise = std::move(promise)](absl::StatusOr<Response> response) mutable {
    promise.set_value(std::move(response));
  });
  return future;
}

absl::StatusOr<uint64_t> ExecuteStream::Enter() {
  // A callback runs on the thread that makes room, so it cannot wait for room.
  const bool is_callback = called_back == this;
  absl::MutexLock lock(&mutex_);
  if (!is_callback && in_progress_.size() >= window_) {
    mutex_.Await(absl::Condition(this, &ExecuteStream::HasRoom));
  }
  if (is_finishing_) return absl::FailedPreconditionError("the stream takes no more requests");
  // A callback may go one beyond the window: its own request still counts.
  if (in_progress_.size() > window_) {
    return absl::ResourceExhaustedError(absl::StrCat("the stream's window of ", window_,
                                                     " requests is full, and its callbacks cannot "
                                                     "wait"));
  }
  in_progress_.try_emplace(++last_number_);
  return last_number_;
}

void ExecuteStream::SetCall(uint64_t number, const std::shared_ptr<AsyncCall>& call) {
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = in_progress_.find(number);
    if (found == in_progress_.end()) return;  // it has ended meanwhile
    found->second = call;
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) call->Cancel();
}

void ExecuteStream::Leave(uint64_t number, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  status_.Update(status);
  in_progress_.erase(number);
}

absl::Status ExecuteStream::Finish() {
  absl::MutexLock lock(&mutex_);
  is_finishing_ = true;
  mutex_.Await(absl::Condition(this, &ExecuteStream::IsIdle));
  return status_;
}

}  // namespace opserve
