// Decides which connections there may be at once.
//
// Three limits hold: over all listeners, for one listener, and for one peer (a user of Unix
// sockets, an address of TCP). A connection begins as silent. When a limit is reached, the
// connection that has been silent the longest makes room for a new one; connections that only had
// anonymous answers are next, and identified ones are never ended for others. Age counts, and not
// the time since the last byte: a peer that sends one byte now and then is as good as silent.
//
// The class has no clock, lock or thread. All operations take logarithmic time, since a flood is
// when they matter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace opserve::server {

class ConnectionSlots {
 public:
  // Never given to another connection.
  using Id = uint64_t;

  // In the order of eviction.
  enum class Rank { kSilent, kAnswered, kIdentified };
  static constexpr size_t kNumRanks = 3;

  enum class Limit { kPeer, kListener, kTotal };

  struct Limits {
    uint32_t total = 0;
    uint32_t per_listener = 0;
    uint32_t per_peer = 0;
    // How long a connection may stay silent although nobody needs its slot.
    absl::Duration silence;
  };

  struct Decision {
    std::optional<Limit> refused;  // none: the connection is in
    Id id = 0;                     // of the connection that is in
    // Connections that lost their slots to this one, for the caller to close.
    absl::InlinedVector<Id, 3> evicted;
  };

  explicit ConnectionSlots(const Limits& limits) : limits_(limits) {}

  // Asks for a slot. `listener`: a small number; `peer`: a user or an address, such that equal
  // texts are the same peer. `now` must not go back.
  Decision Admit(size_t listener, absl::string_view peer, absl::Time now);

  // The connection has reached `rank`; a lower one than it has changes nothing. Unknown ids, of
  // connections that were evicted meanwhile, are ignored here and below.
  void Raise(Id id, Rank rank);

  // The connection has ended.
  void Remove(Id id);

  // Takes the slots of connections that were silent for too long, for the caller to close.
  std::vector<Id> TakeOverdue(absl::Time now);
  // When the next connection will have been; InfiniteFuture: there is none.
  absl::Time NextOverdue() const;

  size_t size() const { return entries_.size(); }
  // How many connections of a listener have each rank.
  std::array<uint32_t, kNumRanks> CountsOf(size_t listener) const;

 private:
  struct Entry {
    size_t listener = 0;
    std::string peer;
    Rank rank = Rank::kSilent;
    absl::Time since;
  };
  // Connections that share a limit.
  struct Group {
    uint32_t count = 0;
    std::array<uint32_t, kNumRanks> of_rank = {};
    absl::btree_set<std::pair<Rank, Id>> evictable;  // ids ascend with age
  };
  template <typename Function>
  void ForGroupsOf(const Entry& entry, Function function);

  const Limits limits_;
  Id last_id_ = 0;
  absl::flat_hash_map<Id, Entry> entries_;
  Group all_;
  absl::flat_hash_map<size_t, Group> listeners_;
  absl::flat_hash_map<std::string, Group> peers_;  // that have connections
};

}  // namespace opserve::server
