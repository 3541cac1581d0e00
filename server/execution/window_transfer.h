// A window of shared memory during one run: where the device finds its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/host_registration.h"
#include "server/device/pinned_pool.h"
#include "server/execution/lane_context.h"
#include "server/execution/program.h"

namespace opserve::server {

// The window is used in place if the device maps its region and its bytes lie as aclnn asks.
// Otherwise it has a copy in device memory: copied from and to the mapping, or, if the region is
// not mapped, staged in page-locked memory.
//
// Used by one thread at a time, which is bound to the device: Prepare, CopyToDevice and Finish, in
// this order. `window` and `lane` outlive it.
class WindowTransfer {
 public:
  // `is_result`: the device writes to the window; else it reads from it.
  WindowTransfer(const SharedWindow& window, bool is_result, const LaneContext& lane)
      : window_(window), is_result_(is_result), lane_(lane) {}

  // Shows the region to the device if the window can be used in place, or takes the page-locked
  // memory to stage it. Waits until `deadline` for another request that shows the region.
  // Errors: those of SharedRegion::RegistrationOn and PinnedPool::Allocate.
  absl::Status Prepare(absl::Time deadline);

  // Whether the window needs as much device memory as it has bytes.
  bool is_copied() const { return registration_ == nullptr; }

  // `memory`: the device memory of a copied window. Queues the copy of an input on the lane's
  // stream; returns the bytes copied. kInvalidArgument (reason "shm_invalid"): a part of the file
  // is gone.  Else AclCallStatus.
  absl::StatusOr<uint64_t> CopyToDevice(void* memory);

  // Of the bytes on the device; after CopyToDevice.
  void* Address() const;

  // Brings a result to the window when the stream is idle; returns the bytes copied. Errors as of
  // CopyToDevice.
  absl::StatusOr<uint64_t> Finish();

  // The device's hold on a window that it uses in place, to be kept while work that could not be
  // stopped may use it; else null.
  std::shared_ptr<const HostRegistration> TakeRegistration() { return std::move(registration_); }

 private:
  // Where copies from and to the device find the bytes in host memory.
  char* HostBytes() const;

  const SharedWindow& window_;
  const bool is_result_;
  const LaneContext& lane_;
  std::shared_ptr<const HostRegistration> registration_;  // null: copied
  PinnedBuffer staging_;                                  // empty unless it is staged
  void* memory_ = nullptr;                                // on the device, of a copied window
};

}  // namespace opserve::server
