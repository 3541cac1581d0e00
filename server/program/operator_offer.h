// Which devices offer an operator. Not every product has each operator, and a device may compute
// one wrong; only a device can tell, by the operator's golden cases.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace opserve::server {

enum class GoldenVerdict {
  kRight,        // every golden case gives its result
  kWrong,        // one gives another result: the device does not offer the operator
  kUnsupported,  // the product lacks the operator, or its kernels are not installed
};

struct GoldenFinding {
  GoldenVerdict verdict = GoldenVerdict::kRight;
  std::string problem = {};  // "" if it is right

  bool is_right() const { return verdict == GoldenVerdict::kRight; }
};

// The findings about one operator, at most one for each device. Thread-safe.
class OperatorOffer {
 public:
  // Replaces the finding about `device`.
  void Set(int32_t device, GoldenFinding finding) ABSL_LOCKS_EXCLUDED(mutex_);

  // False where the finding is not kRight. A device without a finding has not failed yet.
  bool IsOfferedBy(int32_t device) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether a device offers the operator, or none has a finding.
  bool IsOffered() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Nothing: the device has no finding.
  std::optional<GoldenFinding> FindingOn(int32_t device) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Of a device that does not offer the operator: a wrong result before all else, since that is no
  // property of the product. kRight: there is none.
  GoldenFinding Lack() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether the finding is kWrong.
  bool IsWrongOn(int32_t device) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Findings that are not kRight. Requests read it, and nothing else while it is 0.
  std::atomic<uint32_t> lacks_ = 0;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int32_t, GoldenFinding> findings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
