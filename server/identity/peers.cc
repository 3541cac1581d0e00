#include "server/identity/peers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {

Peer::Peer(PeerConfig config)
    : config_(std::move(config)),
      name_(config_.uid ? absl::StrCat("uid ", *config_.uid) : config_.certificate_name),
      bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

absl::Status Peer::CheckMayDeposit(absl::string_view tenant) const {
  const std::vector<std::string>& allowed = config_.tenants;
  if (std::find(allowed.begin(), allowed.end(), tenant) != allowed.end()) return absl::OkStatus();
  return MakeError(Reason::kForbidden,
                   absl::StrCat("peer ", name_, " may not deposit tensors of tenant \"", tenant,
                                "\" (peer.tenant)"));
}

absl::StatusOr<std::shared_ptr<void>> Peer::Take(uint64_t bytes) {
  uint64_t before = bytes_->load(std::memory_order_relaxed);
  // Two deposits at once must not exceed the bound together.
  do {
    if (bytes > config_.max_bytes - before) {
      return WithLimit(config_.max_bytes,
                       MakeError(Reason::kTooLarge,
                                 absl::StrCat(bytes, " bytes more than the ", before,
                                              " bytes that peer ", name_, " has here exceed its ",
                                              config_.max_bytes, " bytes (peer.max_bytes)")));
    }
  } while (!bytes_->compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  // The pointer itself means nothing: its end gives the bytes back.
  return std::shared_ptr<void>(this, [counter = bytes_, bytes](void*) {
    counter->fetch_sub(bytes, std::memory_order_relaxed);
  });
}

Peers::Peers(absl::Span<const PeerConfig> config) {
  for (const PeerConfig& one : config) {
    Peer* const peer = peers_.emplace_back(std::make_unique<Peer>(one)).get();
    if (one.uid) {
      by_uid_.emplace(*one.uid, peer);
    } else {
      by_certificate_name_.emplace(one.certificate_name, peer);
    }
  }
}

Peer* Peers::Find(const Credentials& credentials) const {
  // A token is a tenant's, never a peer's.
  if (credentials.token) return nullptr;
  for (const std::string& name : credentials.certificate_names) {
    const auto found = by_certificate_name_.find(name);
    if (found != by_certificate_name_.end()) return found->second;
  }
  if (!credentials.uid) return nullptr;
  const auto found = by_uid_.find(*credentials.uid);
  return found == by_uid_.end() ? nullptr : found->second;
}

}  // namespace opserve::server
