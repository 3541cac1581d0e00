#include "server/access/connection_slots.h"

#include <algorithm>

namespace opserve::server {

template <typename Function>
void ConnectionSlots::ForGroupsOf(const Entry& entry, Function function) {
  function(peers_[entry.peer]);
  function(listeners_[entry.listener]);
  function(all_);
}

ConnectionSlots::Decision ConnectionSlots::Admit(size_t listener, absl::string_view peer,
                                                 absl::Time now) {
  Decision decision;
  const auto known_peer = peers_.find(peer);
  const struct {
    const Group* group;
    uint32_t limit;
    Limit name;
  } checks[] = {
      // The narrowest first: a flood from one address should cost that address its connections.
      {known_peer == peers_.end() ? nullptr : &known_peer->second, limits_.per_peer, Limit::kPeer},
      {&listeners_[listener], limits_.per_listener, Limit::kListener},
      {&all_, limits_.total, Limit::kTotal},
  };
  for (const auto& check : checks) {
    if (check.group == nullptr || check.group->count < check.limit) continue;
    // A connection that makes room in one group often does in the next.
    const bool has_room = std::any_of(decision.evicted.begin(), decision.evicted.end(), [&](Id id) {
      return check.group->evictable.contains({entries_.find(id)->second.rank, id});
    });
    if (has_room) continue;
    if (check.group->evictable.empty()) {
      decision.evicted.clear();
      decision.refused = check.name;
      return decision;
    }
    decision.evicted.push_back(check.group->evictable.begin()->second);
  }
  for (const Id id : decision.evicted) Remove(id);
  decision.id = ++last_id_;
  const Entry& entry =
      entries_
          .emplace(decision.id,
                   Entry{.listener = listener, .peer = std::string(peer), .since = now})
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

std::vector<ConnectionSlots::Id> ConnectionSlots::TakeOverdue(absl::Time now) {
  std::vector<Id> overdue;
  while (NextOverdue() <= now) {
    overdue.push_back(all_.evictable.begin()->second);
    Remove(overdue.back());
  }
  return overdue;
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
