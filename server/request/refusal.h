// Why the daemon as a whole takes no request.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "proto/status/error.h"

namespace opserve::server {

// `moved_to`: the address of the daemon that receives the resident tensors; null: none does.
inline absl::Status DrainingError(const std::string* moved_to = nullptr) {
  absl::Status error =
      MakeError(Reason::kDraining, "the daemon is shutting down", /*pushback_ms=*/1000);
  return moved_to == nullptr ? error : WithMovedTo(*moved_to, std::move(error));
}

}  // namespace opserve::server
