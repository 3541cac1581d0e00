// Notifies: a record sets one, a wait takes it back.
#pragma once

#include <cstdint>
#include <memory>

#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/waiters.h"

namespace opserve::host_cann {

// Thread-safe. Shared by its handle and its tasks.
class Notify {
 public:
  Notify(Device& device, uint32_t id) : device_(device), id_(id) {}

  Device& device() const { return device_; }
  uint32_t id() const { return id_; }
  Flag& flag() { return flag_; }

 private:
  Device& device_;
  const uint32_t id_;
  Flag flag_;
};

}  // namespace opserve::host_cann
