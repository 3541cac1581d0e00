// The threads that callers lend for callbacks (aclrtSubscribeReport, aclrtProcessReport).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "acl/acl.h"
#include "ops/host_cann/runtime/mutex.h"

namespace opserve::host_cann {

class Device;
class Stream;

// One callback on its way to a thread. It runs or is dropped, once.
class Callback {
 public:
  Callback(aclrtCallback function, void* user_data, uint64_t subscription,
           std::shared_ptr<Stream> stream)
      : function_(function),
        user_data_(user_data),
        subscription_(subscription),
        stream_(std::move(stream)) {}

  // Takes it up to run it, after which it cannot be dropped any more. False: it was dropped.
  bool Begin() { return Leave(State::kPending, State::kRunning); }
  // Runs the function of one that has begun.
  void Run();
  // Prevents that, unless it has begun.
  void Drop();
  uint64_t subscription() const { return subscription_; }
  bool is_finished() const { return state_.load(std::memory_order_acquire) == State::kFinished; }

 private:
  enum class State { kPending, kRunning, kFinished };
  bool Leave(State from, State to) { return state_.compare_exchange_strong(from, to); }

  const aclrtCallback function_;
  void* const user_data_;
  const uint64_t subscription_;           // the callback is dropped at its end
  const std::shared_ptr<Stream> stream_;  // to wake when finished
  std::atomic<State> state_{State::kPending};
};

// A thread and the callbacks it has to run. All members are the registry's to guard.
struct ReportThread {
  uint64_t id = 0;
  const Device* device = nullptr;
  std::set<uint64_t> subscriptions;  // one per stream; empty: forgotten
  std::deque<std::shared_ptr<Callback>> due;
  CondVar changed;
};

// All subscribed threads of the process. Thread-safe.
class ReportThreads {
 public:
  static ReportThreads& Get();

  // One more stream of `device` for the thread, under the number `subscription`. 107000: it serves
  // another device. 207012: too many threads.
  aclError Join(uint64_t thread_id, const Device& device, uint64_t subscription,
                std::shared_ptr<ReportThread>* thread) ABSL_LOCKS_EXCLUDED(mutex_);
  // One stream less: its callbacks that have not begun are dropped. With the last one the thread is
  // forgotten.
  void Leave(ReportThread& thread, uint64_t subscription) ABSL_LOCKS_EXCLUDED(mutex_);

  // Hands a callback over; drops it if its subscription has ended.
  void Post(ReportThread& thread, std::shared_ptr<Callback> callback) ABSL_LOCKS_EXCLUDED(mutex_);

  // Runs the due callbacks on the calling thread; waits for the first. 107012 and 507012 as
  // aclrtProcessReport.
  aclError Process(uint64_t thread_id, Deadline deadline) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kMaxThreads = 1024;

  Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<ReportThread>> threads_ ABSL_GUARDED_BY(mutex_);
};

// A stream's subscription; ends with its destruction.
class ReportSubscription {
 public:
  // Errors as ReportThreads::Join.
  static aclError Start(uint64_t thread_id, const Device& device,
                        std::shared_ptr<ReportSubscription>* subscription);
  ~ReportSubscription() { ReportThreads::Get().Leave(*thread_, number_); }
  ReportSubscription(const ReportSubscription&) = delete;
  ReportSubscription& operator=(const ReportSubscription&) = delete;

  const std::shared_ptr<ReportThread>& thread() const { return thread_; }
  uint64_t thread_id() const { return thread_->id; }
  uint64_t number() const { return number_; }

 private:
  ReportSubscription(std::shared_ptr<ReportThread> thread, uint64_t number)
      : thread_(std::move(thread)), number_(number) {}

  const std::shared_ptr<ReportThread> thread_;
  const uint64_t number_;  // that no other has
};

}  // namespace opserve::host_cann
