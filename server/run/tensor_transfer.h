// Copies chunks between host memory and device memory that outlives a run, of resident tensors and
// held results: the lane's part of a transfer.
//
// The copies are synchronous calls and do not touch the lane's stream. An upload's chunk lies in
// pageable memory, for which the asynchronous call would wait as well; and once a synchronous call
// has returned, no copy can still be writing into a tensor's memory or a pinned buffer, both of
// which go back to their pools in no stream's order.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/codec/payloads.h"
#include "server/device/memory/pinned_pool.h"
#include "server/run/call_state.h"
#include "server/run/held_results.h"
#include "server/run/lane_context.h"
#include "server/run/resident_tensors.h"

namespace opserve::server {

// All functions are called on the lane's thread. Errors of all: those of AclCallStatus (a lost
// device is put into quarantine), and kFailedPrecondition (reason "tensor_lost") if the device was
// reset since the upload began, so that the tensor's memory is void.

// A piece of a tensor that is being uploaded: bytes [offset, offset + payload.size) of it.
struct UploadChunk {
  const codec::Payload& payload;
  uint64_t offset = 0;
  std::optional<uint32_t> crc32c = std::nullopt;  // as the sender says, if it does
};

// Copies `chunk` into `tensor`, which nobody else uses, and takes its memory first if it has none
// yet, waiting for that until `call` ends. `tenant`: its owner.
//
// kDataLoss: another checksum; nothing was copied.  Also the errors of DeviceMemoryPool::Allocate.
absl::Status CopyToDevice(const UploadChunk& chunk, const CallState& call, uint32_t tenant,
                          LaneContext& context, ResidentTensor* tensor);

struct DownloadChunk {
  PinnedBuffer data;
  uint32_t crc32c = 0;
};

// Copies `bytes` bytes (not 0) from `offset` on of `content`, of a tensor whose device_generation
// was `generation` then. Also the errors of PinnedPool::Allocate.
absl::StatusOr<DownloadChunk> CopyFromDevice(const ResidentContent& content, uint64_t generation,
                                             uint64_t offset, uint64_t bytes, LaneContext& context);

// Copies these parts of the held results' memory (none is empty), one behind the other. Also the
// errors of PinnedPool::Allocate; kUnavailable (reason "device_unavailable") instead of
// "tensor_lost".
absl::StatusOr<PinnedBuffer> CopyHeld(const HeldResults& held,
                                      absl::Span<const HeldResults::Result> parts,
                                      LaneContext& context);

}  // namespace opserve::server
