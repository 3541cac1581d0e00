// Runs of prepared programs that were captured on a device, to be replayed as one launch.
//
// A capture freezes the addresses of all tensors. So a captured run has an arena of its own, which
// holds payloads, literals, intermediates, results and workspaces, and it fits a call whose
// resident tensors have the contents that they had at the capture. Outputs that stay are computed
// there, too, and copied when the run has ended well: into the memory of the tensor that they
// replace, so that its address stays, or of the new tensor.
//
// Any lane may replay a captured run, one lane at a time. A program has a number of captured runs
// on a device, so as many lanes replay the program at once; other lanes launch meanwhile. One more
// is captured only when all of them are in use.
//
// A program's first run launches, the next one is captured. After kMostSetbacks in a row (contents
// that have gone, a capture or a run that failed) without a replay between them, the program
// launches from then on. Beside other captured runs of the program, whose replays would clear it, a
// setback is a pause instead: the program is not captured again for a while.
//
// A captured run is the first thing to go when device memory is short. Its host memory counts in
// the program's account, and it is not captured where the tenant has no room for that.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/device/acl/acl_handles.h"
#include "server/device/memory/memory_pool.h"
#include "server/program/host_account.h"
#include "server/program/memory_plan.h"
#include "server/program/program.h"
#include "server/program/resident_tensor.h"
#include "server/run/plan_cache.h"

namespace opserve::server {

// Names of CapturedRuns::Result and ::End.
inline constexpr absl::string_view kCaptureResults[] = {"captured", "full", "tenant_full",
                                                        "failed"};
inline constexpr absl::string_view kCaptureEnds[] = {"contents",  "memory",  "released", "failed",
                                                     "cancelled", "drained", "closed"};

// A captured run and all that its replays use. Used by one run at a time.
struct CapturedRun {
  GraphHandle graph;                                     // null before the capture
  DeviceBuffer memory;                                   // the arena; empty while a run has it
  std::shared_ptr<const MemoryPlan> memory_plan;         // null: the program's own
  absl::InlinedVector<uint64_t, 1> workspace_bytes;      // by invocation
  std::vector<std::shared_ptr<Plan>> plans;              // of its launches; none twice
  std::vector<std::weak_ptr<ResidentContent>> contents;  // by position in Program::residents
  uint64_t bytes = 0;                                    // of the arena
  HostCharge charge;    // of the host memory, but for plans, which have charges of their own
  size_t launches = 0;  // that a replay saves, but for one
  uint64_t replays = 0;
  bool is_new = true;  // the run that captured it has not ended yet
};

// Whether calls of the program can be captured: there are launches to save, and the addresses of
// its tensors may be the same each time.
bool IsCapturable(const Program& program);

// Whether nobody else has the contents of the tensors that the call replaces, so that they can be
// changed where they are. For a run of the call, which has the tensors alone.
bool IsAloneWithReplaced(const ProgramCall& call);

// Those of one device. Thread-safe.
class CapturedRuns {
 public:
  static constexpr uint32_t kMostSetbacks = 3;
  static constexpr size_t kMostRuns = 256;
  // Of all captured runs together. Host memory holds what the device needs to launch them.
  static constexpr size_t kMostLaunches = size_t{1} << 16;
  // A captured run that was not used for so long makes room for others.
  static constexpr absl::Duration kLongUnused = absl::Seconds(30);
  // A program that gave its memory up, or found none, or had a setback beside other captured runs,
  // is not captured again for so long. The pause doubles each time, up to the longest one, until a
  // capture has had kWorthwhile replays.
  static constexpr absl::Duration kPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);
  static constexpr uint64_t kWorthwhile = 16;

  // Of captures, in the order of kCaptureResults.
  enum Result {
    kCaptured,
    kFull,        // one of the device's limits is reached
    kTenantFull,  // the tenant has no room for the arena, or for the host memory
    kNotCaptured  // a function of the capture failed, or a launch in it
  };
  static constexpr size_t kResults = 4;
  // Why captured runs ended, in the order of kCaptureEnds.
  enum End {
    kContents,   // a resident tensor has other memory
    kMemory,     // device memory was short, or others needed the room
    kReleased,   // the prepared program is no more
    kFailed,     // a replay, or a run with it
    kCancelled,  // its run was, so that its stream was aborted
    kDrained,    // the device drains
    kClosed,     // the device was reset or closed
  };
  static constexpr size_t kEnds = 7;

  // Books the arena's bytes for the tenant until the result is gone; or why that cannot be now.
  using Book = std::function<absl::StatusOr<std::shared_ptr<void>>(uint32_t tenant, uint64_t)>;

  // `max_bytes`: of all arenas together; 0: nothing is captured. `runs_per_program`: the most of
  // one program, at least 1. `book` outlives the object.
  CapturedRuns(const AclLibrary& acl, uint64_t max_bytes, size_t runs_per_program, Book book)
      : acl_(acl),
        max_bytes_(max_bytes),
        runs_per_program_(runs_per_program),
        book_(std::move(book)) {}
  // Every run has given back what it took.
  ~CapturedRuns() { DropAll(kClosed); }
  CapturedRuns(const CapturedRuns&) = delete;
  CapturedRuns& operator=(const CapturedRuns&) = delete;

  // Whether the call may be captured or replayed: neither its attributes nor its slices are its
  // own.
  bool MayServe(const ProgramCall& call) const;
  // Whether such calls may be, once it is known that they are short.
  bool MayServeLater(const ProgramCall& call) const;

  // For a call that MayServe. A captured run that fits it, to be given back by Put or Drop. Null:
  // there is none, other runs have them, or the call has other resident tensors.
  std::unique_ptr<CapturedRun> Take(const ProgramCall& call, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a run that launches should be captured: the program may have one more, and all that it
  // has are in use.
  bool IsDue(const ProgramCall& call, absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Room for a capture with an arena of `bytes`, to be given back by Put or Drop. Null: it is not
  // due any more, or there is no room, which is counted. `plan_bytes`: host memory of plans that
  // would stay because of it; its own is counted here.
  std::unique_ptr<CapturedRun> Begin(const ProgramCall& call, uint32_t tenant, uint64_t bytes,
                                     absl::Time now, uint64_t plan_bytes = 0)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // After a run that has ended well, was replayed and left its stream idle, with its memory.
  void Put(const ProgramCall& call, std::unique_ptr<CapturedRun> run, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends a captured run that a run had, or the attempt to capture it. No replay is queued any more.
  void Drop(const ProgramCall& call, std::unique_ptr<CapturedRun> run, End why, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives one back that was not used.
  void Return(const ProgramCall& call, std::unique_ptr<CapturedRun> run)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The capture failed, and the run launches.
  void GiveUp(const ProgramCall& call, std::unique_ptr<CapturedRun> run, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A run without one has ended well.
  void NoteLaunched(const ProgramCall& call) ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends captured runs, of `tenant` or, with none, of all: at once those that no run has, the
  // others when their run ends. What is booked for them comes back at once in both cases, since a
  // run has memory of its own booked as well and needs no more. Whether something came back. From
  // any thread.
  bool GiveMemoryBack(std::optional<uint32_t> tenant, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all captured runs that no run has, those that a run has when it ends, and forgets the
  // programs.
  void DropAll(End why) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends those whose program or contents have gone.
  void DropUnusable(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Something of a capture stays on the device, so there are no more until DropAll(kClosed), when
  // the device is reset. Captured runs are replayed.
  void StopCapturing() ABSL_LOCKS_EXCLUDED(mutex_);
  // Graphs and plans of ended runs are kept until it is called, on a thread that is bound to the
  // device.
  void DestroyEnded() ABSL_LOCKS_EXCLUDED(mutex_);

  // The following take no lock.
  uint64_t max_bytes() const { return max_bytes_; }
  int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }  // of arenas
  uint64_t replays() const { return replays_.load(std::memory_order_relaxed); }
  uint64_t results(size_t result) const { return results_[result].load(std::memory_order_relaxed); }
  uint64_t ends(size_t end) const { return ends_[end].load(std::memory_order_relaxed); }

 private:
  // A captured run of a program, or the attempt to capture one.
  struct Slot {
    const CapturedRun* id = nullptr;   // the run's address, also while a run has it
    std::unique_ptr<CapturedRun> run;  // null: a run has it, or captures it
    uint32_t tenant = 0;               // that is charged for it
    std::shared_ptr<void> share;       // what is booked; null: that was taken back
    std::optional<End> unwanted;       // why it goes when the run that has it ends
    absl::Time last_use = absl::InfinitePast();
  };
  struct Entry {
    std::weak_ptr<const Program> program;
    absl::InlinedVector<Slot, 1> slots;  // at most runs_per_program_
    uint32_t setbacks = 0;
    absl::Duration pause = kPause;  // the next one
    absl::Time next_capture = absl::InfinitePast();
  };
  using Entries = absl::flat_hash_map<const Program*, Entry>;
  // What goes without the lock.
  struct Released {
    std::shared_ptr<void> share;
    DeviceBuffer memory = {};
    std::unique_ptr<CapturedRun> attempt = {};  // that captured nothing
  };
  using Ended = std::vector<Released>;

  // Of the call's program, not of another that was at its address; null: none.
  Entry* Find(const ProgramCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDue(const Entry& entry, absl::Time now) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  static void Pause(Entry* entry, absl::Time now);
  // After the end of a captured run, or an attempt, that failed or whose contents have gone.
  static void SetBack(Entry* entry, absl::Time now);
  // The slot of a captured run that a run has. Null: there is none, or no entry.
  static Slot* SlotOf(Entry* entry, const CapturedRun& run);
  // Takes the run's slot away. Returns its booking; null: nothing is booked, or there is no slot.
  static std::shared_ptr<void> RemoveSlot(Entry* entry, const CapturedRun& run);
  // Whether there is room now, after runs that were not used for long have ended.
  bool MakeRoom(const CapturedRun& run, absl::Time now, Ended* ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountIn(const CapturedRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Uncount(const CapturedRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes its slot away, too. `entry`: that of its program; null: it has gone.
  void EndRun(Entry* entry, std::unique_ptr<CapturedRun> run, End why, Ended* ended)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends those of the program's captured runs that no run has and that are `to_end`. Whether there
  // were any.
  bool EndIdle(Entry* entry, absl::FunctionRef<bool(const CapturedRun&)> to_end, End why,
               Ended* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(Result result) { results_[result].fetch_add(1, std::memory_order_relaxed); }

  const AclLibrary& acl_;
  const uint64_t max_bytes_;
  const size_t runs_per_program_;
  const Book book_;
  mutable absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<CapturedRun>> to_destroy_ ABSL_GUARDED_BY(mutex_);  // without memory
  // Those that runs have and capture count, too; likewise below, which is written with mutex_ held.
  size_t launches_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<int64_t> runs_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<uint64_t> replays_ = 0;
  std::array<std::atomic<uint64_t>, kResults> results_ = {};
  std::array<std::atomic<uint64_t>, kEnds> ends_ = {};
};

}  // namespace opserve::server
