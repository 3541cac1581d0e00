// Decides which connections there may be at once.
//
// Limits hold over all listeners, for one listener, for one user of Unix sockets, and for one
// address of TCP. A connection begins as silent. When a limit is reached, the connection that has
// been silent the longest makes room for a new one; connections that only had anonymous answers are
// next, and identified ones are never ended for others. Age counts, and not the time since the last
// byte: a peer that sends one byte now and then is as good as silent.
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
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace opserve::server {

class ConnectionSlots {
 public:
  // Counts from 1; never given to another connection.
  using Id = uint64_t;

  // In the order of eviction.
  enum class Rank { kSilent, kAnswered, kIdentified };
  static constexpr size_t kNumRanks = 3;

  enum class Limit { kUser, kAddress, kListener, kTotal };
  static constexpr size_t kNumLimits = 4;

  struct Limits {
    uint32_t total = 1;
    uint32_t per_listener = 1;
    uint32_t per_user = 1;
    uint32_t per_address = 1;
    // How long a connection may stay silent although its slot is not needed.
    absl::Duration silence;
  };

  // Peers with equal names are the same.
  struct Peer {
    std::string name;
    bool is_user = false;  // else an address
  };

  // The rank of a connection now; none: it has ended, and Remove will follow. The slots ask for it
  // before they take a connection's slot, so ranks need not be reported as they change.
  using RankOf = absl::FunctionRef<std::optional<Rank>(Id)>;

  struct Decision {
    std::optional<Limit> refused;  // none: the connection is in
    Id id = 0;                     // of the connection that is in
    // Connections that lost their slots to this one, for the caller to close.
    absl::InlinedVector<Id, 3> evicted;
  };

  explicit ConnectionSlots(const Limits& limits) : limits_(limits) {}

  // Asks for a slot. `listener`: a small number. `now` must not go back.
  Decision Admit(size_t listener, const Peer& peer, absl::Time now, RankOf rank_of);

  // The connection has reached `rank`; a lower one than it has changes nothing. Unknown ids, of
  // connections that lost their slots, are ignored here and below.
  void Raise(Id id, Rank rank);

  // The connection has ended.
  void Remove(Id id);

  // Takes the slots of connections that were silent for too long, for the caller to close.
  std::vector<Id> TakeOverdue(absl::Time now, RankOf rank_of);
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
