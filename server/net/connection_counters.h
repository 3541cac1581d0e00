// Counts the fates of connections of one kind of listener. One thread counts, others read.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "server/net/connection_slots.h"

namespace opserve::server {

struct ConnectionCounters {
  std::array<std::atomic<uint32_t>, ConnectionSlots::kNumRanks> now = {};  // by rank
  std::atomic<uint32_t> waiting = 0;  // for their turn, and in none of the ranks
  // That entered in their turn, since their peer flooded before.
  std::atomic<uint64_t> paced = 0;
  // Turned away as they were made, by the limit that was reached.
  std::array<std::atomic<uint64_t>, ConnectionSlots::kNumLimits> refused = {};
  std::atomic<uint64_t> refused_for_descriptors = 0;  // the system had no more
  std::atomic<uint64_t> refused_for_pace = 0;         // too many waited for their turn
  // Ended by the daemon: silent for too long; for the sake of a new one; took no bytes.
  std::atomic<uint64_t> silent = 0;
  std::atomic<uint64_t> evicted = 0;
  std::atomic<uint64_t> stalled = 0;
  // Ended for the sake of a new one while they waited for their turn: a flood's, not silent ones.
  std::atomic<uint64_t> evicted_waiting = 0;
  std::atomic<uint64_t> closed = 0;  // all other ends

  void SetNow(const std::array<uint32_t, ConnectionSlots::kNumRanks>& counts, uint32_t of_waiting) {
    waiting.store(of_waiting, std::memory_order_relaxed);
    for (size_t i = 0; i < counts.size(); ++i) now[i].store(counts[i], std::memory_order_relaxed);
  }
  static void Count(std::atomic<uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace opserve::server
