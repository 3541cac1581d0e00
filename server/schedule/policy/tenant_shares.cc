#include "server/schedule/policy/tenant_shares.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

constexpr int kFractionBits = 20;

}  // namespace

TenantShares::VirtualTime TenantShares::Scaled(absl::Duration time, uint32_t weight) {
  // Without a division of 128 bits, which would cost more than the rest.
  const int64_t ns = absl::ToInt64Nanoseconds(time);
  return (VirtualTime(ns / weight) << kFractionBits) + ((ns % weight) << kFractionBits) / weight;
}

TenantShares::VirtualTime TenantShares::Now() const {
  // Estimates that were too high have moved last_start_ too far, until they are put right.
  if (ordered_.empty()) return last_start_;
  return std::min(last_start_, ordered_.begin()->start);
}

void TenantShares::Insert(uint32_t tenant, Account* account, Place place) {
  account->place = place;
  // A new turn: among equals it goes behind those that are there.
  account->turn = ++turns_;
  waiting_weight_ += account->weight;
  if (place == Place::kReturned) {
    returned_.insert({account->turn, tenant});
    return;
  }
  ordered_.insert({account->start(), account->turn, tenant});
  ordered_weight_ += account->weight;
  ordered_sum_ += account->start() * account->weight;
}

void TenantShares::Erase(uint32_t tenant, Account* account) {
  if (account->place == Place::kAbsent) return;
  waiting_weight_ -= account->weight;
  if (account->place == Place::kReturned) {
    returned_.erase({account->turn, tenant});
  } else {
    ordered_.erase({account->start(), account->turn, tenant});
    ordered_weight_ -= account->weight;
    ordered_sum_ -= account->start() * account->weight;
  }
  account->place = Place::kAbsent;
}

absl::Status TenantShares::CheckWeight(uint32_t weight) {
  if (weight >= 1 && weight <= kMaxWeight) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a tenant's weight is ", weight, "; expected a value from 1 to ", kMaxWeight));
}

absl::Status TenantShares::SetWeight(uint32_t tenant, uint32_t weight) {
  OPSERVE_RETURN_IF_ERROR(CheckWeight(weight));
  Account& account = accounts_[tenant];
  // The difference may be negative; unsigned sums wrap and come out right.
  waiting_weight_ += account.place == Place::kAbsent ? 0 : weight - uint64_t{account.weight};
  if (account.place == Place::kOrdered) {
    ordered_weight_ += weight - uint64_t{account.weight};
    ordered_sum_ += account.start() * (VirtualTime(weight) - account.weight);
  }
  account.weight = weight;
  return absl::OkStatus();
}

void TenantShares::StartWaiting(uint32_t tenant) {
  Account& account = accounts_[tenant];
  if (account.place != Place::kAbsent) return;
  account.floor = Now();
  // One that is not ahead of the system's time goes before all others until its first task starts.
  Insert(tenant, &account, account.finish <= account.floor ? Place::kReturned : Place::kOrdered);
}

void TenantShares::StopWaiting(uint32_t tenant) {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end()) return;
  Erase(tenant, &found->second);
  SettleIfIdle();
}

std::optional<uint32_t> TenantShares::Next() const {
  if (!returned_.empty()) return returned_.begin()->tenant;
  if (!ordered_.empty()) return ordered_.begin()->tenant;
  return std::nullopt;
}

TenantShares::Charge TenantShares::Start(uint32_t tenant, absl::Duration estimate, bool waits_on) {
  Account& account = accounts_[tenant];
  // It did not wait in order, so its time begins with the system's.
  if (account.place != Place::kOrdered) account.floor = Now();
  last_start_ = account.start();
  Erase(tenant, &account);
  account.finish = last_start_ + Scaled(estimate, account.weight);
  // For the time when nothing runs: see SettleIfIdle.
  latest_finish_ = std::max(latest_finish_, account.finish);
  if (waits_on) Insert(tenant, &account, Place::kOrdered);
  ++account.running;
  ++running_;
  return {.tenant = tenant, .weight = account.weight, .estimate = estimate};
}

void TenantShares::Raise(absl::Duration so_far, Charge* charge) {
  Correct(*charge, so_far, &accounts_[charge->tenant]);
  charge->estimate = so_far;
}

void TenantShares::End(const Charge& charge, absl::Duration actual) {
  Account& account = accounts_[charge.tenant];
  Correct(charge, actual, &account);
  --account.running;
  --running_;
  SettleIfIdle();
}

void TenantShares::Correct(const Charge& charge, absl::Duration actual, Account* account) {
  const Place place = account->place;
  const VirtualTime finish =
      account->finish + Scaled(actual, charge.weight) - Scaled(charge.estimate, charge.weight);
  // The correction leaves it among those that go first.
  if (place == Place::kReturned && finish <= Now()) {
    account->finish = finish;  // keeps its turn
  } else {
    Erase(charge.tenant, account);
    account->finish = finish;
    // The correction has put it ahead, so it waits in order.
    if (place != Place::kAbsent) Insert(charge.tenant, account, Place::kOrdered);
  }
  latest_finish_ = std::max(latest_finish_, finish);
}

void TenantShares::SettleIfIdle() {
  // The next tenant starts level with the one that had most, so nobody owes anything.
  if (running_ == 0 && waiting_weight_ == 0) last_start_ = latest_finish_;
}

bool TenantShares::Forget(uint32_t tenant) {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end()) return true;
  const Account& account = found->second;
  if (account.place != Place::kAbsent || account.running > 0 || account.finish > Now()) {
    return false;
  }
  accounts_.erase(found);
  return true;
}

absl::Duration TenantShares::Lag(uint32_t tenant) const {
  const auto found = accounts_.find(tenant);
  if (found == accounts_.end() || found->second.place != Place::kOrdered) {
    return absl::ZeroDuration();
  }
  return LagOf(found->second);
}

void TenantShares::VisitLags(LagVisitor visit) const {
  for (const Ordered& ordered : ordered_) {
    visit(ordered.tenant, LagOf(accounts_.find(ordered.tenant)->second));
  }
}

absl::Duration TenantShares::LagOf(const Account& account) const {
  // Against the average of the tenants that wait, by weight.
  const VirtualTime behind = ordered_sum_ / ordered_weight_ - account.start();
  return absl::Nanoseconds(static_cast<int64_t>((behind * account.weight) >> kFractionBits));
}

uint32_t TenantShares::weight(uint32_t tenant) const {
  const auto found = accounts_.find(tenant);
  return found == accounts_.end() ? 1 : found->second.weight;
}

}  // namespace opserve::server
