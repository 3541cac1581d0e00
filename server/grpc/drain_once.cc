#include "server/grpc/drain_once.h"

#include <utility>

namespace opserve::server {

DrainOnce::DrainOnce(std::function<int64_t()> drain) : drain_(std::move(drain)) {}

DrainOnce::~DrainOnce() { Join(); }

std::optional<int64_t> DrainOnce::Await(absl::Time deadline) {
  const auto has_ended = [this] {
    mutex_.AssertReaderHeld();
    return result_.has_value();
  };
  absl::MutexLock lock(&mutex_);
  if (!result_ && !thread_.joinable()) {
    thread_ = std::thread([this] {
      const int64_t result = drain_();
      absl::MutexLock end(&mutex_);
      result_ = result;
    });
  }
  mutex_.AwaitWithDeadline(absl::Condition(&has_ended), deadline);
  return result_;
}

void DrainOnce::Join() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

}  // namespace opserve::server
