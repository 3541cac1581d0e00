#include "ops/host_cann/runtime/error.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>

#include "ops/host_cann/runtime/calls.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Messages that have not been read, newest first. A program that never reads them keeps the newest.
class UnreadMessages {
 public:
  void Add(std::string message) {
    // The same message again moves to the front: it does not push others out.
    const auto same = std::find(messages_.begin(), messages_.end(), message);
    if (same != messages_.end()) messages_.erase(same);
    messages_.push_front(std::move(message));
    if (messages_.size() > kMaxMessages) messages_.pop_back();
  }

  // All of them, a line each; none are left.
  std::string Take() {
    if (messages_.empty()) return {};  // even an empty deque would be made on the heap
    std::string lines;
    for (const std::string& message : std::exchange(messages_, {})) {
      if (!lines.empty()) lines += '\n';
      lines += message;
    }
    return lines;
  }

 private:
  static constexpr size_t kMaxMessages = 64;
  std::deque<std::string> messages_;
};

// The messages of all threads, for err_msg_mode 1.
struct SharedMessages {
  std::atomic<bool> is_used = false;
  Mutex mutex;
  UnreadMessages unread ABSL_GUARDED_BY(mutex);
};

SharedMessages& Shared() {
  static SharedMessages* const shared = new SharedMessages;
  return *shared;
}

struct ThreadErrors {
  UnreadMessages unread;
  // Replaced by the next read of this thread.
  std::string returned;  // result of the last read; the caller may still look at it
  aclError last_code = ACL_SUCCESS;
};

ThreadErrors& Errors() {
  thread_local ThreadErrors errors;
  return errors;
}

aclError CheckLevel(aclrtLastErrLevel level) {
  if (level == ACL_RT_THREAD_LEVEL) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("level is ", static_cast<int>(level), ", must be ACL_RT_THREAD_LEVEL"));
}

}  // namespace

void SetErrorMessage(std::string_view code, std::string_view text) {
  std::string message = Concat(code, ": ", text);
  SharedMessages& shared = Shared();
  // A switch of the mode leaves messages where they are; each mode reads its own.
  if (!shared.is_used) return Errors().unread.Add(std::move(message));
  MutexLock lock(shared.mutex);
  shared.unread.Add(std::move(message));
}

void ShareMessages(bool share) { Shared().is_used = share; }

aclError Fail(aclError code, std::string_view label, std::string_view text) {
  SetErrorMessage(label, text);
  Errors().last_code = code;
  return code;
}

aclError RequireNotNull(const void* pointer, std::string_view name) {
  if (pointer != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kNullArgument, Concat(name, " must not be null"));
}

aclError RequireCallback(const void* function, std::string_view name) {
  if (function != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, Concat(name, " must not be null"));
}

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

const char* aclGetRecentErrMsg() {
  if (EnterErrorQuery(__func__) != ACL_SUCCESS) return nullptr;
  ThreadErrors& errors = Errors();
  // In shared mode the messages of other threads are read and cleared as well.
  SharedMessages& shared = Shared();
  std::string unread;
  if (shared.is_used) {
    MutexLock lock(shared.mutex);
    unread = shared.unread.Take();
  } else {
    unread = errors.unread.Take();
  }
  // Null without messages: a program can tell that nothing has failed.
  if (unread.empty()) return nullptr;
  errors.returned = std::move(unread);
  return errors.returned.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  RETURN_IF_FAILED(EnterErrorQuery(__func__));
  RETURN_IF_FAILED(CheckLevel(level));
  return Errors().last_code;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  RETURN_IF_FAILED(EnterErrorQuery(__func__));
  RETURN_IF_FAILED(CheckLevel(level));
  // Not by way of Fail: reading an error is none.
  const aclError code = Errors().last_code;
  Errors().last_code = ACL_SUCCESS;
  return code;
}
