// A device and its lanes: what the daemon owns of the hardware.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/acl_library.h"
#include "server/device/memory_pool.h"

namespace opserve::server {

// Thread-safe.
class Device {
 public:
  enum class State { kStarting, kReady, kFailed };

  struct MemoryInfo {
    uint64_t total_bytes = 0;
    uint64_t used_bytes = 0;
  };

  // Opens device `id` and binds the calling thread to it. The device is kStarting.
  static absl::StatusOr<std::unique_ptr<Device>> Open(const AclLibrary& acl, int32_t id);

  // Frees the pool and releases the device. Every lane and buffer must be gone.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Makes this device current on the calling thread: needed once per thread before any other
  // method that says so, and again after the thread has used another device.
  absl::Status BindThisThread() const;

  int32_t id() const { return id_; }
  const AclLibrary& acl() const { return acl_; }
  DeviceMemoryPool& memory() { return memory_; }

  State state() const { return state_.load(std::memory_order_acquire); }
  void SetReady();
  // A device that failed serves nothing any more; the first reason is kept in the log.
  void SetFailed(absl::string_view reason);

  // As the device reports it. Binds the calling thread.
  absl::StatusOr<MemoryInfo> memory_info() const;

 private:
  Device(const AclLibrary& acl, int32_t id) : acl_(acl), id_(id), memory_(acl) {}

  const AclLibrary& acl_;
  const int32_t id_;
  aclrtContext context_ = nullptr;  // the default context; goes with aclrtResetDevice
  DeviceMemoryPool memory_;
  std::atomic<State> state_ = State::kStarting;
};

// A stream of a device with exclusive use: one request at a time goes through a lane. Used by one
// thread, which must be bound to the device.
class StreamLane {
 public:
  static absl::StatusOr<std::unique_ptr<StreamLane>> Create(Device& device, uint32_t index);
  ~StreamLane();
  StreamLane(const StreamLane&) = delete;
  StreamLane& operator=(const StreamLane&) = delete;

  Device& device() const { return device_; }
  uint32_t index() const { return index_; }  // within the device
  aclrtStream stream() const { return stream_; }

  // Waits until everything queued has run and returns its error, if any. If `timeout` passes first,
  // the stream is aborted; a stream that does not become idle even then fails the device, since its
  // memory can never be reused. So afterwards the stream is idle or the device is kFailed.
  absl::Status Synchronize(absl::Duration timeout);

 private:
  StreamLane(Device& device, uint32_t index, aclrtStream stream)
      : device_(device), index_(index), stream_(stream) {}
  bool BecomesIdle() const;
  // Drops what is queued and ends what runs; whether the stream is idle after it.
  bool Abort() const;
  int SynchronizeFor(absl::Duration timeout) const;

  Device& device_;
  const uint32_t index_;
  const aclrtStream stream_;
};

}  // namespace opserve::server
