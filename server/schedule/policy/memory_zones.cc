#include "server/schedule/policy/memory_zones.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace opserve::server {

size_t MemoryZones::ClassOf(const Tenant& tenant, uint64_t bytes) {
  // Without any memory it counts as within, so that every tenant makes progress.
  const bool is_within = tenant.used == 0 || (tenant.used <= tenant.limits.soft &&
                                              bytes <= tenant.limits.soft - tenant.used);
  return is_within ? kWithin : kAbove;
}

uint64_t MemoryZones::NeedOf(const Tenant& tenant, uint64_t bytes) {
  // Bytes within the reservation cost the others nothing.
  const uint64_t reserved = tenant.limits.reserved;
  return std::max(tenant.used + bytes, reserved) - std::max(tenant.used, reserved);
}

void MemoryZones::Enlist(uint32_t id, const Tenant& tenant) {
  if (!tenant.waiting) return;
  const Waiting& waiting = *tenant.waiting;
  // At its hard limit it waits for its own memory; one that can never be served must not hold up
  // the others.
  if (!IsWithinHard(tenant, waiting.bytes) || !CanEverFit(id, waiting.bytes)) return;
  Class& list = classes_[ClassOf(tenant, waiting.bytes)];
  list.turns.insert({waiting.turn, id});
  if (!waiting.was_told) {
    list.untold.insert({NeedOf(tenant, waiting.bytes), waiting.turn, id});
  }
}

void MemoryZones::Delist(uint32_t id, const Tenant& tenant) {
  if (!tenant.waiting) return;
  const Waiting& waiting = *tenant.waiting;
  Class& list = classes_[ClassOf(tenant, waiting.bytes)];
  // Without effect for one that Enlist left out.
  list.turns.erase({waiting.turn, id});
  list.untold.erase({NeedOf(tenant, waiting.bytes), waiting.turn, id});
}

void MemoryZones::Change(uint32_t id, Tenant* tenant, const MemoryLimits& limits, uint64_t used) {
  Delist(id, *tenant);
  promised_ -= std::max(tenant->used, tenant->limits.reserved);
  used_ -= tenant->used;
  tenant->limits = limits;
  tenant->used = used;
  used_ += used;
  promised_ += std::max(used, limits.reserved);
  Enlist(id, *tenant);
}

absl::Status MemoryZones::SetLimits(uint32_t id, const MemoryLimits& limits) {
  if (limits.reserved > limits.soft || limits.soft > limits.hard) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory limits are ", limits.reserved, " bytes reserved, ", limits.soft, " soft and ",
        limits.hard, " hard; expected each to be at least the one before"));
  }
  const auto found = tenants_.find(id);
  const uint64_t others = reserved_ - (found == tenants_.end() ? 0 : found->second.limits.reserved);
  if (limits.reserved > capacity_ - others) {
    return absl::FailedPreconditionError(
        absl::StrCat(limits.reserved, " bytes cannot be reserved: ", others, " of ", capacity_,
                     " are reserved for other tenants"));
  }
  Tenant& tenant = tenants_[id];
  Change(id, &tenant, limits, tenant.used);
  SetReserved(others + limits.reserved);
  return absl::OkStatus();
}

void MemoryZones::SetReserved(uint64_t reserved) {
  // The sum decides for every waiting tenant whether it can ever be served.
  if (reserved == reserved_) return;
  reserved_ = reserved;
  for (const uint32_t id : waiting_) {
    const Tenant& tenant = tenants_.find(id)->second;
    Delist(id, tenant);
    Enlist(id, tenant);
  }
}

bool MemoryZones::MustLeaveToOthers(uint32_t id, const Tenant& tenant, uint64_t bytes) const {
  const size_t own = ClassOf(tenant, bytes);
  const auto& within = classes_[kWithin].turns;
  // Memory above soft limits is for times when no other tenant within its limit waits.
  if (own == kAbove && !within.empty() && (within.size() > 1 || within.begin()->tenant != id)) {
    return true;
  }
  const auto& turns = classes_[own].turns;
  // The first in turn was passed too often, so the memory is held for it.
  if (turns.empty() || turns.begin()->tenant == id) return false;
  return tenants_.find(turns.begin()->tenant)->second.waiting->passes >= kMostPasses;
}

bool MemoryZones::Fits(uint32_t id, const Tenant& tenant, uint64_t bytes) const {
  // A reservation that grew into lent memory promises more than there is, so the memory itself is
  // checked as well.
  if (!IsWithinHard(tenant, bytes) || bytes > capacity_ - used_) return false;
  const uint64_t need = NeedOf(tenant, bytes);
  // All of it is within the tenant's reservation.
  if (need == 0) return true;
  return need <= FreeUnreserved() && !MustLeaveToOthers(id, tenant, bytes);
}

bool MemoryZones::WouldFit(uint32_t id, uint64_t bytes) const {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? Fits(id, Tenant(), bytes) : Fits(id, found->second, bytes);
}

void MemoryZones::CountPass(uint32_t taker, size_t class_index) {
  const auto& turns = classes_[class_index].turns;
  if (turns.empty() || turns.begin()->tenant == taker) return;
  ++tenants_.find(turns.begin()->tenant)->second.waiting->passes;
}

bool MemoryZones::TryTake(uint32_t id, uint64_t bytes) {
  Tenant& tenant = tenants_[id];
  if (!Fits(id, tenant, bytes)) return false;
  // Memory of its own reservation takes nobody's turn.
  if (NeedOf(tenant, bytes) > 0) CountPass(id, ClassOf(tenant, bytes));
  Change(id, &tenant, tenant.limits, tenant.used + bytes);
  return true;
}

void MemoryZones::Give(uint32_t id, uint64_t bytes) {
  Tenant& tenant = tenants_[id];
  Change(id, &tenant, tenant.limits, tenant.used - bytes);
}

bool MemoryZones::IsAboveHardLimit(uint32_t id, uint64_t bytes) const {
  const auto found = tenants_.find(id);
  return bytes > (found == tenants_.end() ? MemoryLimits().hard : found->second.limits.hard);
}

bool MemoryZones::CanEverFit(uint32_t id, uint64_t bytes) const {
  const auto found = tenants_.find(id);
  const uint64_t own = found == tenants_.end() ? 0 : found->second.limits.reserved;
  return !IsAboveHardLimit(id, bytes) && bytes <= capacity_ - reserved_ + own;
}

void MemoryZones::Wait(uint32_t id, uint64_t bytes) {
  Tenant& tenant = tenants_[id];
  // Out of its place first, which depends on the bytes.
  Delist(id, tenant);
  if (!tenant.waiting) tenant.waiting = Waiting{.turn = ++turns_};
  waiting_.insert(id);
  tenant.waiting->bytes = bytes;
  tenant.waiting->was_told = false;
  Enlist(id, tenant);
}

void MemoryZones::StopWaiting(uint32_t id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end() || !found->second.waiting) return;
  Delist(id, found->second);
  found->second.waiting.reset();
  waiting_.erase(id);
}

std::optional<uint32_t> MemoryZones::NextThatFits() const {
  // Tenants within their soft limits come first.
  for (const Class& list : classes_) {
    if (list.untold.empty()) continue;
    // The longest waiter, if it fits; else the least need: if that does not fit, none does.
    for (const uint32_t id : {list.turns.begin()->tenant, list.untold.begin()->tenant}) {
      const Tenant& tenant = tenants_.find(id)->second;
      if (!tenant.waiting->was_told && Fits(id, tenant, tenant.waiting->bytes)) return id;
    }
  }
  return std::nullopt;
}

void MemoryZones::Tell(uint32_t id) {
  Tenant& tenant = tenants_.find(id)->second;
  Delist(id, tenant);
  tenant.waiting->was_told = true;
  Enlist(id, tenant);
}

bool MemoryZones::Forget(uint32_t id) {
  const auto found = tenants_.find(id);
  if (found == tenants_.end()) return true;
  const Tenant& tenant = found->second;
  if (tenant.used > 0 || tenant.waiting) return false;
  const uint64_t reserved = tenant.limits.reserved;
  // It has no memory, so only its reservation was promised.
  promised_ -= reserved;
  tenants_.erase(found);
  SetReserved(reserved_ - reserved);
  return true;
}

MemoryLimits MemoryZones::limits(uint32_t id) const {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? MemoryLimits() : found->second.limits;
}

uint64_t MemoryZones::used(uint32_t id) const {
  const auto found = tenants_.find(id);
  return found == tenants_.end() ? 0 : found->second.used;
}

}  // namespace opserve::server
