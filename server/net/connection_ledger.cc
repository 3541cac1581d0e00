#include "server/net/connection_ledger.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/net/connection_pacer.h"
#include "server/net/socket_functions.h"
#include "server/net/socket_table.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// gRPC frees a connection's memory soon after its end, on threads of its own.
constexpr absl::Duration kUntilMemoryIsFree = absl::Seconds(5);
// As many lines as the limiter may admit at once; further ones are only counted.
constexpr size_t kMaxUnlogged = LineLimiter::kBurst;

bool IsUnix(int fd) {
  int domain = 0;
  socklen_t size = sizeof(domain);
  return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

// Of the client at the other end, for the log.
std::string ClientOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  // getpeername gives the ledger's own name for the connection.
  if (RealPeerName(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "gone";
  char text[INET6_ADDRSTRLEN] = {};
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  ucred user = {};
  size = sizeof(user);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) return "gone";
  return absl::StrCat("uid ", user.uid);
}

}  // namespace

ConnectionLedger::ConnectionLedger(const Options& options)
    : has_tls_(options.has_tls),
      reports_(std::make_shared<Reports>()),
      rules_(options.trusts_peers
                 ? nullptr
                 // The guards share the reports, as they may outlive the ledger.
                 : std::make_shared<GuardRules>(
                       GuardRules{.limits = options.limits,
                                  .paced_limits = PacedLimits(options.limits),
                                  .ended = [reports = reports_](
                                               int fd, const std::string& peer,
                                               Flood flood) { Report(*reports, fd, peer, flood); },
                                  .unserved =
                                      [reports = reports_](const std::string& peer, double price) {
                                        absl::MutexLock lock(&reports->mutex);
                                        if (Waste* const waste = FindOrMakeWaste(*reports, peer)) {
                                          waste->unserved += price;
                                        }
                                      }})),
      thread_([this] { Run(); }) {}

ConnectionLedger::~ConnectionLedger() {
  {
    absl::MutexLock lock(&reports_->mutex);
    reports_->is_closing = true;
  }
  thread_.join();
}

void ConnectionLedger::Register(int fd, std::string peer, bool is_paced) {
  SocketEntry* const entry = socket_table::FindOrMake(fd);
  if (entry == nullptr) {
    shutdown(fd, SHUT_RDWR);
    return;
  }
  const bool is_unix = IsUnix(fd);
  // An earlier connection of this number may have used the entry: all of it begins anew.
  entry->is_unix.store(is_unix);
  entry->guard.Begin(
      rules_, {.is_tls = has_tls_ && !is_unix, .is_paced = is_paced, .peer = std::move(peer)});
  // Last: this opens the entry for lookups by name.
  entry->facts.Begin();
}

void ConnectionLedger::Forget(int fd) {
  if (SocketEntry* const entry = socket_table::Find(fd)) entry->facts.End();
}

void ConnectionLedger::Excuse(int fd) {
  if (SocketEntry* const entry = socket_table::Find(fd)) entry->guard.Excuse();
}

void ConnectionLedger::MarkIdentified(absl::string_view peer) {
  const std::optional<SocketName> name = socket_table::ParsePeer(peer);
  SocketEntry* const entry = name ? socket_table::Find(name->fd) : nullptr;
  if (entry != nullptr) entry->facts.AddIdentifiedCall(name->generation);
}

void ConnectionLedger::MarkHealthChecked(absl::string_view peer) {
  const std::optional<SocketName> name = socket_table::ParsePeer(peer);
  SocketEntry* const entry = name ? socket_table::Find(name->fd) : nullptr;
  if (entry != nullptr) entry->facts.SetHealthChecked(name->generation);
}

bool ConnectionLedger::IsIdentified(int fd) const {
  const SocketEntry* const entry = socket_table::Find(fd);
  return entry != nullptr && entry->facts.is_identified();
}

bool ConnectionLedger::HasHadAnswer(int fd) const {
  const SocketEntry* const entry = socket_table::Find(fd);
  return entry != nullptr && (entry->facts.is_identified() || entry->facts.is_health_checked());
}

bool ConnectionLedger::IsIdentified(absl::string_view peer) const {
  const std::optional<SocketName> name = socket_table::ParsePeer(peer);
  return name && IsIdentified(name->fd) &&
         // The number may be another connection's by now.
         socket_table::Find(name->fd)->facts.generation() == name->generation;
}

uint64_t ConnectionLedger::ended(Flood flood) const {
  return reports_->ended[static_cast<size_t>(flood)].load(std::memory_order_relaxed);
}

std::vector<ConnectionLedger::Waste> ConnectionLedger::TakeWaste() {
  absl::MutexLock lock(&reports_->mutex);
  return std::exchange(reports_->waste, {});
}

ConnectionLedger::Waste* ConnectionLedger::FindOrMakeWaste(Reports& reports,
                                                           const std::string& peer) {
  const auto known = std::find_if(reports.waste.begin(), reports.waste.end(),
                                  [&](const Waste& waste) { return waste.peer == peer; });
  if (known != reports.waste.end()) return &*known;
  // A flood from ever new peers must not grow the list.
  if (peer.empty() || reports.waste.size() >= ConnectionPacer::kMaxPeers) return nullptr;
  return &reports.waste.emplace_back(Waste{.peer = peer});
}

void ConnectionLedger::Report(Reports& reports, int fd, const std::string& peer, Flood flood) {
  reports.ended[static_cast<size_t>(flood)].fetch_add(1, std::memory_order_relaxed);
  absl::MutexLock lock(&reports.mutex);
  if (Waste* const waste = FindOrMakeWaste(reports, peer)) waste->flooded_at = absl::Now();
  reports.has_news = true;
  if (reports.unlogged.size() < kMaxUnlogged) {
    reports.unlogged.push_back({flood, ClientOf(fd)});
  } else {
    ++reports.suppressed;
  }
}

void ConnectionLedger::Run() {
  // On a thread of its own, since reports come from gRPC's threads, which must not wait for a trim.
  LineLimiter lines(LimitedEvent::kConnectionEnded);
  absl::Time trim_at = absl::InfiniteFuture();
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(reports_->mutex) {
    return reports_->has_news || reports_->is_closing;
  };
  for (;;) {
    std::vector<End> ends;
    uint64_t suppressed = 0;
    {
      absl::MutexLock lock(&reports_->mutex);
      reports_->mutex.AwaitWithDeadline(absl::Condition(&has_work), trim_at);
      if (reports_->is_closing) return;
      // The first of several floods sets the time.
      if (reports_->has_news) trim_at = std::min(trim_at, absl::Now() + kUntilMemoryIsFree);
      reports_->has_news = false;
      ends.swap(reports_->unlogged);
      suppressed = std::exchange(reports_->suppressed, 0);
    }
    // Lines that there was no room to keep count as left out, too.
    lines.AddLeftOut(suppressed);
    for (const End& end : ends) {
      if (!lines.Admit(LogSeverity::kWarning, absl::Now())) continue;
      lines.Write(LogSeverity::kWarning, "connection_ended",
                  {{"flood", std::string(FloodName(end.flood))}, {"client", end.client}});
    }
    if (absl::Now() >= trim_at) {
      // The daemon keeps freed memory for its next messages; memory for a flood goes back instead.
      malloc_trim(0);
      trim_at = absl::InfiniteFuture();
    }
  }
}

}  // namespace opserve::server
