// Makes abseil's mutexes and notifications visible to ThreadSanitizer.
//
// The packaged abseil was not built with it, so the sanitizer would not see that a lock orders
// anything and would report every access that a lock protects. Programs of a ThreadSanitizer build
// define the lock functions anew: these call the library's and tell the sanitizer. As the
// definitions of a program come before those of its libraries, gRPC's own locking goes through them
// too, which orders what gRPC hands from thread to thread.

#include <dlfcn.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// Calls the library's function of that mangled name. Conditions that other threads wait for are
// evaluated inside, with the lock held but where the sanitizer cannot know it: their reads are not
// looked at.
template <typename Result, typename... Arguments>
Result CallReal(const char* name, Arguments... arguments) {
  auto* const real = reinterpret_cast<Result (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  struct IgnoreReads {
    IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
    ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
  } ignore;
  return real(arguments...);
}

// Something that gives the lock up for a while.
template <typename Result, typename... Arguments>
Result WaitInReal(const char* name, void* mutex, Arguments... arguments) {
  __tsan_release(mutex);
  if constexpr (std::is_void_v<Result>) {
    CallReal<void>(name, arguments...);
    __tsan_acquire(mutex);
  } else {
    const Result result = CallReal<Result>(name, arguments...);
    __tsan_acquire(mutex);
    return result;
  }
}

}  // namespace

#define ABSL_NAME(mangled_rest) "_ZN4absl7debian3" mangled_rest

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  CallReal<void>(ABSL_NAME("5Mutex4LockEv"), this);
  __tsan_acquire(this);
}

void Mutex::ReaderLock() {
  CallReal<void>(ABSL_NAME("5Mutex10ReaderLockEv"), this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  const bool is_locked = CallReal<bool>(ABSL_NAME("5Mutex7TryLockEv"), this);
  if (is_locked) __tsan_acquire(this);
  return is_locked;
}

void Mutex::Unlock() {
  __tsan_release(this);
  CallReal<void>(ABSL_NAME("5Mutex6UnlockEv"), this);
}

void Mutex::ReaderUnlock() {
  __tsan_release(this);
  CallReal<void>(ABSL_NAME("5Mutex12ReaderUnlockEv"), this);
}

void Mutex::Await(const Condition& condition) {
  WaitInReal<void>(ABSL_NAME("5Mutex5AwaitERKNS0_9ConditionE"), this, this, &condition);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return WaitInReal<bool>(ABSL_NAME("5Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE"),
                          this, this, &condition, timeout);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  return WaitInReal<bool>(ABSL_NAME("5Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE"), this,
                          this, &condition, deadline);
}

void CondVar::Wait(Mutex* mutex) {
  WaitInReal<void>(ABSL_NAME("7CondVar4WaitEPNS0_5MutexE"), mutex, this, mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  return WaitInReal<bool>(ABSL_NAME("7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE"), mutex,
                          this, mutex, timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  return WaitInReal<bool>(ABSL_NAME("7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE"), mutex,
                          this, mutex, deadline);
}

Notification::~Notification() { MutexLock lock(&mutex_); }

void Notification::Notify() {
  MutexLock lock(&mutex_);
  notified_yet_.store(true, std::memory_order_release);
}

void Notification::WaitForNotification() const {
  WaitForNotificationWithDeadline(InfiniteFuture());
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(Condition(&HasBeenNotifiedInternal, &notified_yet_), timeout);
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  MutexLock lock(&mutex_);
  return mutex_.AwaitWithDeadline(Condition(&HasBeenNotifiedInternal, &notified_yet_), deadline);
}

ABSL_NAMESPACE_END
}  // namespace absl
