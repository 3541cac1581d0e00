// How tensors are moved to the daemon and back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/time/time.h"
#include "client/cpp/request.h"

namespace opserve {

// Called in the thread that waits for a transfer, after each chunk.
using TransferProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Bytes of a chunk of an upload. Over a Unix socket the rate is the same from 256 KiB to 8 MiB:
// below, the cost of each message shows; above, chunks fall out of the caches between checksum and
// socket, and they pile up in the daemon's memory. 1 MiB is far from both ends.
inline constexpr uint64_t kDefaultChunkBytes = 1 << 20;

struct UploadOptions {
  // From the upload on. Zero: the daemon's default (10 minutes). kInvalidArgument: longer than the
  // daemon's longest.
  absl::Duration lease = absl::ZeroDuration();

  // The device to be on. Nothing: that of the caller's other tensors while it has room, so that one
  // call can use them together, else the one that has most room.
  std::optional<uint32_t> device = std::nullopt;

  // At least 1; at most the daemon's limit on messages, less 64 KiB.
  uint64_t chunk_bytes = kDefaultChunkBytes;

  // For the whole transfer.
  absl::Duration timeout = kDefaultTimeout;

  TransferProgress on_progress = nullptr;
};

struct DownloadOptions {
  // As for an upload; 0: the daemon chooses.
  uint64_t chunk_bytes = 0;

  // For the whole transfer.
  absl::Duration timeout = kDefaultTimeout;

  TransferProgress on_progress = nullptr;
};

}  // namespace opserve
