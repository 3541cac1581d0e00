#include "client/cpp/borrow.h"

#include <utility>

#include "client/cpp/deadline.h"

namespace opserve {
namespace {

// Up to here a copy costs less than a reference that is counted and released.
constexpr size_t kCopiedBytes = 4096;

grpc::Slice ReferTo(absl::Span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  // gRPC only reads the bytes of messages it sends; its slices are not const because others are
  // written.
  auto* data = const_cast<std::byte*>(bytes.data());
  auto* hold = new std::shared_ptr<const void>(std::move(owner));
  return grpc::Slice(
      data, bytes.size(),
      [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); }, hold);
}

}  // namespace

std::shared_ptr<const void> Borrow::Hold() {
  if (std::shared_ptr<const void> hold = hold_.lock()) return hold;
  // None held any more, or none yet: a new token, as the flag of the old one stays set.
  released_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<const void> hold(released_.get(),
                                   [released = released_](const void*) { *released = true; });
  hold_ = hold;
  return hold;
}

void WaitUntilReleased(const Borrow& borrow, grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  // Polling, because it is this thread that drives the write which holds the bytes.
  while (!borrow.IsReleased()) queue->AsyncNext(&tag, &ok, DeadlineAfter(kReleasePoll));
}

grpc::Slice SliceOf(absl::Span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                    Borrow* borrow) {
  if (bytes.size() <= kCopiedBytes) return grpc::Slice(bytes.data(), bytes.size());
  return ReferTo(bytes, owner != nullptr ? owner : borrow->Hold());
}

}  // namespace opserve
