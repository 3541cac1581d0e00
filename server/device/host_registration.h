// Host memory that a device has been shown, so that its kernels use it where it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "server/device/device.h"

namespace opserve::server {

// Whether devices can map memory that a program allocated itself under the Linux of that release
// ("6.1.0-18-amd64"): up to 5.10 it has to come from aclrtMallocHost, or devices read wrong data
// (CANN's documentation of aclrtHostRegister). Callers copy instead.
bool KernelMapsHostMemory(const char* release);

// Registered until it is destroyed, on a thread that is bound to the device, or until the device is
// reset, which makes it void: destroying it is then no call of the device. The device outlives it.
class HostRegistration {
 public:
  // Registers `bytes` bytes (at least 1) at `data`, which begins a page; `memory` keeps them valid.
  // The calling thread must be bound to the device. May take long: the pages are locked.
  //
  // kUnimplemented: the ABI or the kernel cannot.  Else AclCallStatus; kUnavailable if the device
  // is lost.
  static absl::StatusOr<std::shared_ptr<const HostRegistration>> Create(
      const Device& device, void* data, size_t bytes, std::shared_ptr<const void> memory);

  ~HostRegistration();
  HostRegistration(const HostRegistration&) = delete;
  HostRegistration& operator=(const HostRegistration&) = delete;

  // Of `data`, for kernels; not for copies.
  char* device_address() const { return static_cast<char*>(device_address_); }
  bool is_void() const { return generation_ != device_.generation(); }

 private:
  HostRegistration(const Device& device, void* data, std::shared_ptr<const void> memory)
      : device_(device),
        generation_(device.generation()),
        memory_(std::move(memory)),
        data_(data) {}

  const Device& device_;
  const uint64_t generation_;
  const std::shared_ptr<const void> memory_;
  void* const data_;
  void* device_address_ = nullptr;  // null: not registered
};

}  // namespace opserve::server
