#include "server/program/host_account.h"

namespace opserve::server {

void HostAccount::Open(std::shared_ptr<HostSum> sum, uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  sum_ = std::move(sum);
  // What was charged before the account had a sum.
  sum_->Add(bytes_);
  Add(static_cast<int64_t>(bytes));
}

void HostAccount::Close() {
  absl::MutexLock lock(&mutex_);
  opening_.fetch_add(1);
  Add(-bytes_);
  sum_ = nullptr;
}

uint64_t HostAccount::bytes() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<uint64_t>(bytes_);
}

bool HostAccount::HasRoom(uint64_t bytes) const {
  absl::MutexLock lock(&mutex_);
  return sum_ == nullptr || sum_->HasRoom(bytes);
}

bool HostAccount::IsBeside(const HostAccount& other) const {
  if (this == &other) return true;
  // One after the other: two threads may ask this of each other's accounts.
  const HostSum* sum = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    sum = sum_.get();
  }
  absl::MutexLock lock(&other.mutex_);
  return sum != nullptr && sum == other.sum_.get();
}

HostCharge HostAccount::Charge(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  Add(static_cast<int64_t>(bytes));
  return HostCharge(shared_from_this(), bytes, opening_.load());
}

void HostAccount::GiveBack(uint64_t bytes, uint64_t opening) {
  absl::MutexLock lock(&mutex_);
  if (opening == opening_.load()) Add(-static_cast<int64_t>(bytes));
}

void HostAccount::Add(int64_t bytes) {
  bytes_ += bytes;
  if (sum_ != nullptr) sum_->Add(bytes);
}

HostCharge& HostCharge::operator=(HostCharge&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  account_ = std::exchange(other.account_, nullptr);
  bytes_ = other.bytes_;
  opening_ = other.opening_;
  return *this;
}

void HostCharge::Reset() {
  if (account_ == nullptr) return;
  account_->GiveBack(bytes_, opening_);
  account_ = nullptr;
}

}  // namespace opserve::server
