#include "server/run/tensor_claims.h"

#include <algorithm>

namespace opserve::server {

TensorClaims::Ticket TensorClaims::NewTicket() {
  absl::MutexLock lock(&mutex_);
  return ++last_ticket_;
}

bool TensorClaims::Claim(Ticket ticket, absl::Span<const Wish> wishes, absl::Time deadline,
                         OnEnd on_end) {
  absl::MutexLock lock(&mutex_);
  Holder holder;
  holder.wishes.assign(wishes.begin(), wishes.end());
  holder.deadline = deadline;
  for (const Wish& wish : wishes) {
    std::deque<Use>& queue = queues_[wish.tensor];
    // A reader waits behind those that wait to change the tensor, or these would never have it.
    const bool is_free = wish.is_alone ? queue.empty()
                                       : std::none_of(queue.begin(), queue.end(),
                                                      [](const Use& use) { return use.is_alone; });
    if (!is_free) ++holder.blocked;
    queue.push_back({ticket, wish.is_alone});
  }
  return Enter(ticket, std::move(holder), std::move(on_end));
}

bool TensorClaims::Enter(Ticket ticket, Holder holder, OnEnd on_end) {
  const bool is_granted = holder.blocked == 0;
  if (!is_granted) {
    holder.on_end = std::move(on_end);
    ++waiting_;
  }
  holders_.emplace(ticket, std::move(holder));
  return is_granted;
}

bool TensorClaims::ClaimAhead(Ticket ticket, absl::Span<const ResidentTensor* const> tensors,
                              OnEnd on_end) {
  absl::MutexLock lock(&mutex_);
  Holder holder;
  holder.deadline = absl::InfiniteFuture();
  for (const ResidentTensor* tensor : tensors) {
    // Alone, as nobody may use the content while it is copied.
    holder.wishes.push_back({tensor, /*is_alone=*/true});
    if (!PutAhead(ticket, tensor)) ++holder.blocked;
  }
  return Enter(ticket, std::move(holder), std::move(on_end));
}

bool TensorClaims::PutAhead(Ticket ticket, const ResidentTensor* tensor) {
  std::deque<Use>& queue = queues_[tensor];
  // Readers that wait for other tensors may stand before readers that have this one. The order of
  // readers means nothing, so they change places.
  const auto is_granted = [this](const Use& use) {
    mutex_.AssertReaderHeld();
    return IsGranted(use.ticket);
  };
  const auto waiting = std::stable_partition(queue.begin(), queue.end(), is_granted);
  const bool is_first = waiting == queue.begin();
  // The turn of those that could have this tensor comes again.
  const bool is_held_alone = !is_first && queue.front().is_alone;
  for (auto use = waiting; use != queue.end() && !is_held_alone; ++use) {
    if (use->is_alone && use != queue.begin()) break;
    ++holders_.find(use->ticket)->second.blocked;
    if (use->is_alone) break;
  }
  queue.insert(waiting, {ticket, /*is_alone=*/true});
  return is_first;
}

void TensorClaims::Release(Ticket ticket) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    const auto holder = holders_.find(ticket);
    if (holder == holders_.end()) return;
    if (holder->second.on_end != nullptr) --waiting_;
    Remove(ticket, &ended);
  }
  Call(std::move(ended));
}

bool TensorClaims::Withdraw(Ticket ticket) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    const auto holder = holders_.find(ticket);
    if (holder == holders_.end() || holder->second.on_end == nullptr) return false;
    --waiting_;
    Remove(ticket, &ended);
  }
  Call(std::move(ended));
  return true;
}

void TensorClaims::Expire(absl::Time now) {
  Ended ended;
  {
    absl::MutexLock lock(&mutex_);
    // Collected first, since Remove changes holders_.
    std::vector<Ticket> expired;
    for (const auto& [ticket, holder] : holders_) {
      if (holder.on_end != nullptr && holder.deadline <= now) expired.push_back(ticket);
    }
    std::sort(expired.begin(), expired.end());  // in the order of arrival
    for (const Ticket ticket : expired) {
      const auto holder = holders_.find(ticket);
      // Its turn may have come when another one was taken out.
      if (holder->second.on_end == nullptr) continue;
      ended.emplace_back(std::move(holder->second.on_end), Outcome::kExpired);
      --waiting_;
      Remove(ticket, &ended);
    }
  }
  Call(std::move(ended));
}

void TensorClaims::Remove(Ticket ticket, Ended* ended) {
  const auto holder = holders_.extract(ticket);
  if (holder.empty()) return;
  for (const Wish& wish : holder.mapped().wishes) {
    const auto found = queues_.find(wish.tensor);
    std::deque<Use>& queue = found->second;
    const auto own = std::find_if(queue.begin(), queue.end(),
                                  [ticket](const Use& use) { return use.ticket == ticket; });
    // Of those behind it, up to the next one that wants the tensor alone, the turn may come.
    const bool is_after_alone =
        std::any_of(queue.begin(), own, [](const Use& use) { return use.is_alone; });
    auto next = queue.erase(own);
    if (queue.empty()) {
      queues_.erase(found);
      continue;
    }
    if (is_after_alone) continue;
    for (; next != queue.end(); ++next) {
      if (next->is_alone) {
        if (next == queue.begin()) Unblock(next->ticket, ended);
        break;
      }
      if (wish.is_alone) Unblock(next->ticket, ended);
    }
  }
}

void TensorClaims::Unblock(Ticket ticket, Ended* ended) {
  Holder& holder = holders_.find(ticket)->second;
  // One of the tensors it waits for; the turn at the others is still to come.
  if (--holder.blocked > 0) return;
  --waiting_;
  ended->emplace_back(std::move(holder.on_end), Outcome::kGranted);
  holder.on_end = nullptr;
}

void TensorClaims::Call(Ended ended) {
  // Without the lock: a call that is granted begins its request here.
  for (auto& [on_end, outcome] : ended) on_end(outcome);
}

}  // namespace opserve::server
