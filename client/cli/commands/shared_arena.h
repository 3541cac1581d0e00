// A region of shared memory that a command fills with the tensors of its requests.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/commands/session.h"
#include "client/cpp/request.h"
#include "client/cpp/shared_memory.h"

namespace opserve::cli {

// Not thread-safe. Requests that refer to it must have ended before it goes.
class SharedArena {
 public:
  // Bytes from a tensor or result of `num_bytes` to the next one, so that devices can use both
  // where they lie.
  static uint64_t BytesFor(uint64_t num_bytes);

  // Bytes for the inputs that Place copies.
  static uint64_t BytesFor(const std::vector<NamedInput>& inputs);

  // Registers a region of at least `num_bytes` with the session's daemon. Errors: those of
  // SharedMemory.
  static absl::StatusOr<std::unique_ptr<SharedArena>> Make(const Session& session,
                                                           uint64_t num_bytes);

  // The place of the next `num_bytes`. Requires: BytesFor(num_bytes) bytes are left.
  SharedRange Take(uint64_t num_bytes);

  // Copies the storages of all tensors among `inputs`, which then refer to the copies; other inputs
  // stay. Requires: BytesFor(*inputs) bytes are left.
  void Place(std::vector<NamedInput>* inputs);

 private:
  SharedArena(std::unique_ptr<SharedMemory> memory, std::unique_ptr<SharedRegion> region);

  SharedTensor Place(const Tensor& tensor);

  const std::unique_ptr<SharedMemory> memory_;
  const std::unique_ptr<SharedRegion> region_;
  uint64_t used_bytes_ = 0;  // from the region's start
};

// The failure of a command that could not share memory with the session's daemon.
Failure SharingFailure(const Session& session, const Client& client, const absl::Status& status);

}  // namespace opserve::cli
