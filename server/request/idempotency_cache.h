// Requests with an idempotency key, or with the identity that their client gave them: each is run
// once, and its repetitions get the same answer.
//
// While a request runs, repetitions wait for its end and share it, failure or not. A success is
// kept for a while; failures are not. Keys of requests in progress are never forgotten; their
// memory is bounded by the tenants' pending requests.
//
// Kept answers share a bounded memory. A tenant may use room that others leave, but when there is
// none, the tenant that has most for its weight loses its oldest answers: so a tenant that stays
// within its share (of the tenants that have answers, by weight) keeps its own, whatever others
// send. An answer for which no room can be made is not kept, and its receipt says so.
//
// A run that changes resident tensors must not be made twice. So room for its answer is taken
// before it is launched, it goes on when all callers want to leave, and its answer is kept for its
// whole lifetime. A tenant may have such answers within its share only.
//
// A client that numbers its requests says which answers it has: these are forgotten, so a long
// series of requests takes the memory of those that are under way. The client's record, which tells
// late repetitions from new requests, takes memory as an answer does, and stays for the lifetime of
// an answer after its last use.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/observability/tenant_amounts.h"
#include "server/request/given_request.h"
#include "server/request/request_digest.h"
#include "server/request/request_end.h"
#include "server/run/call_state.h"

namespace opserve::server {

// Thread-safe. Destroy it when every run has ended.
class IdempotencyCache {
 public:
  struct Options {
    // Of kept answers. Bounds their number as well: each counts its memory beside its results.
    uint64_t max_bytes = uint64_t{64} << 20;
    absl::Duration lifetime = absl::Minutes(10);  // of an answer, from the request's success
  };
  static constexpr size_t kMaxKeyBytes = 64;

  enum class Keeping {
    kWhileThereIsRoom,
    kForItsLifetime,  // of a run that changes tensors
  };

  using Answer = std::shared_ptr<const RequestAnswer>;

  struct Repeatable {
    uint32_t tenant = 0;
    uint32_t weight = 1;  // of the tenant; at least 1
    // One of the two, with the digest that tells whether the key is used for the same request.
    std::string key = {};
    RequestDigest digest = {};
    std::optional<RequestIdentity> identity = std::nullopt;
  };

  // A caller that waits for the end of a run.
  struct Place {
    uint64_t run = 0;
    uint64_t waiter = 0;
  };

  struct Begun {
    // If not null: kept; nothing to wait for. Not known: the run was made, and its answer is not
    // there any more.
    Answer answer;
    Place place;            // else the caller waits here
    bool is_first = false;  // and has to make the run: the cache knows of none
  };

  explicit IdempotencyCache(const Options& options) : options_(options) {}
  IdempotencyCache(const IdempotencyCache&) = delete;
  IdempotencyCache& operator=(const IdempotencyCache&) = delete;

  // `run_call` is the state that a run would have, should the caller be the first: it is cancelled
  // when nobody waits for the run any more. `on_end` is called by End, unless Leave comes first.
  //
  // kInvalidArgument: the key is too long, or was used for another request; the client has said
  // that it would not repeat the request. kResourceExhausted (reason "tenant_memory"): there is no
  // room for the client's record.
  absl::StatusOr<Begun> Begin(const Repeatable& request, std::shared_ptr<CallState> run_call,
                              OnRequestEnd on_end, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // What is remembered of a run.
  enum class Memory {
    kNothing,
    kThatItRan,  // of a request with an identity: a repetition gets an error instead of the answer
    kAnswer,
  };

  // Makes room for the answer of a run with `results` results of `result_bytes` in all. Called at
  // most once, before End, and for kForItsLifetime before the launch. Answers to requests with an
  // identity are kept for their lifetime in any case. kNothing: the answer takes more than a
  // quarter of the cache, or more room than can be made, or, for kForItsLifetime, more than is left
  // of the tenant's share. Of a request with an identity it is then remembered without its results,
  // if there is room for that.
  Memory Reserve(uint64_t run, size_t results, uint64_t result_bytes, Keeping keeping,
                 absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // The run has ended: tells all waiting callers, and keeps the answer if there is room reserved
  // for it. To be called once for every run.
  void End(uint64_t run, const RequestEnd& end, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);

  // The caller at `place` does not wait any more. True: it has left, and its on_end is never
  // called. False: on_end was called or will be; the last one stays, so that the run has a place to
  // report its end, but the run is cancelled, unless its answer is kept for its lifetime.
  bool Leave(const Place& place) ABSL_LOCKS_EXCLUDED(mutex_);

  // Taken by answers, kept or about to be.
  uint64_t used_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Of each tenant: kept answers and the memory they take; answers forgotten before their lifetime
  // had passed, and answers that were not kept, since the start.
  const TenantAmounts& entries() const { return entry_amounts_; }
  const TenantAmounts& bytes() const { return byte_amounts_; }
  const TenantAmounts& evictions() const { return evictions_; }
  const TenantAmounts& unremembered() const { return unremembered_; }

 private:
  using TenantKey = std::pair<uint32_t, std::string>;  // or a client's name
  struct ClientNumber {
    TenantKey client;
    uint64_t number = 0;
  };
  struct Kept {
    absl::Time until;
    TenantKey key;
    Keeping keeping = Keeping::kWhileThereIsRoom;
    std::optional<ClientNumber> number = std::nullopt;  // likewise as of a run
  };

  // The answer of a key or, before there is one, its run.
  struct Entry {
    RequestDigest digest;
    Answer answer;
    uint64_t run = 0;
    uint64_t bytes = 0;                         // of the answer
    std::list<Kept>::const_iterator kept = {};  // of the answer
  };
  struct Waiter {
    uint64_t number = 0;
    OnRequestEnd on_end;
  };
  struct Run {
    TenantKey key;
    uint32_t weight = 1;
    std::shared_ptr<CallState> call;
    std::vector<Waiter> waiters;
    uint64_t bytes = 0;  // reserved; 0: the answer is not to be kept
    Keeping keeping = Keeping::kWhileThereIsRoom;
    bool keeps_results = true;
    std::optional<ClientNumber> number = std::nullopt;  // of the request, if it has an identity
  };
  // A client that numbers its requests.
  struct NumberedClient {
    uint64_t answered_below = 0;
    absl::btree_set<uint64_t> kept;  // numbers whose answers are
    uint32_t runs = 0;
    absl::Time until;                      // while it has no runs
    std::list<TenantKey>::iterator place;  // in clients_by_use_
  };
  // A tenant that has answers.
  struct Account {
    uint32_t weight = 1;
    uint64_t bytes = 0;                                // of kept answers and reserved ones
    uint64_t pinned_bytes = 0;                         // of these, kept for their lifetime
    std::deque<std::list<Kept>::const_iterator> kept;  // while there is room; the oldest first
  };

  // The entry of a request, before which those that its client has the answers of are forgotten.
  // Errors: of Begin.
  absl::StatusOr<TenantKey> KeyOf(const Repeatable& request, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<NumberedClient*> FindOrAddClient(const TenantKey& name, uint32_t weight)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Use(NumberedClient* client, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void Expire(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes room of a tenant with this weight, if there is or can be made so much.
  bool TakeRoom(uint32_t tenant, uint32_t weight, uint64_t bytes, Keeping keeping)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets answers until there is room for `bytes` of a tenant with this weight; whether there is.
  bool MakeRoom(uint32_t tenant, uint32_t weight, uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The account that loses its oldest answer for `bytes` of `tenant`; null: none. `share`: bytes
  // that a tenant has for each unit of its weight.
  Account* Victim(uint32_t tenant, uint32_t weight, uint64_t bytes, double share)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Bytes that a tenant has for each unit of its weight, if `tenant` has answers, too.
  double Share(uint32_t tenant, uint32_t weight) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Forgets the oldest answer of an account, which has one that may go.
  void Forget(Account* account) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets an answer that its account does not name any more.
  void Erase(std::list<Kept>::const_iterator kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Subtracts from a tenant's account. No account may be used afterwards.
  void Subtract(uint32_t tenant, uint64_t bytes, Keeping keeping)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the key's entry is this run's. Not so if everybody left it: then the next one with the
  // key begins anew.
  bool IsKnown(const Run& run, uint64_t number) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Options options_;
  // Invariants, whenever mutex_ is free:
  //   (1) every entry either has an answer, and is in kept_ once, or names a run in runs_;
  //   (2) every run has a waiter;
  //   (3) used_bytes_ is the sum of the bytes of entries, runs and clients, and of accounts; at
  //       most max_bytes;
  //   (4) each element of kept_ that may go is in the account of its tenant, in the same order; an
  //       account has bytes.
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<TenantKey, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Run> runs_ ABSL_GUARDED_BY(mutex_);
  std::list<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // in the order of expiry
  absl::flat_hash_map<uint32_t, Account> accounts_ ABSL_GUARDED_BY(mutex_);  // by tenant
  absl::flat_hash_map<TenantKey, NumberedClient> clients_ ABSL_GUARDED_BY(mutex_);
  std::list<TenantKey> clients_by_use_ ABSL_GUARDED_BY(mutex_);  // the last one used at the end
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;  // given to a run or a waiter
  TenantAmounts entry_amounts_;
  TenantAmounts byte_amounts_;
  TenantAmounts evictions_;
  TenantAmounts unremembered_;
};

}  // namespace opserve::server
