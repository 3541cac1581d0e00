#include "server/net/connection_slots.h"

#include <algorithm>

namespace opserve::server {

template <typename Function>
void ConnectionSlots::ForGroupsOf(const Entry& entry, Function function) {
  function(peers_[entry.peer]);
  function(listeners_[entry.listener]);
  function(all_);
}

ConnectionSlots::Decision ConnectionSlots::Admit(size_t listener, const Peer& peer, absl::Time now,
                                                 RankOf rank_of) {
  // Slots change hands only when every limit has room.
  Decision decision;
  // Looked up anew each time: groups of peers come and go with their connections.
  const auto group_of = [&](Limit limit) -> const Group& {
    static const Group* const kNone = new Group;
    if (limit == Limit::kTotal) return all_;
    if (limit == Limit::kListener) return listeners_[listener];
    const auto found = peers_.find(peer.name);
    return found == peers_.end() ? *kNone : found->second;
  };
  const struct {
    Limit name;
    uint32_t most;
  } checks[] = {
      // The narrowest first: a flood from one address should cost that address its connections.
      {peer.is_user ? Limit::kUser : Limit::kAddress,
       peer.is_user ? limits_.per_user : limits_.per_address},
      {Limit::kListener, limits_.per_listener},
      {Limit::kTotal, limits_.total},
  };
  for (const auto& check : checks) {
    const auto is_full = [&] {
      const Group& group = group_of(check.name);
      // A connection that makes room in one group often does in the next.
      const bool has_room =
          std::any_of(decision.evicted.begin(), decision.evicted.end(), [&](Id id) {
            return group.evictable.contains({entries_.find(id)->second.rank, id});
          });
      return group.count >= check.most && !has_room;
    };
    while (is_full()) {
      const Group& group = group_of(check.name);
      if (group.evictable.empty()) {
        // Nobody loses a slot for a connection that is refused.
        decision.evicted.clear();
        decision.refused = check.name;
        return decision;
      }
      const auto [rank, id] = *group.evictable.begin();
      const std::optional<Rank> rank_now = rank_of(id);
      if (!rank_now) {
        // It ended without a report.
        Remove(id);
      } else if (*rank_now > rank) {
        // Its rank was raised without a report: the next in order is looked at.
        Raise(id, *rank_now);
      } else {
        decision.evicted.push_back(id);
      }
    }
  }
  for (const Id id : decision.evicted) Remove(id);
  decision.id = ++last_id_;
  const Entry& entry =
      entries_.emplace(decision.id, Entry{.listener = listener, .peer = peer.name, .since = now})
          .first->second;
  ForGroupsOf(entry, [&](Group& group) {
    ++group.count;
    ++group.of_rank[static_cast<size_t>(Rank::kSilent)];
    group.evictable.insert({Rank::kSilent, decision.id});
  });
  return decision;
}

void ConnectionSlots::Raise(Id id, Rank rank) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.rank >= rank) return;
  ForGroupsOf(found->second, [&](Group& group) {
    --group.of_rank[static_cast<size_t>(found->second.rank)];
    ++group.of_rank[static_cast<size_t>(rank)];
    group.evictable.erase({found->second.rank, id});
    // Identified ones cannot be evicted.
    if (rank != Rank::kIdentified) group.evictable.insert({rank, id});
  });
  found->second.rank = rank;
}

void ConnectionSlots::Remove(Id id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  ForGroupsOf(found->second, [&](Group& group) {
    --group.count;
    --group.of_rank[static_cast<size_t>(found->second.rank)];
    group.evictable.erase({found->second.rank, id});
  });
  // Peers without connections are forgotten, or ever new addresses would fill the memory.
  const auto peer = peers_.find(found->second.peer);
  if (peer->second.count == 0) peers_.erase(peer);
  entries_.erase(found);
}

std::vector<ConnectionSlots::Id> ConnectionSlots::TakeOverdue(absl::Time now, RankOf rank_of) {
  std::vector<Id> overdue;
  for (;;) {
    const absl::Time next = NextOverdue();
    if (next > now || next == absl::InfiniteFuture()) return overdue;
    const Id id = all_.evictable.begin()->second;
    const std::optional<Rank> rank = rank_of(id);
    if (rank && *rank > Rank::kSilent) {
      Raise(id, *rank);
      continue;
    }
    if (rank) overdue.push_back(id);
    Remove(id);
  }
}

absl::Time ConnectionSlots::NextOverdue() const {
  // Silent ones come first in the order of eviction.
  if (all_.evictable.empty() || all_.evictable.begin()->first != Rank::kSilent) {
    return absl::InfiniteFuture();
  }
  return entries_.find(all_.evictable.begin()->second)->second.since + limits_.silence;
}

std::array<uint32_t, ConnectionSlots::kNumRanks> ConnectionSlots::CountsOf(size_t listener) const {
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return {};
  return found->second.of_rank;
}

}  // namespace opserve::server
