// Ends calls when their clients do not take the messages sent to them.
//
// For gRPC a client that reads its connection but not a call only holds that call's window closed,
// which may last for ever and keeps the message, in page-locked memory, and all that comes behind
// it. Where no deadline ends the call in time, the watch cancels it. (A connection of which nothing
// at all is read is ended by the ConnectionAcceptor; that gRPC cannot do either.)
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"

namespace opserve::server {

// Thread-safe. Outlives the writes it watches.
class WriteWatch {
 public:
  // The writes of one call: gRPC has at most one of them at a time.
  class Write {
   public:
    // `rpc`: of the call, which it outlives.
    Write(WriteWatch& watch, grpc::ServerContextBase& rpc) : watch_(watch), rpc_(rpc) {}
    // Not while something is being written.
    ~Write() = default;
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

    // Before an operation that writes is started, and when it has ended.
    void Begin() { watch_.Add(this); }
    void End() { watch_.Remove(this); }

   private:
    friend class WriteWatch;
    WriteWatch& watch_;
    grpc::ServerContextBase& rpc_;
    // Guarded by watch_.mutex_.
    absl::Time began_;
    bool is_watched_ = false;
    Write* older_ = nullptr;
    Write* newer_ = nullptr;
  };

  // Cancels calls if a write takes longer than `timeout`, an eighth of it more at most.
  explicit WriteWatch(absl::Duration timeout);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // So far.
  uint64_t cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  void Add(Write* write) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(Write* write) ABSL_LOCKS_EXCLUDED(mutex_);
  void Unlink(Write* write) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CancelOlderThan(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration timeout_;
  std::atomic<uint64_t> cancelled_ = 0;
  absl::Mutex mutex_;
  // In the order in which they began.
  Write* oldest_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Write* newest_ ABSL_GUARDED_BY(mutex_) = nullptr;
  absl::Notification stop_;
  std::thread thread_;  // last: uses the others
};

}  // namespace opserve::server
