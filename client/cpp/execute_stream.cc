#include "client/cpp/execute_stream.h"

#include <utility>

#include "client/cpp/stream_call.h"

namespace opserve {

ExecuteStream::ExecuteStream(std::unique_ptr<StreamCall> call) : call_(std::move(call)) {}

ExecuteStream::~ExecuteStream() = default;

void ExecuteStream::Execute(const Request& request, Callback callback) {
  call_->Execute(request, std::move(callback));
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

absl::Status ExecuteStream::Finish() { return call_->Finish(); }

}  // namespace opserve
