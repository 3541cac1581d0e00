// A window of shared memory during one run: where the device finds its bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/device/host_registration.h"
#include "server/program/program.h"
#include "server/run/lane_context.h"
#include "server/shared_memory/shared_mapping.h"

namespace opserve::server {

// The window is used in place if the device maps its region and its bytes lie as aclnn asks.
// Otherwise it has a copy in device memory, copied from and to the mapping.
//
// Used by one thread at a time, which is bound to the device: Prepare, CopyToDevice and Finish, in
// this order. `window` and `lane` outlive it.
class WindowTransfer {
 public:
  // `is_result`: the device writes to the window; else it reads from it.
  WindowTransfer(const SharedWindow& window, bool is_result, const LaneContext& lane)
      : window_(window), is_result_(is_result), lane_(lane) {}

  // Shows the region to the device if the window can be used in place. Waits until `deadline` for
  // another request that does so. Errors: those of SharedRegion::MappingOf and RegistrationOn.
  absl::Status Prepare(absl::Time deadline);

  // As Prepare, for a thread that must not wait. False: it would have to, the window would have to
  // be copied, or there is an error; Prepare tells.
  bool TryPrepare();

  // Whether the window needs as much device memory as it has bytes.
  bool is_copied() const { return registration_ == nullptr; }

  // `memory`: the device memory of a copied window. Queues the copy of an input on the lane's
  // stream; returns the bytes copied. Errors: those of SharedRegion::CheckIntact, else
  // AclCallStatus.
  absl::StatusOr<uint64_t> CopyToDevice(void* memory);

  // Of the bytes on the device; after CopyToDevice.
  void* Address() const;

  // Brings a result to the window when the stream is idle, and looks whether the bytes were there
  // all the time; returns the bytes copied. Errors as of CopyToDevice.
  absl::StatusOr<uint64_t> Finish();

  // Keeps the memory mapped; for work that could not be stopped and may still use it.
  std::shared_ptr<const void> TakeHold();

 private:
  uint64_t end() const { return window_.range.offset + window_.range.size; }  // in the region
  char* HostBytes() const { return mapping_->data() + window_.range.offset; }
  // `status` of a call of the device, or the error of the caller's memory that caused it.
  absl::Status Explained(const absl::Status& status) const;

  const SharedWindow& window_;
  const bool is_result_;
  const LaneContext& lane_;
  std::shared_ptr<const SharedMapping> mapping_;          // from Prepare on
  std::shared_ptr<const HostRegistration> registration_;  // null: copied
  void* memory_ = nullptr;                                // on the device, of a copied window
};

}  // namespace opserve::server
