#include "server/rpc/idempotency_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/catalog/error.h"

namespace opserve::server {
namespace {

// What an answer takes in memory beside the bytes of its results, from above: key, digest,
// bookkeeping and message objects; and of these for each result.
constexpr uint64_t kEntryBytes = 1 << 10;
constexpr uint64_t kResultBytes = 512;

// Bounds of a retry hint.
constexpr absl::Duration kShortestRetry = absl::Milliseconds(10);
constexpr absl::Duration kLongestRetry = absl::Seconds(10);

}  // namespace

absl::StatusOr<IdempotencyCache::Begun> IdempotencyCache::Begin(const Repeatable& request,
                                                                std::shared_ptr<CallState> run_call,
                                                                OnExecutionEnd on_end,
                                                                absl::Time now) {
  if (request.key.size() > kMaxKeyBytes) {
    return catalog::InvalidCall(
        "", "idempotency_key",
        absl::StrCat("it has ", request.key.size(), " bytes, at most ", kMaxKeyBytes, " allowed"),
        0);
  }
  TenantKey key(request.tenant, request.key);
  absl::MutexLock lock(&mutex_);
  Expire(now);
  auto [entry, is_new] = entries_.try_emplace(key);
  if (!is_new && entry->second.digest != request.digest) {
    return catalog::InvalidCall("", "idempotency_key", "it was used for another request", 0);
  }
  if (entry->second.answer != nullptr) return Begun{.answer = entry->second.answer, .place = {}};
  if (is_new) {
    entry->second.digest = request.digest;
    entry->second.run = ++last_number_;
    runs_[entry->second.run] = {.key = std::move(key), .call = std::move(run_call), .waiters = {}};
  }
  const Place place = {.run = entry->second.run, .waiter = ++last_number_};
  runs_[place.run].waiters.push_back({place.waiter, std::move(on_end)});
  return Begun{.answer = nullptr, .place = place, .is_first = is_new};
}

absl::Status IdempotencyCache::Reserve(uint64_t run, size_t results, uint64_t result_bytes,
                                       absl::Time now) {
  if (result_bytes > options_.max_bytes / 4) {
    return catalog::ErrorWithPushback(
        absl::StatusCode::kFailedPrecondition, "too_large",
        absl::StrCat("the results have ", result_bytes, " bytes; at most ", options_.max_bytes / 4,
                     " can be kept for an idempotency key (--idempotency_cache_bytes)"),
        -1);
  }
  absl::MutexLock lock(&mutex_);
  Expire(now);
  const uint64_t bytes = kEntryBytes + results * kResultBytes + result_bytes;
  if (bytes > options_.max_bytes - used_bytes_) {
    const absl::Duration wait =
        kept_.empty() ? kLongestRetry
                      : std::clamp(kept_.front().until - now, kShortestRetry, kLongestRetry);
    return catalog::ErrorWithPushback(
        absl::StatusCode::kResourceExhausted, "tenant_memory",
        absl::StrCat("answers kept for idempotency keys take ", used_bytes_, " bytes of ",
                     options_.max_bytes, "; this one would take ", bytes),
        absl::ToInt64Milliseconds(wait));
  }
  used_bytes_ += bytes;
  runs_[run].bytes = bytes;
  return absl::OkStatus();
}

void IdempotencyCache::End(uint64_t run, const ExecutionEnd& end, absl::Time now) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    auto node = runs_.extract(run);
    Run& ended = node.mapped();
    waiters = std::move(ended.waiters);
    const bool is_known = IsKnown(ended, run);
    if (end.status.ok() && is_known) {
      Entry& entry = entries_[ended.key];
      entry.answer = end.answer;
      entry.run = 0;
      entry.bytes = ended.bytes;
      kept_.push_back({now + options_.lifetime, std::move(ended.key)});
    } else {
      used_bytes_ -= ended.bytes;
      if (is_known) entries_.erase(ended.key);
    }
  }
  for (const Waiter& waiter : waiters) waiter.on_end(end);
}

bool IdempotencyCache::Leave(const Place& place) {
  Waiter gone;  // destroyed without the lock
  std::shared_ptr<CallState> abandoned;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = runs_.find(place.run);
    if (found == runs_.end()) return false;
    Run& run = found->second;
    const auto waiter =
        std::find_if(run.waiters.begin(), run.waiters.end(),
                     [&](const Waiter& waiter) { return waiter.number == place.waiter; });
    if (waiter == run.waiters.end()) return false;
    if (run.waiters.size() > 1) {
      gone = std::move(*waiter);
      run.waiters.erase(waiter);
      return true;
    }
    if (IsKnown(run, place.run)) entries_.erase(run.key);
    abandoned = run.call;
  }
  abandoned->Cancel();
  return false;
}

uint64_t IdempotencyCache::used_bytes() const {
  absl::MutexLock lock(&mutex_);
  return used_bytes_;
}

void IdempotencyCache::Expire(absl::Time now) {
  while (!kept_.empty() && kept_.front().until <= now) {
    const auto entry = entries_.find(kept_.front().key);
    used_bytes_ -= entry->second.bytes;
    entries_.erase(entry);
    kept_.pop_front();
  }
}

bool IdempotencyCache::IsKnown(const Run& run, uint64_t number) const {
  const auto entry = entries_.find(run.key);
  return entry != entries_.end() && entry->second.run == number;
}

}  // namespace opserve::server
