// Facts about a connection, learned from its calls.
#pragma once

#include <atomic>
#include <cstdint>

namespace opserve::server {

// All facts about a connection fit one word, so that facts about a finished connection never reach
// its successor. Thread-safe, without locks.
class ConnectionFacts {
 public:
  // Begins the next connection; the facts of the last are gone. Returns its generation.
  uint32_t Begin();
  // Ends the connection, whichever it is.
  void End();

  bool is_open() const { return (word() & kOpen) != 0; }
  uint32_t generation() const { return static_cast<uint32_t>(word() >> 32); }
  bool is_identified() const { return (word() & (kOpen | kIdentified)) == (kOpen | kIdentified); }
  bool is_health_checked() const {
    return (word() & (kOpen | kHealthChecked)) == (kOpen | kHealthChecked);
  }
  // Calls that were identified; begins at 0 again after 2^29.
  uint32_t identified_calls() const { return static_cast<uint32_t>(word()) / kOneCall; }

  // Record a fact about the connection of that generation; nothing if it is over.
  void AddIdentifiedCall(uint32_t generation);
  void SetHealthChecked(uint32_t generation);

 private:
  static constexpr uint64_t kOpen = 1;
  static constexpr uint64_t kHealthChecked = 2;
  static constexpr uint64_t kIdentified = 4;
  static constexpr uint32_t kOneCall = 8;

  uint64_t word() const { return word_.load(std::memory_order_acquire); }

  std::atomic<uint64_t> word_ = 0;  // generation << 32 | calls * kOneCall | flags
};

}  // namespace opserve::server
