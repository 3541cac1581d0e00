// Deposits the daemon's resident tensors and prepared programs at the peer that its configuration
// names, when it ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/config/peer_config.h"
#include "server/deposit/deposit_metrics.h"
#include "server/deposit/deposit_stream.h"
#include "server/run/prepared_programs.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/resident_steps.h"

namespace opserve::server {

// Speaks the sender's part of PeerService.Deposit, on a thread of its own. A tensor is served here
// until its batch is committed and never afterwards; what the receiver has then, it says, however
// often the connection breaks in between. Tensors of requests that still run wait for these.
// Thread-safe.
class Depositor {
 public:
  struct Parts {
    Scheduler& scheduler;
    ResidentTensors& residents;
    const PreparedPrograms& prepared;
    DepositMetrics& metrics;
    // For the log and the receiver; thread-safe.
    std::function<std::string(uint32_t tenant)> tenant_name;
    // The receiver expects the tensors from now on; called once at most, on the depositor's thread.
    std::function<void()> on_welcome;
  };

  // All of `parts` outlive the depositor.
  Depositor(DepositConfig config, Parts parts);
  // Gives up what is not done.
  ~Depositor();
  Depositor(const Depositor&) = delete;
  Depositor& operator=(const Depositor&) = delete;

  // The daemon begins to end, and serves on: tells the receiver. It, Start and Finish are called in
  // this order by one thread; again, they do nothing.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // No new calls are admitted: tensors go from now on, until `deadline`.
  void Start(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // No call runs that could make new tensors. Waits until all tensors have moved or are lost.
  void Finish() ABSL_LOCKS_EXCLUDED(mutex_);

  // How far it is, whenever.
  v1::DepositStatus Status() const;

 private:
  // A tensor to go.
  struct Item {
    ResidentTensors::Departing tensor;
    bool is_given = false;  // its commit was sent: it is not served here any more
    bool is_done = false;   // it has moved, or is lost
  };
  // Of one tenant.
  struct Batch {
    std::vector<Item> items;
    uint64_t tenant_bytes = 0;  // of these and of the tenant's that follow
    int attempts = 0;           // that ended with verdicts
    int failures = 0;           // that broke off
  };
  // A prepared program to go, with some of its handles.
  struct Program {
    PreparedPrograms::Departing departing;
    int failures = 0;  // that broke off
  };
  // Why tensors did not move, by the result that they count as.
  struct Fate {
    DepositMetrics::Result result;
    uint32_t tenant;
    std::string why;
    friend bool operator<(const Fate& a, const Fate& b) {
      return std::tie(a.result, a.tenant, a.why) < std::tie(b.result, b.tenant, b.why);
    }
  };

  void Run();
  // Waits until the next step is due; false: it is to stop.
  bool AwaitStart(absl::Time until) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time deadline() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for a moment; false: time is up, or it is to stop.
  bool Pause() ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a stream is there that the receiver has welcomed, made anew where necessary.
  bool Connect() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TryConnect() ABSL_LOCKS_EXCLUDED(mutex_);
  void Disconnect() ABSL_LOCKS_EXCLUDED(mutex_);
  DepositStream* stream() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Programs, while the daemon serves.
  void DepositWhileServing() ABSL_LOCKS_EXCLUDED(mutex_);
  void DepositAll();
  // Adds the handles of programs that were not taken up before.
  void TakeUpPrograms();
  // Sends the next program, of which there is one. False: the stream is of no use any more.
  bool DepositProgram();
  void NoteProgram(DepositMetrics::Result result);
  // The tensors that are there now and were not taken up before, in the order in which they go.
  std::deque<Batch> NewBatches();
  // How an attempt with a batch ended. Items that are done have left it.
  enum class Attempt {
    kDone,    // all are
    kWaits,   // the others wait for requests that use them, or for room
    kBroken,  // the stream is of no use any more
  };
  Attempt DepositBatch(Batch* batch);
  // The turns of one batch whose tensors are claimed. An error: the stream is of no use any more.
  absl::Status Exchange(DepositStream& stream, Batch* batch);
  // The same of a program.
  absl::StatusOr<v1::ProgramVerdict> Exchange(DepositStream& stream,
                                              const PreparedPrograms::Departing& program) const;
  absl::Status SendOffer(DepositStream& stream, const Batch& batch) const;
  absl::Status SendElements(DepositStream& stream, const ResidentTensor& tensor);
  // `accepted`: positions in the batch.
  absl::Status Commit(DepositStream& stream, absl::Span<const size_t> accepted, Batch* batch);
  void NoteBroken(const absl::Status& status);
  void CountMoved(Item* item);
  void NoteFate(DepositMetrics::Result result, absl::string_view why, Item* item);
  void NoteLeft(Batch* batch);
  void ReportFates();

  const DepositConfig config_;
  const Parts parts_;
  ResidentSteps steps_;
  std::atomic<bool> is_welcome_ = false;
  std::atomic<uint64_t> moved_tensors_ = 0, moved_bytes_ = 0, lost_tensors_ = 0;
  std::atomic<uint64_t> moved_programs_ = 0;

  // Of the depositor's thread.
  uint64_t chunk_bytes_ = 0;                        // as the receiver said
  std::string error_;                               // of the last stream
  bool takes_programs_ = false;                     // likewise
  absl::flat_hash_set<std::string> taken_up_;       // handles, of programs, too
  std::deque<Program> programs_;                    // in the order in which they go
  std::map<Fate, std::vector<std::string>> fates_;  // names of tensors, as the log has them

  mutable absl::Mutex mutex_;
  // Made and destroyed by the depositor's thread, which alone uses it but for Cancel.
  std::unique_ptr<DepositStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool calls_have_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // until Start
  bool has_begun_ = false;  // of the thread that calls Begin
  std::thread thread_;
};

}  // namespace opserve::server
