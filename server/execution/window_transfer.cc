#include "server/execution/window_transfer.h"

#include "absl/types/span.h"
#include "proto/status/status_macros.h"
#include "server/device/acl_status.h"

namespace opserve::server {

absl::Status WindowTransfer::Prepare(absl::Time deadline) {
  const MemoryRange& range = window_.range;
  // Not mapped: the bytes go through page-locked memory.
  if (window_.IsStaged()) {
    OPSERVE_ASSIGN_OR_RETURN(staging_, lane_.pinned.Allocate(range.size, lane_.pinned_allowance));
  } else if (window_.region->FitsInPlace(range.offset, range.size)) {
    // Elsewhere in a mapping the bytes are copied between it and device memory.
    OPSERVE_ASSIGN_OR_RETURN(registration_,
                             window_.region->RegistrationOn(lane_.lane.device(), deadline));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> WindowTransfer::CopyToDevice(void* memory) {
  memory_ = memory;
  const uint64_t bytes = window_.range.size;
  if (!is_copied() || is_result_ || bytes == 0) return 0;
  if (window_.IsStaged()) {
    OPSERVE_RETURN_IF_ERROR(
        window_.region->Read(window_.range.offset, absl::MakeSpan(HostBytes(), bytes)));
  }
  const AclLibrary& acl = lane_.lane.device().acl();
  OPSERVE_RETURN_IF_ERROR(
      AclCallStatus(acl, "aclrtMemcpyAsync",
                    acl.aclrtMemcpyAsync(memory_, bytes, HostBytes(), bytes,
                                         ACL_MEMCPY_HOST_TO_DEVICE, lane_.lane.stream())));
  return bytes;
}

void* WindowTransfer::Address() const {
  if (is_copied()) return memory_;
  return registration_->device_address() + window_.range.offset;
}

absl::StatusOr<uint64_t> WindowTransfer::Finish() {
  // Only results that were not written in place.
  const uint64_t bytes = window_.range.size;
  if (!is_copied() || !is_result_ || bytes == 0) return 0;
  const AclLibrary& acl = lane_.lane.device().acl();
  OPSERVE_RETURN_IF_ERROR(AclCallStatus(
      // The stream is idle, so the copy needs no order.
      acl, "aclrtMemcpy",
      acl.aclrtMemcpy(HostBytes(), bytes, memory_, bytes, ACL_MEMCPY_DEVICE_TO_HOST)));
  if (window_.IsStaged()) {
    OPSERVE_RETURN_IF_ERROR(
        // The file may have become smaller meanwhile, which is the client's error.
        window_.region->Write(window_.range.offset, absl::string_view(HostBytes(), bytes)));
  }
  return bytes;
}

char* WindowTransfer::HostBytes() const {
  return window_.IsStaged() ? static_cast<char*>(staging_.data()) : window_.data();
}

}  // namespace opserve::server
