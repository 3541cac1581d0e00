#include "server/session/credit_window.h"

#include <algorithm>
#include <utility>

namespace opserve::server {

uint64_t CreditWindow::Grant() {
  const uint64_t wished = std::min(total_, copied_ + window_);
  // Not for a few bytes, which would make as many frames.
  if (wished - granted_ < least_ && wished < total_) return 0;
  return wished - std::exchange(granted_, wished);
}

bool CreditWindow::Receive(uint64_t bytes) {
  if (bytes > on_their_way()) return false;
  received_ += bytes;
  return true;
}

}  // namespace opserve::server
