// The daemons that may deposit resident tensors here, and how much each has deposited.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/config/peer_config.h"
#include "server/identity/tenants.h"

namespace opserve::server {

// A peer, for as long as the daemon runs. Thread-safe.
class Peer {
 public:
  explicit Peer(PeerConfig config);

  // Its certificate's name or "uid N", for people.
  const std::string& name() const { return name_; }
  // kPermissionDenied (reason "forbidden"): it may not deposit tensors of the tenant.
  absl::Status CheckMayDeposit(absl::string_view tenant) const;
  // The right to have `bytes` bytes here, which ends with the last copy of the result; it may
  // outlive the peer. kInvalidArgument (reason "too_large"): above its max_bytes.
  absl::StatusOr<std::shared_ptr<void>> Take(uint64_t bytes);
  uint64_t bytes() const { return bytes_->load(std::memory_order_relaxed); }

 private:
  const PeerConfig config_;
  const std::string name_;
  const std::shared_ptr<std::atomic<uint64_t>> bytes_;
};

// Thread-safe.
class Peers {
 public:
  explicit Peers(absl::Span<const PeerConfig> config);

  // The peer with one of these credentials; a caller that shows a token is none. Null: no peer.
  // Lives as long as the Peers.
  Peer* Find(const Credentials& credentials) const;
  bool empty() const { return peers_.empty(); }
  // Whether some peer is known by this user id.
  bool HasUid(uint32_t uid) const { return by_uid_.contains(uid); }

 private:
  std::vector<std::unique_ptr<Peer>> peers_;
  absl::flat_hash_map<std::string, Peer*> by_certificate_name_;
  absl::flat_hash_map<uint32_t, Peer*> by_uid_;
};

}  // namespace opserve::server
