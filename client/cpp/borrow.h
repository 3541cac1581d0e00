// Internal: bytes of the caller's that messages refer to instead of copying them.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/slice.h"

namespace opserve {

// Tells when gRPC has let go of the borrowed storages of a call.
class Borrow {
 public:
  // A token that a slice holds as long as it refers to borrowed bytes.
  std::shared_ptr<const void> Hold();

  // Whether all holders are gone (or there never were any); if so, the storages may be changed.
  bool IsReleased() const { return released_ == nullptr || released_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> released_;
  std::weak_ptr<const void> hold_;
};

// How often a call that has ended looks whether its borrowed bytes are free: gRPC tells no one.
inline constexpr absl::Duration kReleasePoll = absl::Milliseconds(1);

// Waits until `borrow` is released. Requires: no event of `queue`, that of the call which borrowed,
// is pending.
void WaitUntilReleased(const Borrow& borrow, grpc::CompletionQueue* queue);

// A slice of these bytes: a copy if they are few, else a reference that keeps `owner` alive or, if
// there is none, is accounted for in `borrow`.
grpc::Slice SliceOf(absl::Span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                    Borrow* borrow);

}  // namespace opserve
