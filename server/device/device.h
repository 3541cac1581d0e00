// A device: the hardware resources that the daemon owns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/device/acl/acl_library.h"
#include "server/device/device_health.h"
#include "server/device/memory/memory_pool.h"

namespace opserve::server {

// Thread-safe.
class Device : public DeviceHealth {
 public:
  struct MemoryInfo {
    uint64_t total_bytes = 0;
    uint64_t used_bytes = 0;
  };

  // The driver's names for the device; "" where it does not tell them.
  struct Identity {
    std::string physical_id;  // "3": of the machine, whatever part of it the process may see
    std::string pci_bus_id;   // "0000:C1:00.0"
  };

  // Asks for nothing but the memory's size and names, so a broken device can be created, too; it is
  // kStarting until it is opened. A pool limit of 0 means half of the device's memory. The name
  // of the pool's log gets ".ID".
  Device(const AclLibrary& acl, int32_t id, DeviceMemoryPool::Options pool = {});

  // Frees the pool and releases the device. Every lane and buffer must be gone.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // Opens the device and binds the calling thread to it.
  absl::Status Open();

  // Resets the device by force and opens it anew; binds the calling thread. Its memory, streams
  // and executors are void: the pool forgets its memory, `generation` goes up. No other thread may
  // be using the device, and its lanes must be gone.
  absl::Status Reset();

  // Ends the work of a device in quarantine, and has the driver repair its memory where it reports
  // that it can. Call it before waiting for the lanes: it makes calls return that wait for the
  // device. Logs the driver's findings about the fault. The calling thread must be bound.
  void StopWork();
  // Number of StopWork calls. Do not trust the results of a stream if the number changed meanwhile.
  uint64_t stops() const { return stops_.load(std::memory_order_acquire); }

  // Keeps `object`, which work that could not be stopped may still use, until the device has been
  // reset: it is destroyed there, after the reset.
  void KeepUntilReset(std::shared_ptr<const void> object) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes this device current on the calling thread: needed once per thread before any other
  // method that says so, again after the thread has used another device, and again after Reset.
  absl::Status BindThisThread() const;

  const AclLibrary& acl() const { return acl_; }
  DeviceMemoryPool& memory() { return *memory_; }
  const DeviceMemoryPool& memory() const { return *memory_; }
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Asks the driver, which may block. The calling thread must be bound.
  void SampleMemory();
  const Identity& identity() const { return identity_; }
  // As of the last sample; zeros before the first.
  MemoryInfo memory_info() const { return {memory_total_bytes_, memory_used_bytes_}; }

 private:
  void AskIdentity();
  void DropKept() ABSL_LOCKS_EXCLUDED(mutex_);

  const AclLibrary& acl_;
  Identity identity_;                            // not changed after construction
  std::atomic<aclrtContext> context_ = nullptr;  // the default one; goes with the reset
  std::atomic<uint64_t> binding_ = 0;            // its number among all there ever were; 0: none
  std::unique_ptr<DeviceMemoryPool> memory_;
  absl::Mutex mutex_;
  std::vector<std::shared_ptr<const void>> kept_ ABSL_GUARDED_BY(mutex_);  // until the reset
  std::atomic<uint64_t> generation_ = 0;
  std::atomic<uint64_t> stops_ = 0;
  std::atomic<uint64_t> memory_total_bytes_ = 0, memory_used_bytes_ = 0;
};

}  // namespace opserve::server
