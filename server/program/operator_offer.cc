#include "server/program/operator_offer.h"

#include <utility>

namespace opserve::server {

void OperatorOffer::Set(int32_t device, GoldenFinding finding) {
  absl::MutexLock lock(&mutex_);
  GoldenFinding& old = findings_[device];
  if (old.is_right() && !finding.is_right()) lacks_.fetch_add(1, std::memory_order_release);
  // Counted, so that requests need no lock while nothing is lacking.
  if (!old.is_right() && finding.is_right()) lacks_.fetch_sub(1, std::memory_order_release);
  old = std::move(finding);
}

bool OperatorOffer::IsOfferedBy(int32_t device) const {
  if (lacks_.load(std::memory_order_acquire) == 0) return true;
  absl::MutexLock lock(&mutex_);
  const auto found = findings_.find(device);
  return found == findings_.end() || found->second.is_right();
}

bool OperatorOffer::IsOffered() const {
  if (lacks_.load(std::memory_order_acquire) == 0) return true;
  absl::MutexLock lock(&mutex_);
  // Some device has it right, be it that others lack it.
  return lacks_.load(std::memory_order_relaxed) < findings_.size();
}

bool OperatorOffer::IsWrongOn(int32_t device) const {
  if (lacks_.load(std::memory_order_acquire) == 0) return false;
  absl::MutexLock lock(&mutex_);
  const auto found = findings_.find(device);
  return found != findings_.end() && found->second.verdict == GoldenVerdict::kWrong;
}

std::optional<GoldenFinding> OperatorOffer::FindingOn(int32_t device) const {
  absl::MutexLock lock(&mutex_);
  const auto found = findings_.find(device);
  if (found == findings_.end()) return std::nullopt;
  return found->second;
}

GoldenFinding OperatorOffer::Lack() const {
  absl::MutexLock lock(&mutex_);
  GoldenFinding lack;
  for (const auto& [device, finding] : findings_) {
    // A wrong result says more than a lack.
    if (finding.verdict == GoldenVerdict::kWrong) return finding;
    if (!finding.is_right()) lack = finding;
  }
  return lack;
}

}  // namespace opserve::server
