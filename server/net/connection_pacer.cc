#include "server/net/connection_pacer.h"

#include <algorithm>
#include <tuple>

namespace opserve::server {

ConnectionPacer::Peer* ConnectionPacer::Find(const std::string& name) {
  const auto found = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const Peer& peer) { return peer.name == name; });
  return found == peers_.end() ? nullptr : &*found;
}

ConnectionPacer::Peer* ConnectionPacer::FindOrMake(const std::string& name) {
  if (name.empty()) return nullptr;
  if (Peer* const known = Find(name)) return known;
  if (peers_.size() >= kMaxPeers) {
    const auto oldest =
        std::min_element(peers_.begin(), peers_.end(), [](const Peer& a, const Peer& b) {
          // Peers with waiting connections come last in the choice.
          if (a.waiting.empty() != b.waiting.empty()) return a.waiting.empty();
          return std::tie(a.flooded_at, a.charged_at) < std::tie(b.flooded_at, b.charged_at);
        });
    // Its connections would have to enter all at once.
    if (!oldest->waiting.empty()) return nullptr;
    peers_.erase(oldest);
  }
  return &peers_.emplace_back(Peer{.name = name});
}

void ConnectionPacer::Remember(const std::string& peer, absl::Time now) {
  if (Peer* const known = FindOrMake(peer)) known->flooded_at = std::max(known->flooded_at, now);
}

void ConnectionPacer::Charge(const std::string& peer, double price, absl::Time now) {
  Peer* const known = FindOrMake(peer);
  if (known == nullptr) return;
  // An account that is overdrawn is even again within a second, so that pacing ends soon after
  // the flood does.
  const double earned = absl::ToDoubleSeconds(now - known->charged_at) * kUnservedPerSecond;
  known->account = std::min(known->account + std::max(earned, 0.0), kUnservedBurst) - price;
  known->account = std::max(known->account, -kUnservedPerSecond);
  known->charged_at = now;
  if (known->account < 0) known->flooded_at = std::max(known->flooded_at, now);
}

ConnectionPacer::Turn ConnectionPacer::Ask(const std::string& peer, absl::Time now) {
  Peer* const known = Find(peer);
  if (known == nullptr) return Turn::kFree;
  if (known->waiting.empty()) {
    if (now >= known->flooded_at + kMemory) return Turn::kFree;
    // The last connection entered less than a period ago.
    if (now < known->next_turn) return Turn::kWait;
    known->next_turn = now + kPeriod;
    return Turn::kPaced;
  }
  // Also if its turn has come: those that wait were there before.
  return known->waiting.size() < kMaxWaiting ? Turn::kWait : Turn::kFull;
}

void ConnectionPacer::Enqueue(const std::string& peer, Id id) {
  if (Peer* const known = Find(peer)) known->waiting.push_back(id);
}

ConnectionPacer::Id ConnectionPacer::OldestOf(const std::string& peer) {
  return Find(peer)->waiting.front();
}

void ConnectionPacer::Remove(const std::string& peer, Id id) {
  if (Peer* const known = Find(peer)) std::erase(known->waiting, id);
}

std::optional<ConnectionPacer::Id> ConnectionPacer::TakeDue(absl::Time now,
                                                            absl::FunctionRef<bool(Id)> is_quiet) {
  for (Peer& peer : peers_) {
    if (peer.waiting.empty() || now < peer.next_turn) continue;
    // A quiet one is a client that waits for its turn; a flood has sent much already.
    auto next = std::find_if(peer.waiting.begin(), peer.waiting.end(), is_quiet);
    if (next == peer.waiting.end()) next = peer.waiting.begin();
    const Id id = *next;
    peer.waiting.erase(next);
    peer.next_turn = now + kPeriod;
    return id;
  }
  return std::nullopt;
}

absl::Time ConnectionPacer::NextDue() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Peer& peer : peers_) {
    if (!peer.waiting.empty()) next = std::min(next, peer.next_turn);
  }
  return next;
}

}  // namespace opserve::server
