#include "server/run/captured_runs.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "server/program/host_bytes.h"

namespace opserve::server {
namespace {

// Host memory of a launch in a captured graph, and for each tensor of it: about what the host
// CANN's take. ACL does not tell it.
constexpr uint64_t kLaunchBytes = 400;
constexpr uint64_t kLaunchTensorBytes = 80;

// Host memory of a captured run of the call, its plans aside.
uint64_t HostBytes(const ProgramCall& call) {
  const Program& program = *call.program;
  const size_t launches = program.invocations.size();
  uint64_t bytes = HeapPiece(sizeof(CapturedRun)) + launches * kLaunchBytes +
                   HeapPiece(launches * sizeof(uint64_t)) +
                   HeapPiece(launches * sizeof(std::shared_ptr<Plan>)) +
                   HeapPiece(call.residents.size() * sizeof(std::weak_ptr<ResidentContent>));
  for (const BoundInvocation& invocation : program.invocations) {
    bytes += kLaunchTensorBytes * (invocation.inputs.size() + invocation.outputs.size());
  }
  // Outputs that stay have a place in the arena, by a plan of the captured run's own.
  if (!program.kept.empty()) {
    bytes += HeapPiece(sizeof(MemoryPlan)) + HeapBytes(program.memory_plan) +
             HeapPiece(launches * sizeof(uint64_t));
  }
  return bytes;
}

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

bool IsAny(const CapturedRun&) { return true; }

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
  return program.launches() > 1 && program.windows.empty();
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

std::unique_ptr<CapturedRun> CapturedRuns::Take(const ProgramCall& call, absl::Time now) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  if (entry == nullptr) return nullptr;
  // The first that fits, so that the later ones are unused, and make room, when fewer lanes replay.
  for (Slot& slot : entry->slots) {
    if (slot.run != nullptr && Fits(*slot.run, call)) return std::move(slot.run);
  }
  // Contents that still exist may come again, with another caller's next call. All that lost theirs
  // by now lost them together: one setback.
  if (EndIdle(entry, HasLostContents, kContents, &ended)) SetBack(entry, now);
  return nullptr;
}

bool CapturedRuns::IsDue(const ProgramCall& call, absl::Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(call.program.get());
  return found != entries_.end() && !found->second.program.expired() && IsDue(found->second, now);
}

bool CapturedRuns::IsDue(const Entry& entry, absl::Time now) const {
  return !is_stopped_ && entry.slots.size() < runs_per_program_ && entry.setbacks < kMostSetbacks &&
         now >= entry.next_capture &&
         // A run that is not in use serves the program's next call. One that goes has to make room
         // first, not to be replaced at once.
         std::none_of(entry.slots.begin(), entry.slots.end(),
                      [](const Slot& slot) { return slot.run != nullptr || slot.unwanted; });
}

std::unique_ptr<CapturedRun> CapturedRuns::Begin(const ProgramCall& call, uint32_t tenant,
                                                 uint64_t bytes, absl::Time now,
                                                 uint64_t plan_bytes) {
  // In three steps, since booking takes other locks: room is counted under the lock, booked without
  // it, and both are joined if the run is still wanted.
  auto run = std::make_unique<CapturedRun>();
  run->bytes = bytes;
  run->launches = call.program->launches();
  run->graph = GraphHandle(nullptr, GraphHandle::deleter_type{&acl_});
  for (const BoundResident& resident : call.residents) {
    run->contents.push_back(resident.tensor->content);
  }
  HostAccount* const account = call.program->host_account.get();
  const uint64_t host_bytes = account == nullptr ? 0 : HostBytes(call);
  {
    Ended ended;
    absl::MutexLock lock(&mutex_);
    Entry* const entry = Find(call);
    // Another lane may have begun one, or given one back, since IsDue.
    if (entry == nullptr || !IsDue(*entry, now)) return nullptr;
    if (account != nullptr && !account->HasRoom(host_bytes + plan_bytes)) {
      Count(kTenantFull);
      Pause(entry, now);
      return nullptr;
    }
    if (!MakeRoom(*run, now, &ended)) {
      Count(kFull);
      Pause(entry, now);
      return nullptr;
    }
    // Counted before the lock is given back, so that two lanes stay within the limits together.
    Slot& slot = entry->slots.emplace_back();
    slot.id = run.get();
    slot.tenant = tenant;
    CountIn(*run);
  }
  if (account != nullptr) run->charge = account->Charge(host_bytes);
  // Destroyed without the lock, which takes the books' own.
  absl::StatusOr<std::shared_ptr<void>> share = book_(tenant, bytes);
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  Slot* const slot = SlotOf(entry, *run);
  // GiveMemoryBack or DropAll may have come meanwhile.
  const bool is_wanted = slot != nullptr && !slot->unwanted;
  if (share.ok() && is_wanted) {
    slot->share = *std::move(share);
    return run;
  }
  Count(kTenantFull);
  Uncount(*run);
  // Nothing is booked for it.
  RemoveSlot(entry, *run);
  if (entry != nullptr) Pause(entry, now);
  return nullptr;
}

void CapturedRuns::Pause(Entry* entry, absl::Time now) {
  entry->next_capture = now + entry->pause;
  entry->pause = std::min(2 * entry->pause, kLongestPause);
}

void CapturedRuns::SetBack(Entry* entry, absl::Time now) {
  if (entry->slots.empty()) {
    ++entry->setbacks;
  } else if (now >= entry->next_capture) {
    // Replays of the others would clear the setback, and the next capture might be in vain at once.
    // Failures on several lanes together are one pause.
    Pause(entry, now);
  }
}

CapturedRuns::Slot* CapturedRuns::SlotOf(Entry* entry, const CapturedRun& run) {
  if (entry == nullptr) return nullptr;
  const auto slot = std::find_if(entry->slots.begin(), entry->slots.end(),
                                 [&run](const Slot& one) { return one.id == &run; });
  return slot == entry->slots.end() ? nullptr : &*slot;
}

std::shared_ptr<void> CapturedRuns::RemoveSlot(Entry* entry, const CapturedRun& run) {
  Slot* const slot = SlotOf(entry, run);
  if (slot == nullptr) return nullptr;
  std::shared_ptr<void> share = std::move(slot->share);
  entry->slots.erase(slot);
  return share;
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
    Entry* of_oldest = nullptr;
    Slot* oldest = nullptr;
    for (auto& [program, entry] : entries_) {
      for (Slot& slot : entry.slots) {
        // Without `run` a lane replays or captures it just now.
        if (slot.run == nullptr || now - slot.last_use < kLongUnused) continue;
        if (oldest != nullptr && oldest->last_use <= slot.last_use) continue;
        of_oldest = &entry;
        oldest = &slot;
      }
    }
    if (oldest == nullptr) return false;
    EndRun(of_oldest, std::move(oldest->run), kMemory, ended);
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
  Slot* const slot = SlotOf(entry, *run);
  // Its memory was asked back during the run, or the device drained or closed.
  if (slot == nullptr || slot->unwanted) {
    const End why = slot == nullptr ? kClosed : *slot->unwanted;
    EndRun(entry, std::move(run), why, &ended);
    return;
  }
  slot->last_use = now;
  slot->run = std::move(run);
}

void CapturedRuns::Drop(const ProgramCall& call, std::unique_ptr<CapturedRun> run, End why,
                        absl::Time now) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  // The capture went well, though its run did not.
  if (run->is_new) Count(kCaptured);
  EndRun(entry, std::move(run), why, &ended);
  if (entry != nullptr && why == kFailed) SetBack(entry, now);
}

void CapturedRuns::GiveUp(const ProgramCall& call, std::unique_ptr<CapturedRun> run,
                          absl::Time now) {
  Count(kNotCaptured);
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Uncount(*run);
  Entry* const entry = Find(call);
  std::shared_ptr<void> share = RemoveSlot(entry, *run);
  // Nothing was captured, so it needs no thread that is bound to the device.
  ended.push_back({.share = std::move(share), .attempt = std::move(run)});
  if (entry != nullptr) SetBack(entry, now);
}

void CapturedRuns::Return(const ProgramCall& call, std::unique_ptr<CapturedRun> run) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  Entry* const entry = Find(call);
  Slot* const slot = SlotOf(entry, *run);
  // An attempt to capture that its run did not begin.
  if (run->is_new) {
    Uncount(*run);
    std::shared_ptr<void> share = RemoveSlot(entry, *run);
    ended.push_back({.share = std::move(share), .attempt = std::move(run)});
  } else if (slot != nullptr && !slot->unwanted) {
    slot->run = std::move(run);
  } else {
    const End why = slot == nullptr ? kClosed : *slot->unwanted;
    EndRun(entry, std::move(run), why, &ended);
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
  // There may be some of a program that was at this address before.
  Entry& entry = entries_[call.program.get()];
  EndIdle(&entry, IsAny, kReleased, &ended);
  entry = Entry();
  entry.program = call.program;
}

void CapturedRuns::EndRun(Entry* entry, std::unique_ptr<CapturedRun> run, End why, Ended* ended) {
  ends_[why].fetch_add(1, std::memory_order_relaxed);
  Uncount(*run);
  ended->push_back({.share = RemoveSlot(entry, *run), .memory = std::move(run->memory)});
  to_destroy_.push_back(std::move(run));
}

bool CapturedRuns::EndIdle(Entry* entry, absl::FunctionRef<bool(const CapturedRun&)> to_end,
                           End why, Ended* ended) {
  const size_t slots = entry->slots.size();
  // From the back, since each end takes its slot away.
  for (size_t i = slots; i-- > 0;) {
    std::unique_ptr<CapturedRun>& run = entry->slots[i].run;
    if (run != nullptr && to_end(*run)) EndRun(entry, std::move(run), why, ended);
  }
  return entry->slots.size() < slots;
}

bool CapturedRuns::GiveMemoryBack(std::optional<uint32_t> tenant, absl::Time now) {
  // Without the lock, for this is called at every shortage and mostly finds nothing.
  if (runs() == 0) return false;
  Ended ended;
  absl::MutexLock lock(&mutex_);
  for (auto& [program, entry] : entries_) {
    bool is_news = false;
    for (size_t i = entry.slots.size(); i-- > 0;) {
      Slot& slot = entry.slots[i];
      if (tenant.value_or(slot.tenant) != slot.tenant) continue;
      // A run may be asked for its memory more than once.
      is_news |= !slot.unwanted;
      if (slot.run != nullptr) {
        EndRun(&entry, std::move(slot.run), kMemory, &ended);
        continue;
      }
      // The first reason counts.
      if (!slot.unwanted) slot.unwanted = kMemory;
      if (slot.share != nullptr) ended.push_back({.share = std::move(slot.share)});
    }
    if (is_news) Pause(&entry, now);
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
    EndIdle(&entry, IsAny, why, &ended);
    for (Slot& slot : entry.slots) {
      if (!slot.unwanted) slot.unwanted = why;
    }
    // Those that a run has stay until it gives them back.
    if (entry.slots.empty()) entries_.erase(current);
  }
}

void CapturedRuns::DropUnusable(absl::Time now) {
  Ended ended;
  absl::MutexLock lock(&mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto current = it++;
    Entry& entry = current->second;
    if (entry.program.expired()) {
      EndIdle(&entry, IsAny, kReleased, &ended);
      entries_.erase(current);
    } else if (EndIdle(&entry, HasLostContents, kContents, &ended)) {
      SetBack(&entry, now);
    }
  }
}

void CapturedRuns::DestroyEnded() {
  // Destroyed after the lock is given back: ACL calls may block.
  std::vector<std::unique_ptr<CapturedRun>> to_destroy;
  absl::MutexLock lock(&mutex_);
  to_destroy.swap(to_destroy_);
}

}  // namespace opserve::server
