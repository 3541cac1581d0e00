#include "server/execution/captured_runs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace opserve::server {
namespace {

template <typename T>
bool IsSame(const std::weak_ptr<T>& a, const std::weak_ptr<T>& b) {
  // By control block: another object may be at an address that was freed.
  return !a.owner_before(b) && !b.owner_before(a);
}

bool HasLostContents(const CapturedRun& run) {
  return std::any_of(
      run.contents.begin(), run.contents.end(),
      [](const std::weak_ptr<ResidentContent>& content) { return content.expired(); });
}

// Whether the call's tensors are where those of the capture were, and stay there.
bool Fits(const CapturedRun& run, const ProgramCall& call) {
  for (size_t i = 0; i < run.contents.size(); ++i) {
    const std::weak_ptr<ResidentContent> content = call.residents[i].tensor->content;
    if (!IsSame(run.contents[i], content)) return false;
  }
  return IsAloneWithReplaced(call);
}

}  // namespace

bool IsCapturable(const Program& program) {
  // A single launch costs no more than a replay, and a window may be elsewhere in each call.
  return program.invocations.size() > 1 && program.windows.empty();
}

bool IsAloneWithReplaced(const ProgramCall& call) {
  const std::vector<KeptOutput>& kept = call.program->kept;
  return std::all_of(kept.begin(), kept.end(), [&call](const KeptOutput& one) {
    return !one.replaced || call.residents[*one.replaced].tensor->content.use_count() == 1;
  });
}

bool CapturedRuns::MayServe(const ProgramCall& call) const {
  return call.slice_ends.empty() && MayServeLater(call);
}

bool CapturedRuns::MayServeLater(const ProgramCall& call) const {
  return max_bytes_ > 0 && call.program->is_capturable && call.changed.empty() && acl_.HasCapture();
}

CapturedRuns::Entry* CapturedRuns::Find(const ProgramCall& call) {
  const auto found = entries_.find(call.program.get());
  const bool is_known = found != entries_.end() &&
                        IsSame(found->second.program, std::weak_ptr<const Program>(call.program));
  return is_known ? &found->second : nullptr;
}

std::unique_ptr<CapturedRun> CapturedRuns::Take(const ProgramCall& call) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  if (entry == nullptr || entry->run == nullptr) return nullptr;
  if (Fits(*entry->run, call)) {
    entry->is_taken = true;
    return std::move(entry->run);
  }
  // Contents that still exist may come again, with another caller's next call.
  if (HasLostContents(*entry->run)) {
    ++entry->setbacks;
    EndRun(entry, std::move(entry->run), kContents, &ended);
  }
  return nullptr;
}

bool CapturedRuns::IsDue(const ProgramCall& call, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(call.program.get());
  return found != entries_.end() && !found->second.program.expired() && IsDue(found->second, now);
}

std::unique_ptr<CapturedRun> CapturedRuns::Begin(const ProgramCall& call, uint32_t tenant,
                                                 uint64_t bytes, absl::Time now) {
  // In three steps, since booking takes other locks: room is counted under the lock, booked without
  // it, and both are joined if the run is still wanted.
  auto run = std::make_unique<CapturedRun>();
  run->bytes = bytes;
  run->launches = call.program->invocations.size();
  run->graph = GraphHandle(nullptr, GraphHandle::deleter_type{&acl_});
  for (const BoundResident& resident : call.residents) {
    run->contents.push_back(resident.tensor->content);
  }
  {
    Ended ended;
    absl::MutexLock lock(&mutex_);
    Entry* const entry = Find(call);
    // Another lane may have begun one since IsDue.
    if (entry == nullptr || !IsDue(*entry, now)) return nullptr;
    if (!MakeRoom(*run, now, &ended)) {
      Count(kFull);
      Pause(entry, now);
      return nullptr;
    }
    // Counted before the lock is given back, so that two lanes stay within the limits together.
    entry->tenant = tenant;
    entry->is_taken = true;
    entry->unwanted.reset();
    CountIn(*run);
  }
  // Destroyed without the lock, which takes the books' own.
  absl::StatusOr<std::shared_ptr<void>> share = book_(tenant, bytes);
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  // GiveMemoryBack or DropAll may have come meanwhile.
  const bool is_wanted = entry != nullptr && !entry->unwanted;
  if (share.ok() && is_wanted) {
    entry->share = *std::move(share);
    return run;
  }
  Count(kTenantFull);
  Uncount(*run);
  if (entry != nullptr) {
    entry->is_taken = false;
    Pause(entry, now);
  }
  return nullptr;
}

void CapturedRuns::Pause(Entry* entry, absl::Time now) {
  entry->next_capture = now + entry->pause;
  entry->pause = std::min(2 * entry->pause, kLongestPause);
}

bool CapturedRuns::MakeRoom(const CapturedRun& run, absl::Time now, Ended* ended) {
  if (run.bytes > max_bytes_ || run.launches > kMostLaunches) return false;
  const auto has_room = [&] {
    mutex_.AssertHeld();
    return static_cast<uint64_t>(bytes_.load()) <= max_bytes_ - run.bytes &&
           launches_ <= kMostLaunches - run.launches &&
           static_cast<size_t>(runs_.load()) < kMostRuns;
  };
  // Runs in use stay: programs that displaced each other would be captured again and again.
  while (!has_room()) {
    Entry* oldest = nullptr;
    for (auto& [program, entry] : entries_) {
      // Without `run` a lane replays or captures it just now.
      if (entry.run == nullptr || now - entry.last_use < kLongUnused) continue;
      if (oldest == nullptr || entry.last_use < oldest->last_use) oldest = &entry;
    }
    if (oldest == nullptr) return false;
    EndRun(oldest, std::move(oldest->run), kMemory, ended);
  }
  return true;
}

void CapturedRuns::Put(const ProgramCall& call, std::unique_ptr<CapturedRun> run, absl::Time now) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  // The run that captured counts as a capture, and its replay saved nothing yet.
  if (run->is_new) {
    Count(kCaptured);
    run->is_new = false;
  } else {
    replays_.fetch_add(1, std::memory_order_relaxed);
    ++run->replays;
    if (entry != nullptr) {
      entry->setbacks = 0;
      if (run->replays == kWorthwhile) entry->pause = kPause;
    }
  }
  // Its memory was asked back during the run, or the device drained or closed.
  if (entry == nullptr || entry->unwanted) {
    EndRun(entry, std::move(run), entry == nullptr ? kClosed : *entry->unwanted, &ended);
  }
  if (entry == nullptr) return;
  entry->is_taken = false;
  entry->unwanted.reset();
  entry->last_use = now;
  entry->run = std::move(run);
}

void CapturedRuns::Drop(const ProgramCall& call, std::unique_ptr<CapturedRun> run, End why) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  if (entry != nullptr) {
    entry->is_taken = false;
    entry->setbacks += why == kFailed;
  }
  // The capture went well, though its run did not.
  if (run->is_new) Count(kCaptured);
  EndRun(entry, std::move(run), why, &ended);
}

void CapturedRuns::GiveUp(const ProgramCall& call, std::unique_ptr<CapturedRun> run) {
  Count(kNotCaptured);
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Uncount(*run);
  // Nothing was captured, so it needs no thread that is bound to the device.
  ended.push_back({.share = nullptr, .attempt = std::move(run)});
  if (Entry* const entry = Find(call)) {
    entry->is_taken = false;
    ++entry->setbacks;
    ended.back().share = std::move(entry->share);
  }
}

void CapturedRuns::Return(const ProgramCall& call, std::unique_ptr<CapturedRun> run) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  const bool is_wanted = entry != nullptr && !entry->unwanted;
  if (entry != nullptr) entry->is_taken = false;
  // An attempt to capture that its run did not begin.
  if (run->is_new) {
    Uncount(*run);
    ended.push_back(
        {.share = entry == nullptr ? nullptr : std::move(entry->share), .attempt = std::move(run)});
  } else if (is_wanted) {
    entry->run = std::move(run);
  } else {
    EndRun(entry, std::move(run), entry == nullptr ? kClosed : *entry->unwanted, &ended);
  }
}

void CapturedRuns::CountIn(const CapturedRun& run) {
  launches_ += run.launches;
  runs_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(static_cast<int64_t>(run.bytes), std::memory_order_relaxed);
}

void CapturedRuns::Uncount(const CapturedRun& run) {
  launches_ -= run.launches;
  runs_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(static_cast<int64_t>(run.bytes), std::memory_order_relaxed);
}

void CapturedRuns::NoteLaunched(const ProgramCall& call) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  if (Find(call) != nullptr) return;
  // There may be one of a program that was at this address before.
  Entry& entry = entries_[call.program.get()];
  if (entry.run != nullptr) EndRun(&entry, std::move(entry.run), kReleased, &ended);
  entry = Entry();
  entry.program = call.program;
}

void CapturedRuns::EndRun(Entry* entry, std::unique_ptr<CapturedRun> run, End why, Ended* ended) {
  ends_[why].fetch_add(1, std::memory_order_relaxed);
  Uncount(*run);
  ended->push_back({.share = entry == nullptr ? nullptr : std::move(entry->share),
                    .memory = std::move(run->memory)});
  to_destroy_.push_back(std::move(run));
}

bool CapturedRuns::GiveMemoryBack(std::optional<uint32_t> tenant, absl::Time now) {
  // Without the lock, for this is called at every shortage and mostly finds nothing.
  if (runs() == 0) return false;
  Ended ended;
  absl::MutexLock lock(&mutex_);
  for (auto& [program, entry] : entries_) {
    if (entry.run == nullptr && !entry.is_taken) continue;
    if (tenant.value_or(entry.tenant) != entry.tenant) continue;
    // A run may be asked for its memory more than once.
    if (!entry.unwanted) Pause(&entry, now);
    // The first reason counts.
    if (entry.is_taken && !entry.unwanted) entry.unwanted = kMemory;
    if (entry.run != nullptr) {
      EndRun(&entry, std::move(entry.run), kMemory, &ended);
    } else if (entry.share != nullptr) {
      ended.push_back({.share = std::move(entry.share)});
    }
  }
  return !ended.empty();
}

void CapturedRuns::StopCapturing() {
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
}

void CapturedRuns::DropAll(End why) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  // The reset removed from the device all that an earlier capture had left.
  if (why == kClosed) is_stopped_ = false;
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto current = it++;
    Entry& entry = current->second;
    if (entry.run != nullptr) EndRun(&entry, std::move(entry.run), why, &ended);
    if (entry.is_taken && !entry.unwanted) entry.unwanted = why;
    // Those that a run has stay until it gives them back.
    if (!entry.is_taken) entries_.erase(current);
  }
}

void CapturedRuns::DropUnusable() {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto current = it++;
    Entry& entry = current->second;
    const bool is_released = entry.program.expired();
    if (entry.run != nullptr && (is_released || HasLostContents(*entry.run))) {
      entry.setbacks += !is_released;
      EndRun(&entry, std::move(entry.run), is_released ? kReleased : kContents, &ended);
    }
    if (is_released) entries_.erase(current);
  }
}

void CapturedRuns::DestroyEnded() {
  // Destroyed after the lock is given back: ACL calls may block.
  std::vector<std::unique_ptr<CapturedRun>> to_destroy;
  absl::MutexLock lock(&mutex_);
  to_destroy.swap(to_destroy_);
}

}  // namespace opserve::server
