#include "ops/host_cann/runtime/context.h"

#include <algorithm>

#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/error.h"

namespace opserve::host_cann {

std::shared_ptr<Stream> Context::CreateStream(Stream::Config config) {
  // Before the lock: a quota needs none, and a device without streams left is refused at once.
  const std::optional<int32_t> id = device_.TakeStream();
  if (!id.has_value()) return nullptr;
  auto stream = std::make_shared<Stream>(shared_from_this(), *id, config);
  MutexLock lock(mutex_);
  // A reset may have closed the context in between. It has returned the streams that it found; this
  // one is not among them.
  if (!is_alive()) {
    device_.ReturnStream();
    return nullptr;
  }
  streams_.push_back(stream);
  return stream;
}

void Context::RemoveStream(const std::shared_ptr<Stream>& stream) {
  // First, outside the lock: closing takes the stream's lock and drops its tasks.
  stream->Close();
  MutexLock lock(mutex_);
  const auto found = std::find(streams_.begin(), streams_.end(), stream);
  // Close of the whole context has come first, and has returned the stream to the device.
  if (found == streams_.end()) return;
  streams_.erase(found);
  device_.ReturnStream();
}

std::shared_ptr<Stream> Context::default_stream() {
  MutexLock lock(mutex_);
  return streams_.empty() ? nullptr : streams_.front();
}

std::vector<std::shared_ptr<Stream>> Context::streams() {
  MutexLock lock(mutex_);
  return streams_;
}

void Context::AddCapture(const std::shared_ptr<Capture>& capture) {
  MutexLock lock(mutex_);
  // Captures leave the list here, when the next one begins: their ends need not know the context.
  std::erase_if(captures_, [](const std::weak_ptr<Capture>& other) { return other.expired(); });
  captures_.push_back(capture);
}

std::vector<std::shared_ptr<Capture>> Context::captures() {
  std::vector<std::shared_ptr<Capture>> found;
  MutexLock lock(mutex_);
  for (const std::weak_ptr<Capture>& weak : captures_) {
    if (std::shared_ptr<Capture> capture = weak.lock()) found.push_back(std::move(capture));
  }
  return found;
}

aclError Context::Synchronize(Deadline deadline) {
  const std::vector<std::shared_ptr<Stream>> all = streams();
  // All are checked before the first wait, so that a refused call has waited for nothing.
  for (const std::shared_ptr<Stream>& stream : all) RETURN_IF_FAILED(CheckNotCaptured(*stream));
  // One deadline for all of them together.
  for (const std::shared_ptr<Stream>& stream : all) RETURN_IF_FAILED(stream->Wait(deadline));
  // Up to the first that fails; the others keep their failures for their own synchronise.
  for (const std::shared_ptr<Stream>& stream : all) RETURN_IF_FAILED(stream->TakeError());
  return ACL_SUCCESS;
}

void Context::Close() {
  std::vector<std::shared_ptr<Stream>> closed;
  {
    MutexLock lock(mutex_);
    // Under the lock: CreateStream either sees this or has its stream in the list.
    alive_.store(false, std::memory_order_release);
    closed.swap(streams_);
  }
  for (const std::shared_ptr<Stream>& stream : closed) {
    stream->Close();
    device_.ReturnStream();
  }
}

void Context::Stop(aclError code) {
  // The first failure stays: later tasks fail because of it.
  aclError none = ACL_SUCCESS;
  stop_code_.compare_exchange_strong(none, code);
}

void Context::SetOption(aclSysParamOpt opt, int64_t value) {
  MutexLock lock(mutex_);
  options_[opt] = value;
}

std::optional<int64_t> Context::option(aclSysParamOpt opt) {
  MutexLock lock(mutex_);
  return options_[opt];
}

}  // namespace opserve::host_cann
