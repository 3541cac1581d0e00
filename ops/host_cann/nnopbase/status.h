// How aclnn functions report an error.
#pragma once

#include <string_view>

#include "aclnn/aclnn_base.h"
#include "ops/host_cann/runtime/launch.h"

namespace opserve::host_cann {

// Sets this thread's error text ("EZ1001: text", see aclGetRecentErrMsg) and returns `status`.
inline aclnnStatus Fail(aclnnStatus status, std::string_view text) {
  SetErrorMessage("EZ1001", text);
  return status;
}

}  // namespace opserve::host_cann
