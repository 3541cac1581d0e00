#include "server/observability/log_queue.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/string_view.h"

namespace opserve::server {
namespace {

// Of a waiting line, beside its text.
constexpr size_t kLineOverheadBytes = 64;

size_t Cost(const std::string& line) { return line.capacity() + kLineOverheadBytes; }

// Waits for the reader. Gives text up that cannot be written at all, to a closed descriptor.
void WriteToStandardError(absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      // Another holder of the descriptor has made it non-blocking.
      pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      poll(&room, 1, /*timeout=*/-1);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace

void LogQueue::Push(std::string line) {
  line.push_back('\n');
  absl::MutexLock lock(&mutex_);
  bytes_ += Cost(line);
  lines_.push_back(std::move(line));
  // The oldest go: the newest lines tell most about the present fault.
  while (bytes_ > max_bytes_) {
    Pop();
    ++dropped_;
  }
}

void LogQueue::Flush(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &LogQueue::IsIdle), timeout);
}

void LogQueue::WriteLines() {
  for (;;) {
    std::string line;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &LogQueue::HasLines));
      line = Pop();
      is_writing_ = true;
    }
    // Without the lock, since a reader that has stopped may hold this up for ever.
    WriteToStandardError(line);
    absl::MutexLock lock(&mutex_);
    is_writing_ = false;
  }
}

std::string LogQueue::Pop() {
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  bytes_ -= Cost(line);
  return line;
}

}  // namespace opserve::server
