// Requests with their tensors in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <variant>

#include "client/cpp/client.h"
#include "client/cpp/shared_memory.h"
#include "tests/integration/in_process_daemon.h"

namespace opserve::server {

inline Config WithSharedMemory(Config config = InProcessDaemon::DefaultConfig()) {
  config.enable_shm = true;
  return config;
}

// Places tensors and results in a region, one behind the other, as the client's header recommends.
class Layout {
 public:
  explicit Layout(opserve::SharedRegion* region) : region_(*region) {}

  SharedRange Next(uint64_t bytes) {
    const SharedRange range = region_.Range(offset_, bytes);
    offset_ += (bytes + 32 + 63) / 64 * 64;
    return range;
  }
  // What is placed next is `bytes` bytes further than it would be.
  void Skip(uint64_t bytes) { offset_ += bytes; }

  // Where `range` is in this process.
  std::byte* At(const SharedRange& range) { return region_.bytes().data() + range.offset; }

  // The tensor with its elements in the region.
  SharedTensor Put(const Tensor& tensor) {
    const SharedRange range = Next(tensor.storage().size());
    if (range.size > 0) std::memcpy(At(range), tensor.storage().data(), range.size);
    return {tensor.dtype(), tensor.shape(), range, tensor.strides(), tensor.offset()};
  }

  // The same request with its tensors in the region, and room for its one result there.
  Request Put(const Request& request, uint64_t result_bytes) {
    Request shared = request;
    for (Invocation& invocation : shared.invocations) {
      for (NamedInput& input : invocation.inputs) {
        if (const auto* tensor = std::get_if<Tensor>(&input.value)) input.value = Put(*tensor);
      }
    }
    shared.destinations = {Next(result_bytes)};
    return shared;
  }

 private:
  opserve::SharedRegion& region_;
  uint64_t offset_ = 0;
};

}  // namespace opserve::server
