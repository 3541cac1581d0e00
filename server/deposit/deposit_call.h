// One Deposit call: another daemon's resident tensors arrive batch by batch, and its prepared
// programs one by one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "opserve/v1/peer_service.grpc.pb.h"
#include "proto/codec/payload_message.h"
#include "server/deposit/deposit_metrics.h"
#include "server/grpc/call_counter.h"
#include "server/grpc/end_alarms.h"
#include "server/grpc/pace_watch.h"
#include "server/identity/peers.h"
#include "server/identity/tenants.h"
#include "server/native/chunk_writer.h"
#include "server/native/tensor_service.h"
#include "server/native/transfer_call.h"
#include "server/request/request_context.h"

namespace opserve::server {

// Chunks travel as raw slices, as those of uploads do.
using AsyncPeerService = v1::PeerService::WithRawMethod_Deposit<v1::PeerService::Service>;

// Largest chunk of a deposit.
inline constexpr uint64_t kMaxDepositChunkBytes = uint64_t{1} << 20;
// Tensors of one offer.
inline constexpr size_t kMaxOfferedTensors = 256;

class DepositCall;

// The calls that are open, by the run of their sender. Thread-safe.
class DepositCalls {
 public:
  // Adds a call and cancels an older one of the same run: its sender has lost that connection,
  // which this daemon may learn much later. kResourceExhausted (reason "queue_full"): too many
  // others are open.
  absl::Status Add(const std::string& run, DepositCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  // No effect unless it was added and not replaced.
  void Remove(const std::string& run, DepositCall* call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kMaxCalls = 16;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, DepositCall*> by_run_ ABSL_GUARDED_BY(mutex_);
};

// All pointers outlive the calls.
struct DepositContext {
  AsyncPeerService* service = nullptr;
  TensorContext* tensors = nullptr;
  const Tenants* tenants = nullptr;
  DepositMetrics* metrics = nullptr;
  const RequestContext* execute = nullptr;
  DepositCalls* calls = nullptr;
  // Of the server: once it leaves, nothing is taken any more.
  EndAlarms* end_alarms = nullptr;
  const std::atomic<bool>* is_leaving = nullptr;
};

// Takes the steps that PeerService.Deposit describes, one after the other. Device memory is booked
// for the accepted tensors of a whole batch; no caller can reach them before the commit, and if the
// call ends before it, memory and quota are free again. Within a batch the sender has to keep the
// pace of uploads.
class DepositCall final : public TransferCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(DepositContext& context, grpc::ServerCompletionQueue* queue);

 private:
  friend class DepositCalls;
  enum class State { kHello, kOffer, kChunk, kCommit };  // the step that is expected

  // An accepted tensor.
  struct Arriving {
    ResidentTensors::Arrived tensor;
    uint64_t bytes = 0;
    size_t position = 0;  // in the offer
  };

  DepositCall(DepositContext& context, grpc::ServerCompletionQueue* queue);

  void OnArrival(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnServerEnd(bool ok);
  void OnStepEnded(const absl::Status& status) override;
  void OnDeadline(const absl::Status& status) override;

  void Read();
  void Write(const v1::DepositResponse& response);
  // Checks a message and takes its step.
  absl::Status Take(const grpc::ByteBuffer& message);
  absl::Status Hello(const v1::DepositHello& hello);
  absl::Status Offer(const v1::DepositOffer& offer);
  absl::Status Program(const v1::DepositedProgram& program);
  absl::Status TakeChunk(codec::PayloadMessage message, uint32_t crc32c);
  absl::Status Commit(const v1::DepositCommit& commit);
  // Whether the peer may deposit for the tenant of that name, which is the owner then.
  absl::Status FindOwner(const std::string& name);
  // kInvalidArgument: a mistake of the sender's, which ends the call.
  absl::Status CheckOffer(const v1::DepositOffer& offer) const;
  // Accepts a tensor of the present offer: quota, the peer's share, device memory. Else the reason
  // of the refusal.
  absl::Status Accept(const v1::DepositedTensor& offered, size_t position, DeviceService& device);
  absl::Status CopyNext();
  absl::Status Stalled() const;
  // Passes over tensors that are complete.
  void SkipComplete();
  bool is_batch_complete() const { return receiving_ == batch_.size(); }
  // Of a chunk that is not a tensor's last.
  uint64_t chunk_bytes() const { return std::min(kMaxDepositChunkBytes, context_.max_chunk_bytes); }
  // Of the chunk that comes next; 0: none does.
  uint64_t NextBytes() const;
  void DropBatch();
  // Does whatever can be done now.
  void Proceed();
  // The first error ends the call.
  void Fail(const absl::Status& status);
  void Finish();

  DepositContext& deposits_;
  grpc::ByteBuffer incoming_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&rpc_};
  MemberEvent<DepositCall, &DepositCall::OnArrival> arrival_{this};
  MemberEvent<DepositCall, &DepositCall::OnRead> read_{this};
  MemberEvent<DepositCall, &DepositCall::OnWritten> written_{this};
  MemberEvent<DepositCall, &DepositCall::OnFinished> finished_{this};
  MemberEvent<DepositCall, &DepositCall::OnServerEnd> server_end_{this};

  PaceWatch pace_;
  ChunkWriter chunks_{*context_.metrics};
  grpc::Alarm end_alarm_;
  bool is_end_watched_ = false;  // end_alarm_ was added

  const Tenant* owner_ = nullptr;  // of the batch
  Peer* peer_ = nullptr;           // set once the call is known to be a peer's
  std::string run_;                // the sender's; empty before its hello
  ResidentTensors::Expectation expectation_;
  State expected_ = State::kHello;
  std::vector<Arriving> batch_;
  DeviceService* device_ = nullptr;  // the batch's
  size_t receiving_ = 0;             // in batch_: the tensor of the next chunk
  uint64_t received_bytes_ = 0;      // of that tensor
  absl::Status failure_;
  bool is_reading_ = false;
  bool reads_ended_ = false;
  bool is_writing_ = false;
  bool is_sealed_ = false;    // the sender was told that the batch is complete
  bool is_finished_ = false;  // the answer is on its way
};

}  // namespace opserve::server
