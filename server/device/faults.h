// The kinds of device faults that the daemon tells apart.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace opserve::server {

enum class Fault {
  kKernel,     // a kernel crashed
  kTimeout,    // a kernel did not end in time
  kStream,     // a stream could not be stopped
  kMemory,     // the device's memory is damaged, and the device lost with it
  kDevice,     // the device is lost
  kSelfCheck,  // a golden case could not be run, or none came out right
  kSetUp,      // the device could not be opened, or lacks something that serving needs
};
inline constexpr size_t kFaults = 7;
inline constexpr std::array<absl::string_view, kFaults> kFaultNames = {
    "kernel", "timeout", "stream", "memory", "device", "self_check", "set_up"};

// Why a stream was stopped.
enum class StreamAbort {
  kTimeout,    // its kernel did not end in time
  kCancelled,  // its call was cancelled or past its deadline
  kError,      // it did not become idle after an error
  kAbandoned,  // one of these, but it could not be stopped and was given up
};
inline constexpr size_t kStreamAborts = 4;
inline constexpr std::array<absl::string_view, kStreamAborts> kStreamAbortNames = {
    "timeout", "cancelled", "error", "abandoned"};

// How often each of them happened. Thread-safe.
template <typename Kind, size_t kKinds>
class KindCounts {
 public:
  void Add(Kind kind) {
    counts_[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t of(Kind kind) const {
    return counts_[static_cast<size_t>(kind)].load(std::memory_order_relaxed);
  }
  uint64_t total() const {
    uint64_t total = 0;
    for (const auto& count : counts_) total += count.load(std::memory_order_relaxed);
    return total;
  }

 private:
  std::array<std::atomic<uint64_t>, kKinds> counts_ = {};
};

using FaultCounts = KindCounts<Fault, kFaults>;
using StreamAbortCounts = KindCounts<StreamAbort, kStreamAborts>;

}  // namespace opserve::server
