// Leave to take page-locked memory.
#pragma once

#include <memory>

namespace opserve::server {

struct PinnedAllowance {
  // Gives the booked memory back when the last owner lets go of this: every buffer is one, until
  // its block is back in the pool. Null: nothing was booked.
  std::shared_ptr<void> charge = nullptr;
  // Whether it is for page-locked memory at all, or for ordinary memory instead.
  bool is_pinned = true;
};

}  // namespace opserve::server
