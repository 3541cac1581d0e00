// A TCP proxy that cuts the link after a given amount of traffic.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opserve {

// One connection at a time. Thread-safe.
class CuttingProxy {
 public:
  // Listens at a port of 127.0.0.1 and forwards to another one. Aborts the test program if it
  // cannot.
  explicit CuttingProxy(int target_port);
  ~CuttingProxy();
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  const std::string& address() const { return address_; }

  // Counts anew and cuts the link instead of forwarding piece `pieces`, from 0 on. A piece is what
  // one read takes: at most 64 KiB that one side has sent. `for_good`: no connection is made
  // afterwards. `on_cut` is called before the other side can see it.
  void CutAt(int pieces, bool for_good, std::function<void()> on_cut = nullptr)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the link was cut since then.
  bool was_cut() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run();
  void Forward(int client);
  // Counts a piece; whether it is to be forwarded.
  bool Passes() ABSL_LOCKS_EXCLUDED(mutex_);

  const int target_port_;
  int listener_ = -1;
  std::string address_;
  std::atomic<bool> is_stopping_ = false;
  mutable absl::Mutex mutex_;
  int pieces_left_ ABSL_GUARDED_BY(mutex_) = -1;  // negative: any number
  bool for_good_ ABSL_GUARDED_BY(mutex_) = false;
  bool was_cut_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_cut_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace opserve
