#include "ops/host_cann/runtime/context.h"

#include <algorithm>

#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/error.h"

namespace opserve::host_cann {

std::shared_ptr<Stream> Context::CreateStream(Stream::Config config) {
  const std::optional<int32_t> id = device_.TakeStream();
  if (!id.has_value()) return nullptr;
  auto stream = std::make_shared<Stream>(shared_from_this(), *id, config);
  MutexLock lock(mutex_);
  if (!is_alive()) {
    device_.ReturnStream();
    return nullptr;
  }
  streams_.push_back(stream);
  return stream;
}

void Context::RemoveStream(const std::shared_ptr<Stream>& stream) {
  stream->Close();
  MutexLock lock(mutex_);
  const auto found = std::find(streams_.begin(), streams_.end(), stream);
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
  for (const std::shared_ptr<Stream>& stream : all) RETURN_IF_FAILED(CheckNotCaptured(*stream));
  for (const std::shared_ptr<Stream>& stream : all) RETURN_IF_FAILED(stream->Wait(deadline));
  for (const std::shared_ptr<Stream>& stream : all) RETURN_IF_FAILED(stream->TakeError());
  return ACL_SUCCESS;
}

void Context::Close() {
  std::vector<std::shared_ptr<Stream>> closed;
  {
    MutexLock lock(mutex_);
    alive_.store(false, std::memory_order_release);
    closed.swap(streams_);
  }
  for (const std::shared_ptr<Stream>& stream : closed) {
    stream->Close();
    device_.ReturnStream();
  }
}

void Context::Stop(aclError code) {
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
