#include "server/execution/prepared_programs.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/execution/random_bytes.h"

namespace opserve::server {
namespace {

constexpr size_t kProgramHandleBytes = 16;

}  // namespace

std::shared_ptr<const PreparedProgram> PreparedPrograms::FindEqual(
    uint32_t tenant, const std::string& digest) const {
  absl::MutexLock lock(&mutex_);
  const auto account = accounts_.find(tenant);
  if (account == accounts_.end()) return nullptr;
  const auto found = account->second.programs.find(digest);
  return found == account->second.programs.end() ? nullptr : found->second.program;
}

absl::StatusOr<PreparedPrograms::Added> PreparedPrograms::Prepare(
    uint32_t tenant, const std::string& digest, absl::Duration lease, absl::Time now,
    absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make) {
  std::shared_ptr<const PreparedProgram> program = FindEqual(tenant, digest);
  const bool is_shared = program != nullptr;
  if (!is_shared) {
    // Without the lock: a large program takes its time.
    OPSERVE_ASSIGN_OR_RETURN(PreparedProgram made, make());
    if (made.host_bytes() > limits_.max_bytes_per_tenant) {
      return MakeError(
          Reason::kTenantMemory,
          absl::StrCat("the program takes ", made.host_bytes(), " bytes of host memory, at most ",
                       limits_.max_bytes_per_tenant,
                       " allowed for all of a tenant (--prepared_max_bytes_per_tenant)"),
          /*pushback_ms=*/-1);
    }
    program = std::make_shared<const PreparedProgram>(std::move(made));
  }
  Holder holder;
  holder.handle = RandomBytes(kProgramHandleBytes);
  holder.digest = digest;
  holder.lease = lease > absl::ZeroDuration() ? lease : limits_.default_lease;
  holder.lease_end = now + holder.lease;
  Forgotten forgotten;
  absl::MutexLock lock(&mutex_);
  Account& account = accounts_[tenant];
  Shared& shared = account.programs[digest];
  // Not there, or released in between.
  if (shared.program == nullptr) {
    shared.program = program;
    account.bytes += program->host_bytes();
    all_bytes_ += program->host_bytes();
  }
  // Another caller may have prepared an equal one in between.
  holder.program = shared.program;
  ++shared.handles;
  const Added added{.handle = holder.handle,
                    .lease_end = holder.lease_end,
                    .is_shared = is_shared,
                    .host_bytes = holder.program->host_bytes()};
  account.holders.push_front(std::move(holder));
  ++all_handles_;
  by_handle_.emplace(added.handle, std::pair(tenant, account.holders.begin()));
  Count(is_shared ? kShared : kPrepared);
  // At least the new handle stays, even with a limit of 0.
  while (account.holders.size() > std::max<uint32_t>(limits_.max_programs_per_tenant, 1) ||
         account.bytes > limits_.max_bytes_per_tenant) {
    Forget(account, std::prev(account.holders.end()), &forgotten);
    Count(kEvicted);
  }
  return added;
}

absl::StatusOr<std::shared_ptr<const PreparedProgram>> PreparedPrograms::Find(
    uint32_t tenant, absl::string_view handle, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_handle_.find(handle);
  // That of another tenant is answered as one that never was.
  if (found == by_handle_.end() || found->second.first != tenant ||
      found->second.second->lease_end <= now) {
    Count(kUnknown);
    return MakeError(Reason::kProgramUnknown, "no prepared program has this handle");
  }
  Account& account = accounts_.find(tenant)->second;
  const Holders::iterator holder = found->second.second;
  // Each call renews the lease.
  holder->lease_end = now + holder->lease;
  account.holders.splice(account.holders.begin(), account.holders, holder);
  return holder->program;
}

uint32_t PreparedPrograms::Release(uint32_t tenant, absl::Span<const std::string> handles) {
  Forgotten forgotten;
  // An account without handles goes at the next Expire.
  absl::MutexLock lock(&mutex_);
  for (const std::string& handle : handles) {
    const auto found = by_handle_.find(handle);
    // Another tenant's handle is passed over like an unknown one, so an answer tells nothing about
    // it.
    if (found == by_handle_.end() || found->second.first != tenant) continue;
    Forget(accounts_.find(tenant)->second, found->second.second, &forgotten);
  }
  Count(kReleased, forgotten.size());
  return static_cast<uint32_t>(forgotten.size());
}

void PreparedPrograms::Expire(absl::Time now) {
  Forgotten forgotten;
  absl::MutexLock lock(&mutex_);
  for (auto account = accounts_.begin(); account != accounts_.end();) {
    Holders& holders = account->second.holders;
    for (auto holder = holders.begin(); holder != holders.end();) {
      // Advanced first, since Forget removes the element.
      const auto current = holder++;
      if (current->lease_end <= now) Forget(account->second, current, &forgotten);
    }
    account = holders.empty() ? accounts_.erase(account) : std::next(account);
  }
  Count(kExpired, forgotten.size());
}

PreparedPrograms::Usage PreparedPrograms::UsageOfTenant(uint32_t tenant) const {
  absl::MutexLock lock(&mutex_);
  const auto account = accounts_.find(tenant);
  if (account == accounts_.end()) return {};
  return {static_cast<uint32_t>(account->second.holders.size()), account->second.bytes};
}

PreparedPrograms::Usage PreparedPrograms::UsageOfAll() const {
  // Without the lock, for the metrics: both are atomic, and need not be of the same moment.
  return {.handles = all_handles_, .bytes = all_bytes_};
}

void PreparedPrograms::Forget(Account& account, Holders::iterator holder, Forgotten* forgotten) {
  const auto shared = account.programs.find(holder->digest);
  if (--shared->second.handles == 0) {
    account.bytes -= shared->second.program->host_bytes();
    all_bytes_ -= shared->second.program->host_bytes();
    account.programs.erase(shared);
  }
  by_handle_.erase(holder->handle);
  // Calls that were bound keep the program.
  forgotten->push_back(std::move(holder->program));
  account.holders.erase(holder);
  --all_handles_;
}

}  // namespace opserve::server
