// Keeps the daemon alive while it uses a mapped file that a stranger may cut off. Touching bytes
// behind the end of a mapped file raises SIGBUS, which ends a process (mmap(2)). While a guard
// exists, its range gets zeros there instead, and the thread goes on; the guard tells afterwards
// how many bytes were there all the time. Display servers of Wayland do the same with their
// clients' buffers.
//
// The first guard sets the process's handler of SIGBUS, for good. A fault anywhere else is
// left to the handler that was set earlier, or ends the process, as before.
#pragma once

#include <cstdint>

namespace opserve::server {

class FaultGuard {
 public:
  // `bytes` mapped bytes from `begin` on, whole pages, which stay mapped as long as the guard
  // exists. Nobody changes the mapping meanwhile but the guard itself.
  FaultGuard(char* begin, uint64_t bytes);
  // No thread uses the range any more.
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  // So many bytes from the beginning on were never found missing. A thread that has found zeros in
  // place of others, or whose writing went astray, sees it afterwards; so does one that has waited
  // for it. Thread-safe.
  uint64_t intact_bytes() const;

  struct Range;  // of fault_guard.cc

 private:
  Range& range_;
};

}  // namespace opserve::server
