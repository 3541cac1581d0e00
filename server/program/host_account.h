// Host memory of prepared programs: that of a program is its graph, its memory plan, the executors
// that lanes keep for it, and its captured runs. It counts for the program's tenant and for all.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace opserve::server {

// The sum of some accounts, up to a limit, as a part of another sum. Thread-safe.
class HostSum {
 public:
  explicit HostSum(uint64_t limit = UINT64_MAX, std::shared_ptr<HostSum> whole = nullptr)
      : limit_(limit), whole_(std::move(whole)) {}

  uint64_t bytes() const { return static_cast<uint64_t>(bytes_.load(std::memory_order_relaxed)); }
  // Whether so many bytes more are within the limit. Adding them is not refused.
  bool HasRoom(uint64_t bytes) const {
    return this->bytes() <= limit_ && bytes <= limit_ - this->bytes();
  }
  void Add(int64_t bytes) {
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (whole_ != nullptr) whole_->Add(bytes);
  }

 private:
  const uint64_t limit_;
  const std::shared_ptr<HostSum> whole_;
  std::atomic<int64_t> bytes_ = 0;
};

class HostCharge;

// The account of one program. Owned by a shared_ptr. Thread-safe.
class HostAccount : public std::enable_shared_from_this<HostAccount> {
 public:
  // Its bytes count in `sum` until Close, beginning with `bytes` of the program itself. Before the
  // program's runs; again after Close.
  void Open(std::shared_ptr<HostSum> sum, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The program is no more. Its captured runs end soon, and so do the executors that lanes keep,
  // unless another program uses them: these count there then, and for nobody before.
  void Close() ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasRoom(uint64_t bytes) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether both count in the same sum.
  bool IsBeside(const HostAccount& other) const ABSL_LOCKS_EXCLUDED(mutex_);

  HostCharge Charge(uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class HostCharge;
  // `opening`: as when the bytes were charged; those of an earlier one are gone already.
  void GiveBack(uint64_t bytes, uint64_t opening) ABSL_LOCKS_EXCLUDED(mutex_);
  void Add(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::shared_ptr<HostSum> sum_ ABSL_GUARDED_BY(mutex_);  // null: not open
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<uint64_t> opening_ = 0;  // written with mutex_ held
};

// Bytes that count in an account as long as it exists. Used by one thread at a time.
class HostCharge {
 public:
  HostCharge() = default;
  ~HostCharge() { Reset(); }
  HostCharge(HostCharge&& other) noexcept { *this = std::move(other); }
  HostCharge& operator=(HostCharge&& other) noexcept;

  // Whether it counts, in this account or in some.
  bool IsIn(const HostAccount& account) const {
    return account_.get() == &account && opening_ == account.opening_.load();
  }
  bool Counts() const { return account_ != nullptr && IsIn(*account_); }
  // Whether it counted until its account was closed.
  bool IsOver() const { return account_ != nullptr && !IsIn(*account_); }
  // Whether it counts in the same sum as `account`.
  bool IsBeside(const HostAccount& account) const {
    return Counts() && account_->IsBeside(account);
  }

 private:
  friend class HostAccount;
  HostCharge(std::shared_ptr<HostAccount> account, uint64_t bytes, uint64_t opening)
      : account_(std::move(account)), bytes_(bytes), opening_(opening) {}
  void Reset();

  std::shared_ptr<HostAccount> account_;
  uint64_t bytes_ = 0;
  uint64_t opening_ = 0;
};

}  // namespace opserve::server
