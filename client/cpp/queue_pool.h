// Internal: completion queues of threads that wait for their own calls.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/completion_queue.h"

namespace opserve {

// Lends a queue to one thread at a time; keeps as many as were ever lent at once, because making
// one costs as much as a small call. Thread-safe. Every queue must be back, without pending events,
// before the pool is destroyed.
class QueuePool {
 public:
  class Lease {
   public:
    explicit Lease(QueuePool* pool) : pool_(*pool), queue_(pool->Take()) {}
    ~Lease() { pool_.Return(std::move(queue_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    grpc::CompletionQueue& queue() { return *queue_; }

   private:
    QueuePool& pool_;
    std::unique_ptr<grpc::CompletionQueue> queue_;
  };

 private:
  std::unique_ptr<grpc::CompletionQueue> Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (idle_.empty()) return std::make_unique<grpc::CompletionQueue>();
    std::unique_ptr<grpc::CompletionQueue> queue = std::move(idle_.back());
    idle_.pop_back();
    return queue;
  }

  void Return(std::unique_ptr<grpc::CompletionQueue> queue) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    idle_.push_back(std::move(queue));
  }

  absl::Mutex mutex_;
  std::vector<std::unique_ptr<grpc::CompletionQueue>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve
