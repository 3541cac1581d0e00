// Paces the new connections of peers that flooded before.
//
// Every connection begins with accounts for its first streams (net/http2_inspector.h). A peer
// that connects again after each end would always have new accounts, and so would a peer that hangs
// up before they are used up; therefore the costs of its connections are charged to an account of
// the peer as well. The pacer remembers peers with ended connections or an overdrawn account for
// some seconds. Meanwhile their connections enter one at a time, at a steady rate, and the others
// wait in the order in which they were made; a client that shares its address or user id with the
// flood waits, too, and is served in its turn. The period does not grow with the flood: a longer
// one would cost those clients their deadlines, and the flood nothing.
//
// The class has no clock, lock or thread, and its memory is bounded.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/net/connection_slots.h"

namespace opserve::server {

class ConnectionPacer {
 public:
  using Id = ConnectionSlots::Id;

  // A flood's connections come back at once, so a peer that has stopped is soon free again.
  static constexpr absl::Duration kMemory = absl::Seconds(10);
  // A new connection with its refused streams costs gRPC about a millisecond: a few percent of one
  // core at this rate.
  static constexpr absl::Duration kPeriod = absl::Milliseconds(40);
  // Connections of one peer that wait: the last of them waits four seconds, less than clients'
  // usual deadlines.
  static constexpr size_t kMaxWaiting = 100;
  static constexpr size_t kMaxPeers = 64;
  // Of each peer's account, in refused streams, of which a connection counts as some: enough for
  // the probes of load balancers, and for a large job with a wrong token that begins.
  static constexpr double kUnservedBurst = 2000;
  static constexpr double kUnservedPerSecond = 200;

  enum class Turn {
    kFree,   // the peer is not paced
    kPaced,  // it is, and this connection may enter now
    kWait,   // Enqueue it
    kFull,   // as many wait as may
  };

  // A connection of `peer` (ConnectionSlots::Peer::name) flooded at `now`. Where there is no room,
  // the peer that flooded the longest ago makes it; peers with waiting connections stay. The empty
  // name stands for no peer.
  void Remember(const std::string& peer, absl::Time now);

  // Connections of `peer` were closed before a call of theirs was identified, at a price in refused
  // streams. If its account is overdrawn, the peer flooded at `now`.
  void Charge(const std::string& peer, double price, absl::Time now);

  // Of a new connection. kPaced uses the turn up.
  Turn Ask(const std::string& peer, absl::Time now);

  // After kWait.
  void Enqueue(const std::string& peer, Id id);
  // The connection of `peer` that has waited the longest; only after kFull.
  Id OldestOf(const std::string& peer);
  // The connection waits no longer. One that does not wait is ignored.
  void Remove(const std::string& peer, Id id);

  // Removes and returns the next connection that may enter; nullopt: there is none. Connections for
  // which `is_quiet` holds come first.
  std::optional<Id> TakeDue(absl::Time now, absl::FunctionRef<bool(Id)> is_quiet);
  // When there will be one; InfiniteFuture: nothing waits.
  absl::Time NextDue() const;

 private:
  struct Peer {
    std::string name;
    absl::Time flooded_at = absl::InfinitePast();
    absl::Time next_turn = absl::InfinitePast();
    std::deque<Id> waiting = {};
    double account = kUnservedBurst;
    absl::Time charged_at = absl::InfinitePast();
  };

  Peer* Find(const std::string& name);
  // Null: it has no name, or there is no room.
  Peer* FindOrMake(const std::string& name);

  std::vector<Peer> peers_;  // few, so they are looked through
};

}  // namespace opserve::server
