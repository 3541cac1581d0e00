// A tensor that stays in device memory between requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "proto/dtypes/tensor_spec.h"
#include "server/device/memory/memory_pool.h"

namespace opserve::server {

// Elements in device memory: contiguous, complete.
struct ResidentContent {
  DeviceBuffer memory;
  std::shared_ptr<void> zone_share;  // of its tenant's device memory, for as long as it lives
};

// Holding one keeps its memory, also after its release; the memory is void once its device was
// reset (Device::generation).
struct ResidentTensor {
  TensorSpec spec;
  // Where the content is. Read by holders of a claim (TensorClaims) and under the lock of the books
  // (ResidentTensors); changed by a sole holder under that lock.
  int32_t device = 0;
  uint64_t device_generation = 0;
  // A holder of a claim (TensorClaims) reads it and may keep the content beyond the claim. A sole
  // holder may put another content here; if the old one was not kept, that may be changed.
  std::shared_ptr<ResidentContent> content = std::make_shared<ResidentContent>();
  uint64_t version = 1;  // likewise; how often the content was replaced, and 1
  // A request that changed the content failed half-way: nobody can use it any more.
  std::atomic<bool> is_broken = false;
  // It was given to the daemon with this address, a string of the books': set by a sole holder.
  std::atomic<const std::string*> deposited_at = nullptr;
  // Of a tensor that another daemon deposited: the part of what that daemon may have here.
  std::shared_ptr<void> peer_share = nullptr;
};

}  // namespace opserve::server
