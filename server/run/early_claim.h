// A request's place among those that use its resident tensors, taken before the request can run.
#pragma once

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/run/tensor_claims.h"

namespace opserve::server {

// So that requests of a client run in the order in which they were sent, though the payloads of one
// of them still arrive. Thread-safe.
class EarlyClaim {
 public:
  // Claims the tensors under `ticket`, as TensorClaims::Claim. Release or Withdraw ends the claim.
  static std::shared_ptr<EarlyClaim> Take(TensorClaims& claims, TensorClaims::Ticket ticket,
                                          absl::Span<const TensorClaims::Wish> wishes,
                                          absl::Time deadline);

  // As the end of TensorClaims::Claim, for a request that can run now. Called once.
  bool Await(TensorClaims::OnEnd on_end) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void End(TensorClaims::Outcome outcome) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  std::optional<TensorClaims::Outcome> outcome_ ABSL_GUARDED_BY(mutex_);  // before Await
  TensorClaims::OnEnd on_end_ ABSL_GUARDED_BY(mutex_);                    // from Await to the end
};

}  // namespace opserve::server
