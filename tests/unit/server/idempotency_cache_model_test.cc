// The idempotency cache against a plain account of what it should do, for random use.

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/request/idempotency_cache.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

class IdempotencyCacheModelTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kLifetime = absl::Minutes(10);

  struct Run {
    std::string key;
    uint8_t body = 0;
    bool is_known = true;  // somebody waits for it
    uint64_t bytes = 0;
    std::map<uint64_t, std::shared_ptr<int>> told;  // who waits, and how often they were told
  };
  struct Kept {
    uint8_t body = 0;
    uint64_t bytes = 0;
    IdempotencyCache::Answer answer;
    absl::Time until;
  };

  int Pick(size_t below) { return static_cast<int>(random_() % below); }

  void Begin(const std::string& key, uint8_t body) {
    auto told = std::make_shared<int>(0);
    RequestDigest digest = {};
    digest[0] = body;
    const auto begun = cache_.Begin(
        {.tenant = 0, .weight = 1, .key = key, .digest = digest},
        std::make_shared<CallState>(absl::InfiniteFuture()),
        [told](const RequestEnd& /*end*/) { ++*told; }, now_);
    std::erase_if(kept_, [this](const auto& entry) { return entry.second.until <= now_; });
    const auto kept = kept_.find(key);
    const auto run = KnownRun(key);
    const bool is_other = (kept != kept_.end() && kept->second.body != body) ||
                          (run != runs_.end() && run->second.body != body);
    ASSERT_EQ(begun.ok(), !is_other);
    if (is_other) return;
    ASSERT_EQ(begun->answer, kept != kept_.end() ? kept->second.answer : nullptr);
    if (begun->answer != nullptr) return;
    ASSERT_EQ(begun->is_first, run == runs_.end());
    if (begun->is_first) BeginRun(begun->place.run, key, body);
    runs_[begun->place.run].told[begun->place.waiter] = std::move(told);
    ASSERT_EQ(cache_.used_bytes(), Bytes());
  }

  void EndOne() {
    const auto node = runs_.extract(std::next(runs_.begin(), Pick(runs_.size())));
    const Run& run = node.mapped();
    RequestEnd end;
    if (Pick(2) == 0) {
      end.status = absl::InternalError("it failed");
    } else {
      end.answer = std::make_shared<const RequestAnswer>();
      if (run.is_known) kept_[run.key] = {run.body, run.bytes, end.answer, now_ + kLifetime};
    }
    cache_.End(node.key(), end, now_);
    for (const auto& [waiter, told] : run.told) ASSERT_EQ(*told, 1);
  }

  void LeaveOne() {
    const auto run = std::next(runs_.begin(), Pick(runs_.size()));
    auto& waiting = run->second.told;
    const auto waiter = std::next(waiting.begin(), Pick(waiting.size()));
    const bool is_last = waiting.size() == 1;
    ASSERT_EQ(cache_.Leave({.run = run->first, .waiter = waiter->first}), !is_last);
    ASSERT_EQ(*waiter->second, 0);
    if (is_last) {
      run->second.is_known = false;
    } else {
      waiting.erase(waiter);
    }
  }

  void BeginRun(uint64_t number, const std::string& key, uint8_t body) {
    const uint64_t before = cache_.used_bytes();
    ASSERT_EQ(cache_.Reserve(number, /*results=*/1, /*result_bytes=*/100,
                             IdempotencyCache::Keeping::kWhileThereIsRoom, now_),
              IdempotencyCache::Memory::kAnswer);
    runs_[number] = {.key = key,
                     .body = body,
                     .is_known = true,
                     .bytes = cache_.used_bytes() - before,
                     .told = {}};
  }

  std::map<uint64_t, Run>::iterator KnownRun(const std::string& key) {
    return std::find_if(runs_.begin(), runs_.end(), [&](const auto& entry) {
      return entry.second.is_known && entry.second.key == key;
    });
  }

  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const auto& [number, run] : runs_) bytes += run.bytes;
    for (const auto& [key, kept] : kept_) bytes += kept.bytes;
    return bytes;
  }

  std::mt19937 random_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  IdempotencyCache cache_{{.max_bytes = 64 << 20, .lifetime = kLifetime}};
  std::map<uint64_t, Run> runs_;
  std::map<std::string, Kept> kept_;
};

TEST_F(IdempotencyCacheModelTest, RandomUseAgrees) {
  random_.seed(TestSeed());

  for (int step = 0; step < 20000 && !HasFatalFailure(); ++step) {
    const int action = Pick(10);
    if (action < 5) {
      Begin(absl::StrCat("key ", Pick(6)), static_cast<uint8_t>(Pick(8) == 0));
    } else if (action < 7 && !runs_.empty()) {
      EndOne();
    } else if (action < 9 && !runs_.empty()) {
      LeaveOne();
    } else {
      now_ += absl::Minutes(Pick(4));
    }
  }
}

}  // namespace
}  // namespace opserve::server
