// The results of a run that stay in its device memory until they have left.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/program/resident_tensor.h"

namespace opserve::server {

// They lie in `content` as the program's memory plan has them, with all that the run had there.
// Void once their device was reset (Device::generation). Used by one thread at a time.
struct HeldResults {
  struct Result {
    uint64_t offset = 0;  // in the memory
    uint64_t bytes = 0;
  };

  ResidentContent content;
  int32_t device = 0;
  uint64_t device_generation = 0;
  std::vector<Result> results;  // those that travel, in the program's order
  std::shared_ptr<void> place;  // of HeldLimit, until they have left
};

}  // namespace opserve::server
