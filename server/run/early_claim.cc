#include "server/run/early_claim.h"

#include <utility>

namespace opserve::server {

std::shared_ptr<EarlyClaim> EarlyClaim::Take(TensorClaims& claims, TensorClaims::Ticket ticket,
                                             absl::Span<const TensorClaims::Wish> wishes,
                                             absl::Time deadline) {
  auto claim = std::make_shared<EarlyClaim>();
  const auto on_end = [claim](TensorClaims::Outcome outcome) { claim->End(outcome); };
  if (claims.Claim(ticket, wishes, deadline, on_end)) claim->End(TensorClaims::Outcome::kGranted);
  return claim;
}

bool EarlyClaim::Await(TensorClaims::OnEnd on_end) {
  std::optional<TensorClaims::Outcome> outcome;
  {
    absl::MutexLock lock(&mutex_);
    outcome = outcome_;
    if (!outcome) on_end_ = std::move(on_end);
  }
  if (outcome == TensorClaims::Outcome::kGranted) return true;
  if (outcome) on_end(*outcome);
  return false;
}

void EarlyClaim::End(TensorClaims::Outcome outcome) {
  TensorClaims::OnEnd on_end;
  {
    absl::MutexLock lock(&mutex_);
    if (on_end_ == nullptr) {
      outcome_ = outcome;
      return;
    }
    on_end = std::exchange(on_end_, nullptr);
  }
  on_end(outcome);
}

}  // namespace opserve::server
