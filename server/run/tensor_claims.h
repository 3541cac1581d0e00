// The order in which requests use resident tensors: those that change a tensor have it alone, in
// the order of their arrival. So a client may send the next step of a training before the last one
// is answered.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/program/resident_tensor.h"

namespace opserve::server {

// Claims of all tensors of a request are granted together, so that no two requests wait for each
// other. Thread-safe.
class TensorClaims {
 public:
  using Ticket = uint64_t;

  // A tensor to use; each once in a request.
  struct Wish {
    const ResidentTensor* tensor = nullptr;
    bool is_alone = false;  // it is changed or given up
  };

  // How a wait ended.
  enum class Outcome { kGranted, kExpired };
  using OnEnd = absl::AnyInvocable<void(Outcome)>;

  TensorClaims() = default;
  TensorClaims(const TensorClaims&) = delete;
  TensorClaims& operator=(const TensorClaims&) = delete;

  // A ticket that was never used.
  Ticket NewTicket() ABSL_LOCKS_EXCLUDED(mutex_);

  // True: the tensors are claimed until Release, and `on_end` is gone. False: somebody uses one of
  // them, or asked before; `on_end` is called once, on the thread that ends the wait, unless
  // Withdraw comes first. It must not block. The tensors outlive the ticket.
  bool Claim(Ticket ticket, absl::Span<const Wish> wishes, absl::Time deadline, OnEnd on_end)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for one that changes no elements, only where they are: before all those that wait, so
  // that it waits for nothing but the requests that have the tensors now, and these wait for no
  // other. It gets each tensor alone, and waits without end.
  bool ClaimAhead(Ticket ticket, absl::Span<const ResidentTensor* const> tensors, OnEnd on_end)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gives the tensors up, or the place among those that wait, if the ticket has any; calls `on_end`
  // of those whose turn it is.
  void Release(Ticket ticket) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends a wait. False: it is over, or there was none, and nothing has changed.
  bool Withdraw(Ticket ticket) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends the waits whose deadline has passed. Others look at the clock when they are granted.
  void Expire(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests that wait.
  uint64_t waiting() const { return waiting_; }

 private:
  struct Use {
    Ticket ticket = 0;
    bool is_alone = false;
  };
  struct Holder {
    std::vector<Wish> wishes;
    uint32_t blocked = 0;  // tensors whose turn has not come
    absl::Time deadline;
    OnEnd on_end;  // null: granted
  };
  // Calls to make when the lock is free.
  using Ended = std::vector<std::pair<OnEnd, Outcome>>;

  bool IsGranted(Ticket ticket) const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return holders_.find(ticket)->second.on_end == nullptr;
  }
  // Notes a holder whose uses are in the queues, as the public functions say. Whether it is
  // granted.
  bool Enter(Ticket ticket, Holder holder, OnEnd on_end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a use in front of all those that are not granted. Whether it is the first.
  bool PutAhead(Ticket ticket, const ResidentTensor* tensor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the ticket's uses out of the queues of its tensors.
  void Remove(Ticket ticket, Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unblock(Ticket ticket, Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Call(Ended ended);

  absl::Mutex mutex_;
  Ticket last_ticket_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> waiting_ = 0;  // written with mutex_ held
  absl::flat_hash_map<Ticket, Holder> holders_ ABSL_GUARDED_BY(mutex_);
  // Of each tensor that is in use: its users and waiting requests, in the order of their arrival.
  absl::flat_hash_map<const ResidentTensor*, std::deque<Use>> queues_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
