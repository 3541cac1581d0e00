#include "server/request/idempotency_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// Memory of an answer beside the bytes of its results, from above: key, digest, bookkeeping and
// message objects; and of these for each result.
constexpr uint64_t kEntryBytes = 1 << 10;
constexpr uint64_t kResultBytes = 512;

// The key of a client's request.
std::string NumberKey(absl::string_view client, uint64_t number) {
  // A client's name has a fixed number of bytes, so no two pairs give the same key.
  return absl::StrCat("i", client, number);
}

// Of a run that was made.
std::shared_ptr<const RequestAnswer> ForgottenAnswer() {
  auto answer = std::make_shared<RequestAnswer>();
  answer->is_known = false;
  return answer;
}

}  // namespace

absl::StatusOr<IdempotencyCache::Begun> IdempotencyCache::Begin(const Repeatable& request,
                                                                std::shared_ptr<CallState> run_call,
                                                                OnRequestEnd on_end,
                                                                absl::Time now) {
  if (request.key.size() > kMaxKeyBytes) {
    return InvalidCall(
        "", "idempotency_key",
        absl::StrCat("it has ", request.key.size(), " bytes, at most ", kMaxKeyBytes, " allowed"),
        0);
  }
  absl::MutexLock lock(&mutex_);
  // There is no thread for it: answers and clients expire at the next use of the cache.
  Expire(now);
  OPSERVE_ASSIGN_OR_RETURN(TenantKey key, KeyOf(request, now));
  auto [entry, is_new] = entries_.try_emplace(key);
  if (!is_new && entry->second.digest != request.digest) {
    return InvalidCall("", "idempotency_key", "it was used for another request", 0);
  }
  // Kept: the caller has nothing to wait for.
  if (entry->second.answer != nullptr) return Begun{.answer = entry->second.answer, .place = {}};
  if (is_new) {
    // The first one: its caller makes the run. Others with the key wait for that run.
    entry->second.digest = request.digest;
    entry->second.run = ++last_number_;
    Run& run = runs_[entry->second.run];
    run.key = std::move(key);
    run.weight = request.weight;
    run.call = std::move(run_call);
    if (request.identity) {
      run.number = {{request.tenant, request.identity->client}, request.identity->number};
      ++clients_.find(run.number->client)->second.runs;
    }
  }
  const Place place = {.run = entry->second.run, .waiter = ++last_number_};
  runs_[place.run].waiters.push_back({place.waiter, std::move(on_end)});
  return Begun{.answer = nullptr, .place = place, .is_first = is_new};
}

IdempotencyCache::Memory IdempotencyCache::Reserve(uint64_t run, size_t results,
                                                   uint64_t result_bytes, Keeping keeping,
                                                   absl::Time now) {
  absl::MutexLock lock(&mutex_);
  Expire(now);
  Run& reserving = runs_[run];
  if (!IsKnown(reserving, run)) return Memory::kNothing;  // nobody would ask for the answer
  const uint32_t tenant = reserving.key.first;
  const uint64_t bytes_without_results = kEntryBytes + results * kResultBytes;
  // Numbered requests are never forgotten early: a repetition gets the answer, or learns that the
  // request ran.
  if (reserving.number) keeping = Keeping::kForItsLifetime;
  reserving.keeping = keeping;
  reserving.bytes = bytes_without_results + result_bytes;
  if (result_bytes <= options_.max_bytes / 4 &&
      TakeRoom(tenant, reserving.weight, reserving.bytes, keeping)) {
    return Memory::kAnswer;
  }
  unremembered_.Add(tenant, 1);
  reserving.keeps_results = false;
  // The results do not fit. That the request ran is small, and keeps it from running again.
  reserving.bytes = bytes_without_results;
  if (reserving.number && TakeRoom(tenant, reserving.weight, reserving.bytes, keeping)) {
    return Memory::kThatItRan;
  }
  reserving.bytes = 0;
  reserving.keeping = Keeping::kWhileThereIsRoom;
  return Memory::kNothing;
}

bool IdempotencyCache::TakeRoom(uint32_t tenant, uint32_t weight, uint64_t bytes, Keeping keeping) {
  const bool is_pinned = keeping == Keeping::kForItsLifetime;
  const auto own = accounts_.find(tenant);
  const uint64_t pinned = own == accounts_.end() ? 0 : own->second.pinned_bytes;
  const double room = Share(tenant, weight) * weight;
  // Answers that cannot be evicted are limited to the tenant's share, or a tenant could take the
  // cache for good.
  if (is_pinned && static_cast<double>(pinned + bytes) > room) return false;
  if (!MakeRoom(tenant, weight, bytes)) return false;
  Account& account = accounts_[tenant];
  account.weight = weight;
  account.bytes += bytes;
  if (is_pinned) account.pinned_bytes += bytes;
  used_bytes_ += bytes;
  return true;
}

absl::StatusOr<IdempotencyCache::TenantKey> IdempotencyCache::KeyOf(const Repeatable& request,
                                                                    absl::Time now) {
  // The first letter keeps keys and identities apart.
  if (!request.identity) return TenantKey(request.tenant, absl::StrCat("k", request.key));
  const RequestIdentity& identity = *request.identity;
  const TenantKey name(request.tenant, identity.client);
  OPSERVE_ASSIGN_OR_RETURN(NumberedClient* const client, FindOrAddClient(name, request.weight));
  if (identity.number < client->answered_below) {
    return InvalidCall("", "identity",
                       absl::StrCat("its client has said that it would repeat no request below ",
                                    client->answered_below, "; this is ", identity.number),
                       0);
  }
  // The client has these answers, and will not ask for them again.
  client->answered_below = std::max(client->answered_below, identity.answered_below);
  while (!client->kept.empty() && *client->kept.begin() < client->answered_below) {
    const TenantKey answered(request.tenant, NumberKey(identity.client, *client->kept.begin()));
    Erase(entries_.find(answered)->second.kept);
  }
  Use(client, now);
  return TenantKey(request.tenant, NumberKey(identity.client, identity.number));
}

absl::StatusOr<IdempotencyCache::NumberedClient*> IdempotencyCache::FindOrAddClient(
    const TenantKey& name, uint32_t weight) {
  const auto found = clients_.find(name);
  if (found != clients_.end()) return &found->second;
  if (!TakeRoom(name.first, weight, kEntryBytes, Keeping::kForItsLifetime)) {
    unremembered_.Add(name.first, 1);
    return MakeError(Reason::kTenantMemory,
                     "there is no room to remember the client's requests; nothing was done");
  }
  byte_amounts_.Add(name.first, kEntryBytes);
  NumberedClient& client = clients_[name];
  client.place = clients_by_use_.insert(clients_by_use_.end(), name);
  return &client;
}

void IdempotencyCache::Use(NumberedClient* client, absl::Time now) {
  client->until = now + options_.lifetime;
  clients_by_use_.splice(clients_by_use_.end(), clients_by_use_, client->place);
}

double IdempotencyCache::Share(uint32_t tenant, uint32_t weight) const {
  uint64_t weights = weight;
  for (const auto& [id, account] : accounts_) weights += id == tenant ? 0 : account.weight;
  return static_cast<double>(options_.max_bytes) / static_cast<double>(weights);
}

bool IdempotencyCache::MakeRoom(uint32_t tenant, uint32_t weight, uint64_t bytes) {
  // used_bytes_ is at most max_bytes, so the difference does not wrap.
  if (bytes <= options_.max_bytes - used_bytes_) return true;
  const double share = Share(tenant, weight);
  // No answer is forgotten in vain: the tenant's own ones and others' beyond their share must do.
  double room = static_cast<double>(options_.max_bytes - used_bytes_);
  for (const auto& [id, account] : accounts_) {
    const double kept_for_sure = id == tenant ? 0 : share * account.weight;
    const auto stays = std::max(kept_for_sure, static_cast<double>(account.pinned_bytes));
    room += std::max(static_cast<double>(account.bytes) - stays, 0.0);
  }
  if (static_cast<double>(bytes) > room) return false;
  while (bytes > options_.max_bytes - used_bytes_) {
    Account* victim = Victim(tenant, weight, bytes, share);
    if (victim == nullptr) return false;
    evictions_.Add(victim->kept.front()->key.first, 1);
    Forget(victim);
  }
  return true;
}

// The greater one for its weight: the tenant itself, with the new answer, or the greatest of the
// others. Of the others only those above their share lose answers, even if the tenant has none to
// lose.
IdempotencyCache::Account* IdempotencyCache::Victim(uint32_t tenant, uint32_t weight,
                                                    uint64_t bytes, double share) {
  Account* own = nullptr;
  Account* other = nullptr;
  double own_per_weight = static_cast<double>(bytes) / weight;
  double other_per_weight = share;
  for (auto& [id, account] : accounts_) {
    const double per_weight = static_cast<double>(account.bytes) / account.weight;
    if (id == tenant) {
      own_per_weight += static_cast<double>(account.bytes) / weight;
      own = account.kept.empty() ? nullptr : &account;
    } else if (!account.kept.empty() && per_weight > other_per_weight) {
      other = &account;
      other_per_weight = per_weight;
    }
  }
  const bool takes_own = own != nullptr && (other == nullptr || own_per_weight >= other_per_weight);
  return takes_own ? own : other;
}

void IdempotencyCache::End(uint64_t run, const RequestEnd& end, absl::Time now) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    auto node = runs_.extract(run);
    Run& ended = node.mapped();
    waiters = std::move(ended.waiters);
    const bool is_known = IsKnown(ended, run);
    NumberedClient* client = nullptr;
    if (ended.number) {
      client = &clients_.find(ended.number->client)->second;
      --client->runs;
      Use(client, now);
    }
    // During the run the client may have said that it asks for no answer below a later number.
    const bool is_wanted = client == nullptr || ended.number->number >= client->answered_below;
    if (end.status.ok() && is_known && is_wanted && ended.bytes > 0) {
      Entry& entry = entries_[ended.key];
      entry.answer = ended.keeps_results ? end.answer : ForgottenAnswer();
      entry.run = 0;
      entry.bytes = ended.bytes;
      const uint32_t tenant = ended.key.first;
      if (client != nullptr) client->kept.insert(ended.number->number);
      kept_.push_back(
          {now + options_.lifetime, std::move(ended.key), ended.keeping, std::move(ended.number)});
      entry.kept = std::prev(kept_.end());
      if (ended.keeping == Keeping::kWhileThereIsRoom) {
        accounts_[tenant].kept.push_back(entry.kept);
      }
      entry_amounts_.Add(tenant, 1);
      byte_amounts_.Add(tenant, entry.bytes);
    } else {
      // A failure, or an answer that nobody can ask for. A repetition runs anew.
      if (is_known) entries_.erase(ended.key);
      if (ended.bytes > 0) Subtract(ended.key.first, ended.bytes, ended.keeping);
    }
  }
  // Callers are told without the lock, which they may need.
  for (const Waiter& waiter : waiters) waiter.on_end(end);
}

bool IdempotencyCache::Leave(const Place& place) {
  Waiter gone;  // destroyed without the lock
  std::shared_ptr<CallState> abandoned;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = runs_.find(place.run);
    // The run has ended, and on_end was called or is being called.
    if (found == runs_.end()) return false;
    Run& run = found->second;
    const auto waiter =
        std::find_if(run.waiters.begin(), run.waiters.end(),
                     [&](const Waiter& waiter) { return waiter.number == place.waiter; });
    if (waiter == run.waiters.end()) return false;
    if (run.waiters.size() > 1) {
      gone = std::move(*waiter);
      run.waiters.erase(waiter);
      return true;
    }
    // The run goes on without callers, so that its effects have an answer.
    if (run.keeping == Keeping::kForItsLifetime) return false;
    // The run is about to be cancelled: the next caller with the key begins another one.
    if (IsKnown(run, place.run)) entries_.erase(run.key);
    abandoned = run.call;
  }
  // Without the lock, since the cancellation calls back.
  abandoned->Cancel();
  return false;
}

uint64_t IdempotencyCache::used_bytes() const {
  absl::MutexLock lock(&mutex_);
  return used_bytes_;
}

void IdempotencyCache::Expire(absl::Time now) {
  while (!kept_.empty() && kept_.front().until <= now) {
    // Accounts name only answers that may be evicted.
    if (kept_.front().keeping == Keeping::kForItsLifetime) {
      Erase(kept_.begin());
    } else {
      Forget(&accounts_.find(kept_.front().key.first)->second);
    }
  }
  while (!clients_by_use_.empty()) {
    const auto client = clients_.find(clients_by_use_.front());
    if (client->second.until > now) break;
    // The record must outlive the runs, which end in it.
    if (client->second.runs > 0) {
      Use(&client->second, now);
      continue;
    }
    const uint32_t tenant = client->first.first;
    clients_by_use_.pop_front();
    clients_.erase(client);
    byte_amounts_.Subtract(tenant, kEntryBytes);
    Subtract(tenant, kEntryBytes, Keeping::kForItsLifetime);
  }
}

void IdempotencyCache::Forget(Account* account) {
  const std::list<Kept>::const_iterator oldest = account->kept.front();
  account->kept.pop_front();
  Erase(oldest);
}

void IdempotencyCache::Erase(std::list<Kept>::const_iterator kept) {
  const auto entry = entries_.find(kept->key);
  const uint32_t tenant = kept->key.first;
  const uint64_t bytes = entry->second.bytes;
  const Keeping keeping = kept->keeping;
  // A client's record outlives its answers, so it is there.
  if (kept->number) clients_.find(kept->number->client)->second.kept.erase(kept->number->number);
  entries_.erase(entry);
  kept_.erase(kept);
  entry_amounts_.Subtract(tenant, 1);
  byte_amounts_.Subtract(tenant, bytes);
  Subtract(tenant, bytes, keeping);
}

void IdempotencyCache::Subtract(uint32_t tenant, uint64_t bytes, Keeping keeping) {
  used_bytes_ -= bytes;
  const auto account = accounts_.find(tenant);
  account->second.bytes -= bytes;
  if (keeping == Keeping::kForItsLifetime) account->second.pinned_bytes -= bytes;
  if (account->second.bytes == 0) accounts_.erase(account);
}

bool IdempotencyCache::IsKnown(const Run& run, uint64_t number) const {
  const auto entry = entries_.find(run.key);
  return entry != entries_.end() && entry->second.run == number;
}

}  // namespace opserve::server
