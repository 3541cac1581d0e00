#include "server/device/device_ids.h"

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"

namespace opserve::server {

absl::StatusOr<std::vector<int32_t>> DeviceIds(const AclLibrary& acl, std::vector<int32_t> wanted) {
  OPSERVE_ASSIGN_OR_RETURN(const uint32_t count, acl.CountDevices());
  // Without a choice the daemon serves all.
  if (wanted.empty()) {
    for (uint32_t id = 0; id < count; ++id) wanted.push_back(static_cast<int32_t>(id));
  }
  for (int32_t id : wanted) {
    if (id >= static_cast<int32_t>(count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device=", id, ": there are devices 0 to ", count - 1));
    }
  }
  return wanted;
}

}  // namespace opserve::server
