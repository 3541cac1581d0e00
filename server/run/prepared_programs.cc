#include "server/run/prepared_programs.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/program/random_bytes.h"

namespace opserve::server {

std::shared_ptr<const PreparedProgram> PreparedPrograms::FindEqual(
    uint32_t tenant, const std::string& digest) const {
  absl::MutexLock lock(&mutex_);
  const auto account = accounts_.find(tenant);
  if (account == accounts_.end()) return nullptr;
  const auto found = account->second.programs.find(digest);
  return found == account->second.programs.end() ? nullptr : found->second.program;
}

absl::StatusOr<std::shared_ptr<const PreparedProgram>> PreparedPrograms::Made(
    absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make) const {
  OPSERVE_ASSIGN_OR_RETURN(PreparedProgram made, make());
  if (made.host_bytes() > limits_.max_bytes_per_tenant) {
    return MakeError(Reason::kTenantMemory,
                     absl::StrCat("the program takes ", made.host_bytes(),
                                  " bytes of host memory, at most ", limits_.max_bytes_per_tenant,
                                  " allowed for all of a tenant (--prepared_max_bytes_per_tenant)"),
                     /*pushback_ms=*/-1);
  }
  return std::make_shared<const PreparedProgram>(std::move(made));
}

PreparedPrograms::Account& PreparedPrograms::AccountOf(uint32_t tenant) {
  Account& account = accounts_[tenant];
  if (account.bytes == nullptr) {
    account.bytes = std::make_shared<HostSum>(limits_.max_bytes_per_tenant, all_bytes_);
  }
  return account;
}

void PreparedPrograms::Add(uint32_t tenant, Holder holder, bool is_used_last,
                           const std::shared_ptr<const PreparedProgram>& program) {
  Account& account = AccountOf(tenant);
  Shared& shared = account.programs[holder.digest];
  // Not there, or released in between.
  if (shared.program == nullptr) {
    shared.program = program;
    program->program().host_account->Open(account.bytes, program->host_bytes());
  }
  // Another caller may have prepared an equal one in between.
  holder.program = shared.program;
  ++shared.handles;
  const auto added = account.holders.insert(
      is_used_last ? account.holders.begin() : account.holders.end(), std::move(holder));
  ++all_handles_;
  by_handle_.emplace(added->handle, std::pair(tenant, added));
}

absl::StatusOr<PreparedPrograms::Added> PreparedPrograms::Prepare(
    uint32_t tenant, const std::string& digest, absl::Duration lease, absl::Time now,
    absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make) {
  std::shared_ptr<const PreparedProgram> program = FindEqual(tenant, digest);
  const bool is_shared = program != nullptr;
  // Without the lock: a large program takes its time.
  if (!is_shared) {
    OPSERVE_ASSIGN_OR_RETURN(program, Made(make));
  }
  Holder holder;
  holder.handle = RandomBytes(kHandleBytes);
  holder.digest = digest;
  holder.lease = lease > absl::ZeroDuration() ? lease : limits_.default_lease;
  holder.lease_end = now + holder.lease;
  Forgotten forgotten;
  absl::MutexLock lock(&mutex_);
  Add(tenant, std::move(holder), /*is_used_last=*/true, program);
  Account& account = AccountOf(tenant);
  const Holder& added = account.holders.front();
  Count(is_shared ? kShared : kPrepared);
  // At least the new handle stays, even with a limit of 0.
  while (account.holders.size() > std::max<uint32_t>(limits_.max_programs_per_tenant, 1) ||
         (!account.bytes->HasRoom(0) && account.programs.size() > 1)) {
    Forget(account, std::prev(account.holders.end()), &forgotten);
    Count(kEvicted);
  }
  return Added{.handle = added.handle,
               .lease_end = added.lease_end,
               .is_shared = is_shared,
               .program = added.program};
}

absl::Status PreparedPrograms::Adopt(uint32_t tenant, const std::string& digest,
                                     std::vector<Arrived> handles,
                                     absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make) {
  std::shared_ptr<const PreparedProgram> program = FindEqual(tenant, digest);
  if (program == nullptr) {
    OPSERVE_ASSIGN_OR_RETURN(program, Made(make));
  }
  absl::MutexLock lock(&mutex_);
  for (const Arrived& arrived : handles) {
    const auto found = by_handle_.find(arrived.handle);
    if (found == by_handle_.end()) continue;
    if (found->second.first != tenant || found->second.second->digest != digest) {
      return absl::AlreadyExistsError("a handle is of another program");
    }
  }
  std::erase_if(handles, [this](const Arrived& arrived) {
    mutex_.AssertHeld();
    return by_handle_.contains(arrived.handle);
  });
  if (handles.empty()) return absl::OkStatus();
  size_t holders = handles.size();
  uint64_t bytes = program->host_bytes();
  if (const auto account = accounts_.find(tenant); account != accounts_.end()) {
    holders += account->second.holders.size();
    bytes =
        account->second.bytes->bytes() + (account->second.programs.contains(digest) ? 0 : bytes);
  }
  if (holders > limits_.max_programs_per_tenant || bytes > limits_.max_bytes_per_tenant) {
    return MakeError(
        Reason::kTenantMemory,
        absl::StrCat("the tenant would have ", holders, " handles and ", bytes,
                     " bytes of prepared programs, at most ", limits_.max_programs_per_tenant,
                     " and ", limits_.max_bytes_per_tenant,
                     " allowed (--prepared_max_programs_per_tenant, "
                     "--prepared_max_bytes_per_tenant)"),
        /*pushback_ms=*/-1);
  }
  for (const Arrived& arrived : handles) {
    // Behind those that callers of this daemon use.
    Add(tenant,
        {.handle = arrived.handle,
         .digest = digest,
         .lease = arrived.lease,
         .lease_end = arrived.lease_end,
         .program = nullptr},
        /*is_used_last=*/false, program);
  }
  Count(kAdopted, handles.size());
  return absl::OkStatus();
}

std::vector<PreparedPrograms::Departing> PreparedPrograms::ProgramsToDeposit(absl::Time now) const {
  std::vector<Departing> departing;
  absl::flat_hash_map<const PreparedProgram*, size_t> places;
  absl::MutexLock lock(&mutex_);
  for (const auto& [tenant, account] : accounts_) {
    for (const Holder& holder : account.holders) {
      if (holder.lease_end <= now || holder.program->request().empty()) continue;
      const auto [place, is_new] = places.try_emplace(holder.program.get(), departing.size());
      if (is_new) departing.push_back({.tenant = tenant, .program = holder.program, .handles = {}});
      departing[place->second].handles.push_back({holder.handle, holder.lease, holder.lease_end});
    }
  }
  return departing;
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
  return {static_cast<uint32_t>(account->second.holders.size()), account->second.bytes->bytes()};
}

PreparedPrograms::Usage PreparedPrograms::UsageOfAll() const {
  // Without the lock, for the metrics: both are atomic, and need not be of the same moment.
  return {.handles = all_handles_, .bytes = all_bytes_->bytes()};
}

void PreparedPrograms::Forget(Account& account, Holders::iterator holder, Forgotten* forgotten) {
  const auto shared = account.programs.find(holder->digest);
  if (--shared->second.handles == 0) {
    shared->second.program->program().host_account->Close();
    account.programs.erase(shared);
  }
  by_handle_.erase(holder->handle);
  // Calls that were bound keep the program.
  forgotten->push_back(std::move(holder->program));
  account.holders.erase(holder);
  --all_handles_;
}

}  // namespace opserve::server
