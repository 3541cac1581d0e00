// Brings the chunks that a call receives into the device memory of resident tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "proto/codec/payload_message.h"
#include "server/observability/request_metrics.h"
#include "server/program/resident_tensor.h"
#include "server/run/call_state.h"
#include "server/schedule/lanes/device_service.h"
#include "server/schedule/lanes/transfer_task.h"

namespace opserve::server {

// At most two chunks are in memory: one that is being copied, and one that waits for it. All
// methods are called on one thread; the device's thread reads the chunk that is being copied, and
// nothing else.
class ChunkWriter {
 public:
  struct Chunk {
    codec::PayloadMessage message;     // with one payload that is not empty
    ResidentTensor* tensor = nullptr;  // outlives the copy; on the device of Expect
    uint64_t offset = 0;               // in the tensor, in bytes
    std::optional<uint32_t> crc32c =
        std::nullopt;      // of the payload, as the sender says, if it does
    bool is_last = false;  // no other chunk of the request follows
  };
  // A step for TransferCall::Submit, without results.
  struct Copy {
    int32_t device = 0;
    bool is_last = false;
    TransferTask::Step step;
  };

  explicit ChunkWriter(RequestMetrics& metrics) : metrics_(metrics) {}

  // `bytes` bytes of tensors were booked on `device`: they count as unwritten there until they are
  // copied, or until Clear. One device at a time.
  void Expect(DeviceService& device, uint64_t bytes);

  // Takes a chunk, which waits. No other one does.
  void Add(Chunk chunk) { waiting_ = std::move(chunk); }
  bool has_waiting() const { return waiting_.has_value(); }
  void DropWaiting() { waiting_.reset(); }

  // The copy of the waiting chunk, which is being copied from now on; no other one is. `call` and
  // the writer outlive the step.
  Copy Begin(const CallState& call, uint32_t tenant);
  // The copy has ended.
  void End(const absl::Status& status);

  // Nothing more is expected, and no copy runs.
  void Clear();

 private:
  void SubtractUnwritten(uint64_t bytes);

  RequestMetrics& metrics_;
  DeviceService* device_ = nullptr;
  uint64_t unwritten_bytes_ = 0;  // that this writer has added to the device's
  std::optional<Chunk> copying_;
  std::optional<Chunk> waiting_;
};

}  // namespace opserve::server
