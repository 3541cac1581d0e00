// All that a client may do with its credit, and whatever order the daemon copies in, for small
// numbers of bytes.

#include "server/session/credit_window.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

// The client, what is between it and the daemon, and the daemon.
struct State {
  CreditWindow window;
  uint64_t credit = 0;             // that the client knows of and has not used
  uint64_t credits_sent = 0;       // granted, and not with the client yet
  std::vector<uint64_t> chunks{};  // sent, and not with the daemon yet
  uint64_t sent = 0;
  uint64_t waiting = 0;  // received, and not copied yet
  uint64_t copied = 0;
  bool is_copying = false;  // what waits, some of which may have come meanwhile
  uint64_t copying = 0;

  auto Key() const {
    return std::tuple(credit, credits_sent, chunks, sent, waiting, copied, is_copying, copying,
                      window.on_their_way(), window.received());
  }
};

class Exploration {
 public:
  Exploration(uint64_t total, uint64_t window, uint64_t least, uint64_t most_chunk)
      : total_(total), window_(window), most_chunk_(most_chunk) {
    State start{CreditWindow(total, window, least)};
    start.credits_sent = start.window.Grant();
    Visit(start);
    while (!open_.empty()) {
      const State state = open_.front();
      open_.pop_front();
      Leave(state);
    }
  }

  size_t states() const { return seen_.size(); }
  size_t ends() const { return ends_; }

 private:
  void Visit(const State& state) {
    if (seen_.insert(state.Key()).second) open_.push_back(state);
  }

  // Checks the state and goes to all that can follow it.
  void Leave(const State& state) {
    Check(state);
    bool is_stuck = true;
    const auto go = [&](const State& next) {
      is_stuck = false;
      Visit(next);
    };
    if (state.credits_sent > 0) {
      State next = state;
      next.credit += std::exchange(next.credits_sent, 0);
      go(next);
    }
    for (uint64_t bytes = 1; bytes <= std::min(state.credit, most_chunk_); ++bytes) {
      State next = state;
      next.credit -= bytes;
      next.sent += bytes;
      next.chunks.push_back(bytes);
      go(next);
    }
    if (!state.chunks.empty()) {
      State next = state;
      EXPECT_TRUE(next.window.Receive(next.chunks.front()));
      next.waiting += next.chunks.front();
      next.chunks.erase(next.chunks.begin());
      go(next);
    }
    if (!state.is_copying && state.waiting > 0) {
      State next = state;
      next.is_copying = true;
      next.copying = std::exchange(next.waiting, 0);
      go(next);
    }
    if (state.is_copying) {
      State next = state;
      next.is_copying = false;
      next.copied += next.copying;
      next.window.Copy(std::exchange(next.copying, 0));
      next.credits_sent += next.window.Grant();
      go(next);
    }
    if (!is_stuck) return;
    ++ends_;
    EXPECT_EQ(state.sent, total_);
    EXPECT_TRUE(state.window.is_complete()) << "nobody can go on";
  }

  void Check(const State& state) {
    uint64_t under_way = 0;
    for (const uint64_t chunk : state.chunks) under_way += chunk;
    EXPECT_EQ(state.window.on_their_way(), state.credits_sent + state.credit + under_way);
    EXPECT_LE(under_way + state.waiting + state.copying, window_);
    EXPECT_LE(state.sent + state.credit + state.credits_sent, total_);
    EXPECT_EQ(state.window.received(), state.sent - under_way);
    EXPECT_EQ(state.window.is_complete(), state.copied == total_);
    // One byte more than was granted is refused, and changes nothing.
    State lie = state;
    EXPECT_FALSE(lie.window.Receive(lie.window.on_their_way() + 1));
    EXPECT_EQ(lie.Key(), state.Key());
  }

  const uint64_t total_;
  const uint64_t window_;
  const uint64_t most_chunk_;
  std::set<decltype(std::declval<State>().Key())> seen_;
  std::deque<State> open_;
  size_t ends_ = 0;
};

TEST(CreditWindowTest, EveryCourseEndsWithAllBytesAndKeepsTheWindow) {
  for (uint64_t total = 0; total <= 9; ++total) {
    for (uint64_t window = 1; window <= 4; ++window) {
      for (uint64_t least = 1; least <= window; ++least) {
        for (uint64_t most_chunk = 1; most_chunk <= least; ++most_chunk) {
          SCOPED_TRACE(absl::StrCat(total, " bytes, a window of ", window, ", grants of ", least,
                                    ", chunks of ", most_chunk));
          const Exploration exploration(total, window, least, most_chunk);
          EXPECT_EQ(exploration.ends(), 1u);
          EXPECT_GT(exploration.states(), total);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(CreditWindowTest, NumbersOfAnySizeAreSafe) {
  CreditWindow window(UINT64_MAX, 1 << 20, 256 << 10);
  EXPECT_EQ(window.Grant(), 1u << 20);
  EXPECT_FALSE(window.Receive(UINT64_MAX));
  EXPECT_EQ(window.on_their_way(), 1u << 20);
}

}  // namespace
}  // namespace opserve::server
