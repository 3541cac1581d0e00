// Which devices a daemon is to serve.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/acl/acl_library.h"

namespace opserve::server {

// `wanted` as it is, or all devices if it is empty. kInvalidArgument: there is no such device.
// Else CountDevices'.
absl::StatusOr<std::vector<int32_t>> DeviceIds(const AclLibrary& acl, std::vector<int32_t> wanted);

}  // namespace opserve::server
