#include "server/net/connection_facts.h"

namespace opserve::server {

uint32_t ConnectionFacts::Begin() {
  // The generation is part of the word, so late facts of the last connection find another one.
  uint64_t before = word_.load(std::memory_order_relaxed);
  uint64_t after = 0;
  do {
    after = (((before >> 32) + 1) << 32) | kOpen;
  } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
  return static_cast<uint32_t>(after >> 32);
}

void ConnectionFacts::End() { word_.fetch_and(~kOpen, std::memory_order_acq_rel); }

void ConnectionFacts::AddIdentifiedCall(uint32_t generation) {
  uint64_t before = word();
  uint64_t after = 0;
  do {
    if (before >> 32 != generation || (before & kOpen) == 0) return;
    // The count overflows within its half.
    const uint32_t low = (static_cast<uint32_t>(before) | kIdentified) + kOneCall;
    after = (before >> 32 << 32) | low;
  } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
}

void ConnectionFacts::SetHealthChecked(uint32_t generation) {
  uint64_t before = word();
  do {
    if (before >> 32 != generation || (before & (kOpen | kHealthChecked)) != kOpen) return;
  } while (
      !word_.compare_exchange_weak(before, before | kHealthChecked, std::memory_order_acq_rel));
}

}  // namespace opserve::server
