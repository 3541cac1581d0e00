// Chooses the device for a task that can run on any of them.
//
// Each device shares its lanes fairly between the tenants that have tasks in its queue. So a tenant
// gets its share of all devices only while it has tasks in every queue. Placing by the number of
// tasks breaks that: beside a tenant with many tiny tasks, a tenant with a few heavy ones has at
// times none in one of the queues, and loses its share of that device for as long; the other
// devices do not make up for it. So a tenant's own work, in lane time, is spread evenly. The work
// of other tenants counts only where it leaves a lane free, or to break a tie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>

#include "absl/time/time.h"

namespace opserve::server {

// A device as one tenant sees it.
struct DeviceLoad {
  bool offers = true;  // every operator of the task
  uint32_t lanes = 1;
  size_t queued = 0;     // tasks of all tenants
  size_t executing = 0;  // likewise
  // Lane time of the tenant's tasks, queued and executing, as estimated.
  absl::Duration own = absl::ZeroDuration();
};

// Whether a task of the tenant is better placed on the device with the load `a` than on that with
// `b`. Neither is better than its equal: the caller takes equals in turn. Where the best one does
// not offer the task's operators, none does.
inline bool IsBetterPlace(const DeviceLoad& a, const DeviceLoad& b) {
  const auto rank = [](const DeviceLoad& load) {
    // A task that waits beside a free lane waits for memory, which the new one may need as well.
    const bool is_free = load.queued == 0 && load.executing < load.lanes;
    // With a free lane the task starts at once, whatever its tenant has running there.
    return std::make_tuple(!load.offers, !is_free, is_free ? absl::ZeroDuration() : load.own,
                           load.queued + load.executing);
  };
  return rank(a) < rank(b);
}

// The best of `count` places for a task; nullopt: none is ready. `load_of(place)`: its DeviceLoad,
// or nullopt where it is not ready. `first`: looked at first, so equals are taken in turn if it
// changes from call to call.
template <typename LoadOf>
std::optional<size_t> BestPlace(size_t count, size_t first, LoadOf load_of) {
  std::optional<size_t> best;
  DeviceLoad best_load;
  for (size_t i = 0; i < count; ++i) {
    const size_t place = (first + i) % count;
    const std::optional<DeviceLoad> load = load_of(place);
    if (!load || (best && !IsBetterPlace(*load, best_load))) continue;
    best = place;
    best_load = *load;
  }
  return best;
}

// The place for `bytes` bytes of a tenant's new resident tensors: `others`, where its other tensors
// are, while that is ready and has room, so that one request can use them together; else the ready
// one with most room. nullopt: none is ready. `room_of(place)`: the tenant's room there, or nullopt
// where it is not ready.
template <typename RoomOf>
std::optional<size_t> PlaceForTensors(size_t count, std::optional<size_t> others, uint64_t bytes,
                                      RoomOf room_of) {
  if (others) {
    const std::optional<uint64_t> room = room_of(*others);
    if (room && bytes <= *room) return others;
  }
  std::optional<size_t> best;
  uint64_t most = 0;
  for (size_t place = 0; place < count; ++place) {
    const std::optional<uint64_t> room = room_of(place);
    if (!room || (best && *room <= most)) continue;
    best = place;
    most = *room;
  }
  return best;
}

}  // namespace opserve::server
