// Prepared programs of all tenants, by the handles that their calls name.
//
// A handle is 128 random bits and belongs to one caller; handles of equal programs of one tenant
// share the program. A tenant's handles are bounded in number and in the bytes of their programs,
// which grow with the executors and captured runs that calls leave behind: the handle that was not
// used for the longest time makes room.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/program/host_account.h"
#include "server/run/prepared_program.h"

namespace opserve::server {

struct PreparedLimits {
  uint32_t max_programs_per_tenant = 1024;              // handles
  uint64_t max_bytes_per_tenant = uint64_t{256} << 20;  // host memory of their programs
  absl::Duration default_lease = absl::Minutes(10);
  // Callers of Prepare check a lease against it; the class itself takes any.
  absl::Duration max_lease = absl::Hours(1);
  // Programs keep their requests, so that they can be deposited at another daemon.
  bool are_deposited = false;
};

// Thread-safe.
class PreparedPrograms {
 public:
  // How handles came and went, and lookups that found none.
  enum Event { kPrepared, kShared, kReleased, kExpired, kEvicted, kUnknown, kAdopted };
  static constexpr size_t kEvents = 7;
  static constexpr size_t kHandleBytes = 16;

  struct Usage {
    uint32_t handles = 0;
    uint64_t bytes = 0;  // of their programs, each counted once, executors and captured runs too
  };

  struct Added {
    std::string handle;
    absl::Time lease_end;
    bool is_shared = false;  // `make` was not called
    std::shared_ptr<const PreparedProgram> program;
  };

  // A handle of another daemon's, which ends.
  struct Arrived {
    std::string handle;
    absl::Duration lease;
    absl::Time lease_end;
  };
  // A program with all handles of one tenant that name it.
  struct Departing {
    uint32_t tenant = 0;
    std::shared_ptr<const PreparedProgram> program;
    std::vector<Arrived> handles;
  };

  explicit PreparedPrograms(const PreparedLimits& limits) : limits_(limits) {}

  // A new handle of the tenant's program with this digest, which `make` makes if there is none.
  // `lease`: zero for the default. kResourceExhausted (reason "tenant_memory", pushback -1): the
  // program alone takes more than a tenant may have. Else `make`'s errors.
  absl::StatusOr<Added> Prepare(uint32_t tenant, const std::string& digest, absl::Duration lease,
                                absl::Time now,
                                absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes `handles`, none twice, for the tenant's program with this digest, which `make` makes if
  // there is none. Those that are here already stay as they are. All or none. Nothing makes room
  // for them: kResourceExhausted (reason "tenant_memory") beyond a limit. kAlreadyExists: a handle
  // is another tenant's, or of another program. Else `make`'s errors.
  absl::Status Adopt(uint32_t tenant, const std::string& digest, std::vector<Arrived> handles,
                     absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Programs that keep their requests, with their handles whose lease lasts. Of each
  // tenant, the one that was used last comes first.
  std::vector<Departing> ProgramsToDeposit(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins the handle's lease anew. kNotFound (reason "program_unknown").
  absl::StatusOr<std::shared_ptr<const PreparedProgram>> Find(uint32_t tenant,
                                                              absl::string_view handle,
                                                              absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets those of `handles` that are the tenant's; returns how many that were.
  uint32_t Release(uint32_t tenant, absl::Span<const std::string> handles)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets handles whose lease has ended.
  void Expire(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  Usage UsageOfTenant(uint32_t tenant) const ABSL_LOCKS_EXCLUDED(mutex_);
  Usage UsageOfAll() const;  // takes no lock
  uint64_t count(Event event) const { return counts_[event].load(std::memory_order_relaxed); }
  const PreparedLimits& limits() const { return limits_; }

 private:
  struct Shared {
    std::shared_ptr<const PreparedProgram> program;
    uint32_t handles = 0;
  };
  using SharedPrograms = absl::flat_hash_map<std::string, Shared>;  // by digest
  struct Holder {
    std::string handle;
    std::string digest;
    absl::Duration lease;
    absl::Time lease_end;
    std::shared_ptr<const PreparedProgram> program;
  };
  using Holders = std::list<Holder>;  // most recently used first
  struct Account {
    Holders holders;
    SharedPrograms programs;
    std::shared_ptr<HostSum> bytes;
  };
  // Programs leave the books with mutex_ held, and memory after it.
  using Forgotten = std::list<std::shared_ptr<const PreparedProgram>>;

  void Count(Event event, uint64_t by = 1) {
    counts_[event].fetch_add(by, std::memory_order_relaxed);
  }
  std::shared_ptr<const PreparedProgram> FindEqual(uint32_t tenant, const std::string& digest) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `make`'s program, for which a tenant has room.
  absl::StatusOr<std::shared_ptr<const PreparedProgram>> Made(
      absl::FunctionRef<absl::StatusOr<PreparedProgram>()> make) const;
  // Adds a handle, which is new, of `program` or of an equal one that is there.
  void Add(uint32_t tenant, Holder holder, bool is_used_last,
           const std::shared_ptr<const PreparedProgram>& program)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Account& AccountOf(uint32_t tenant) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Account& account, Holders::iterator holder, Forgotten* forgotten)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const PreparedLimits limits_;
  std::array<std::atomic<uint64_t>, kEvents> counts_ = {};
  mutable absl::Mutex mutex_;
  std::map<uint32_t, Account> accounts_ ABSL_GUARDED_BY(mutex_);  // by tenant
  // Sums over accounts_.
  std::atomic<uint32_t> all_handles_ = 0;  // written with mutex_ held
  const std::shared_ptr<HostSum> all_bytes_ = std::make_shared<HostSum>();
  absl::flat_hash_map<std::string, std::pair<uint32_t, Holders::iterator>> by_handle_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
