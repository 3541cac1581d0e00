#include "server/run/window_transfer.h"

#include <utility>

#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"

namespace opserve::server {

absl::Status WindowTransfer::Prepare(absl::Time deadline) {
  const MemoryRange& range = window_.range;
  OPSERVE_ASSIGN_OR_RETURN(mapping_, window_.region->MappingOf(end()));
  // Elsewhere in a mapping the bytes are copied between it and device memory.
  if (mapping_->FitsInPlace(range.offset, range.size)) {
    OPSERVE_ASSIGN_OR_RETURN(
        registration_, window_.region->RegistrationOn(lane_.lane.device(), mapping_, deadline));
  }
  return absl::OkStatus();
}

bool WindowTransfer::TryPrepare() {
  absl::StatusOr<std::shared_ptr<const SharedMapping>> mapping = window_.region->MappingOf(end());
  if (!mapping.ok() || !(*mapping)->FitsInPlace(window_.range.offset, window_.range.size)) {
    return false;
  }
  mapping_ = *std::move(mapping);
  registration_ = window_.region->KnownRegistrationOn(lane_.lane.device(), *mapping_);
  return registration_ != nullptr;
}

absl::StatusOr<uint64_t> WindowTransfer::CopyToDevice(void* memory) {
  memory_ = memory;
  const uint64_t bytes = window_.range.size;
  if (!is_copied() || is_result_ || bytes == 0) return 0;
  const AclLibrary& acl = lane_.lane.device().acl();
  OPSERVE_RETURN_IF_ERROR(Explained(
      AclCallStatus(acl, "aclrtMemcpyAsync",
                    acl.aclrtMemcpyAsync(memory_, bytes, HostBytes(), bytes,
                                         ACL_MEMCPY_HOST_TO_DEVICE, lane_.lane.stream()))));
  return bytes;
}

void* WindowTransfer::Address() const {
  if (is_copied()) return memory_;
  return registration_->device_address() + (HostBytes() - mapping_->begin());
}

absl::StatusOr<uint64_t> WindowTransfer::Finish() {
  uint64_t copied = 0;
  // Results that were not written in place.
  if (is_copied() && is_result_ && window_.range.size != 0) {
    copied = window_.range.size;
    const AclLibrary& acl = lane_.lane.device().acl();
    OPSERVE_RETURN_IF_ERROR(Explained(AclCallStatus(
        // The stream is idle, so the copy needs no order.
        acl, "aclrtMemcpy",
        acl.aclrtMemcpy(HostBytes(), copied, memory_, copied, ACL_MEMCPY_DEVICE_TO_HOST))));
  }
  OPSERVE_RETURN_IF_ERROR(window_.region->CheckIntact(*mapping_, end()));
  return copied;
}

std::shared_ptr<const void> WindowTransfer::TakeHold() {
  if (registration_ != nullptr) return std::move(registration_);
  return std::move(mapping_);
}

// A driver that meets missing bytes returns an error where a processor gets a signal.
absl::Status WindowTransfer::Explained(const absl::Status& status) const {
  if (status.ok()) return status;
  absl::Status intact = window_.region->CheckIntact(*mapping_, end());
  return intact.ok() ? status : intact;
}

}  // namespace opserve::server
