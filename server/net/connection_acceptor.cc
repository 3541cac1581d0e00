#include "server/net/connection_acceptor.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "absl/time/clock.h"
#include "server/net/peer_name.h"

namespace opserve::server {
namespace {

// The system takes twice as much, and as much of the kernel's memory for each connection at most.
constexpr int kUnixSendBufferBytes = 1 << 20;

constexpr absl::Duration kTakenPeriod = absl::Milliseconds(1);
// Period of the search for connections that may have ended without an event.
constexpr absl::Duration kSweepPeriod = absl::Seconds(1);

// Limit on connections of one listener that were ended here but not yet closed by gRPC. gRPC lags
// behind in a flood, and its backlog must not grow without end.
constexpr size_t kMaxLeaving = 256;

// A client of gRPC's awaits the daemon's settings before its first call: until then it sends its
// own, or the beginning of a TLS handshake. A flood does not wait.
constexpr int kQuietBytes = 4096;

bool IsQuiet(int fd) {
  int unread = 0;
  return ioctl(fd, SIOCINQ, &unread) == 0 && unread <= kQuietBytes;
}

// Ids of events that concern no connection; connections' ids count from 1.
constexpr uint64_t kStopEvent = UINT64_MAX;
constexpr uint64_t kFirstSocketEvent = uint64_t{1} << 63;

bool IsOpen(const SocketName& socket) {
  const SocketEntry* const entry = socket_table::Find(socket.fd);
  return entry != nullptr && entry->facts.is_open() &&
         entry->facts.generation() == socket.generation;
}

// A call shows its tenant when all of its message is there, which over a slow network takes longer
// than a connection may be silent. So one that has received this much is not silent, although it
// can still be evicted: more is in no handshake, and a flood gains nothing that a health check
// would not give it for less.
constexpr uint64_t kMessageBytes = 32 << 10;

bool IsReceivingMessage(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
         info.tcpi_bytes_received >= kMessageBytes;
}

template <size_t size>
uint64_t Sum(const std::array<std::atomic<uint64_t>, size>& counters) {
  return std::accumulate(counters.begin(), counters.end(), uint64_t{0});
}

}  // namespace

void ConnectionAcceptor::Add(Listener listener, std::unique_ptr<ConnectionGate> gate) {
  ConnectionCounters& counters = listener.address().is_unix ? unix_counters_ : tcp_counters_;
  doors_.push_back(
      std::make_unique<Door>(Door{std::move(listener), std::move(gate), counters, {}, 0}));
}

absl::Status ConnectionAcceptor::Start() {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  hold_ = FileDescriptor(fcntl(stop_.get(), F_DUPFD_CLOEXEC, 0));
  bool is_complete = epoll_.get() >= 0 && hold_.get() >= 0 && spare_.Open();
  const auto watch = [&](int fd, uint64_t about) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = about}};
    is_complete = is_complete && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  watch(stop_.get(), kStopEvent);
  for (size_t number = 0; number < doors_.size(); ++number) {
    for (const FileDescriptor& socket : doors_[number]->listener->sockets()) {
      // Counted over all doors: the number leads from the event to the socket, and to its door.
      watch(socket.get(), kFirstSocketEvent + sockets_.size());
      sockets_.emplace_back(socket.get(), number);
    }
  }
  if (!is_complete) {
    return absl::ResourceExhaustedError("no more file descriptors to accept connections with");
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
  // gRPC never had these, so they are closed here.
  while (!waiting_.empty()) Forget(waiting_.begin()->first);
  PublishCounts();
  for (const std::unique_ptr<Door>& door : doors_) door->listener.reset();
}

void ConnectionAcceptor::AwaitTaken(absl::Time deadline) const {
  // No event tells that a peer has read everything. The wait is short, and happens once, at the
  // end.
  while (!IsTaken() && absl::Now() < deadline) absl::SleepFor(kTakenPeriod);
}

// SIOCOUTQ counts bytes a Unix socket's peer has not read, or a TCP peer has not confirmed.
bool ConnectionAcceptor::IsTaken() const {
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    const SocketName& socket = connection.second.socket;
    int unsent = 0;
    return !IsOpen(socket) || ioctl(socket.fd, SIOCOUTQ, &unsent) != 0 || unsent == 0;
  });
}

void ConnectionAcceptor::EndConnections() {
  for (const auto& [id, connection] : connections_) {
    ShutDown(connection, /*discards_unsent=*/false);
  }
}

uint32_t ConnectionAcceptor::connections() const {
  uint32_t sum = 0;
  for (const auto* counters : {&unix_counters_, &tcp_counters_}) {
    for (const auto& count : counters->now) sum += count.load(std::memory_order_relaxed);
    sum += counters->waiting.load(std::memory_order_relaxed);
  }
  return sum;
}

uint64_t ConnectionAcceptor::rejected() const {
  return Sum(unix_counters_.refused) + Sum(tcp_counters_.refused) +
         unix_counters_.refused_for_descriptors + tcp_counters_.refused_for_descriptors +
         unix_counters_.refused_for_pace + tcp_counters_.refused_for_pace;
}

uint64_t ConnectionAcceptor::stalled() const {
  return unix_counters_.stalled + tcp_counters_.stalled;
}

void ConnectionAcceptor::Run() {
  std::array<epoll_event, 64> events;
  // A full socket is noticed up to one period late, and ended up to one more late: together the
  // quarter that Options grants.
  const absl::Duration stall_period = options_.stall_timeout / 8;
  const absl::Duration sweep_period = std::min(kSweepPeriod, stall_period);
  absl::Time next_look = absl::Now() + stall_period;
  absl::Time next_sweep = absl::Now() + sweep_period;
  for (;;) {
    const absl::Time next =
        std::min({next_look, next_sweep, slots_.NextOverdue(), pacer_.NextDue()});
    const int64_t wait_ms = absl::ToInt64Milliseconds(next - absl::Now());
    // Rounded up, since a thread that wakes a moment too early would find nothing due and spin.
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(),
                                 static_cast<int>(std::max<int64_t>(wait_ms + 1, 0)));
    for (int i = 0; i < count; ++i) {
      const uint64_t about = events[i].data.u64;
      if (about == kStopEvent) return;
      if (about >= kFirstSocketEvent) {
        const auto [socket, number] = sockets_[about - kFirstSocketEvent];
        Accept(socket, number, absl::Now());
      } else {
        HandleEvent(about, events[i].events);
      }
    }
    const absl::Time now = absl::Now();
    EndOverdue(now);
    AdmitDue(now);
    if (now >= next_sweep) {
      Sweep();
      next_sweep = now + sweep_period;
    }
    if (now >= next_look) {
      EndStalled(now);
      next_look = now + stall_period;
    }
    PublishCounts();
  }
}

void ConnectionAcceptor::HandleEvent(Id id, uint32_t events) {
  // A connection that still waits is watched for its end alone.
  if (const auto waiting = waiting_.find(id); waiting != waiting_.end()) {
    ConnectionCounters::Count(waiting->second.door->counters.closed);
    return Forget(id);
  }
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;  // ended by an event before this one
  // Room: the peer reads again. EPOLLONESHOT has disarmed the event, so it is armed anew.
  if ((events & EPOLLOUT) != 0 && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0) {
    connection->second.full_since = absl::InfiniteFuture();
    Await(id, connection->second, EPOLL_CTL_MOD);
    return;
  }
  ConnectionCounters::Count(connection->second.door->counters.closed);
  Forget(id);
}

void ConnectionAcceptor::EndOverdue(absl::Time now) {
  for (const Id id : slots_.TakeOverdue(now, [this](Id one) { return RankOf(one); })) {
    End(id, &ConnectionCounters::silent);
  }
}

void ConnectionAcceptor::EndStalled(absl::Time now) {
  std::vector<pollfd> sockets;
  std::vector<Id> ids;
  for (const auto& [id, connection] : connections_) {
    // A number that is another socket's by now is found out by the sweep before it counts.
    sockets.push_back({connection.socket.fd, POLLOUT, 0});
    ids.push_back(id);
  }
  if (poll(sockets.data(), sockets.size(), /*timeout=*/0) < 0) return;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (sockets[i].revents != 0) continue;  // it has room, or its end is about to be reported
    Connection& connection = connections_.at(ids[i]);
    // From now on the event loop waits for room, which clears this.
    if (connection.full_since == absl::InfiniteFuture()) {
      connection.full_since = now;
      Await(ids[i], connection, EPOLL_CTL_MOD);
    } else if (now - connection.full_since >= options_.stall_timeout) {
      End(ids[i], &ConnectionCounters::stalled);
    }
  }
}

void ConnectionAcceptor::Sweep() {
  // Collected first, since Forget changes the map.
  std::vector<Id> over;
  for (const auto& [id, connection] : connections_) {
    if (const std::optional<ConnectionSlots::Rank> rank = RankOf(id)) {
      slots_.Raise(id, *rank);
    } else {
      over.push_back(id);
    }
  }
  for (const Id id : over) {
    ConnectionCounters::Count(connections_.at(id).door->counters.closed);
    Forget(id);
  }
}

void ConnectionAcceptor::PublishCounts() {
  std::array<uint32_t, ConnectionSlots::kNumRanks> unix_counts = {};
  std::array<uint32_t, ConnectionSlots::kNumRanks> tcp_counts = {};
  uint32_t unix_waiting = 0;
  uint32_t tcp_waiting = 0;
  for (size_t number = 0; number < doors_.size(); ++number) {
    const auto counts = slots_.CountsOf(number);
    const bool is_unix = doors_[number]->listener->address().is_unix;
    auto& sum = is_unix ? unix_counts : tcp_counts;
    for (size_t rank = 0; rank < counts.size(); ++rank) sum[rank] += counts[rank];
    const uint32_t waiting = doors_[number]->waiting;
    // They have slots as silent ones, and are counted apart here.
    sum[static_cast<size_t>(ConnectionSlots::Rank::kSilent)] -= waiting;
    (is_unix ? unix_waiting : tcp_waiting) += waiting;
  }
  unix_counters_.SetNow(unix_counts, unix_waiting);
  tcp_counters_.SetNow(tcp_counts, tcp_waiting);
}

std::optional<ConnectionSlots::Rank> ConnectionAcceptor::RankOf(Id id) const {
  if (waiting_.contains(id)) return ConnectionSlots::Rank::kSilent;
  const auto found = connections_.find(id);
  if (found == connections_.end() || !IsOpen(found->second.socket)) return std::nullopt;
  const int fd = found->second.socket.fd;
  if (options_.trusts_peers || ledger_.IsIdentified(fd)) return ConnectionSlots::Rank::kIdentified;
  return ledger_.HasHadAnswer(fd) || IsReceivingMessage(fd) ? ConnectionSlots::Rank::kAnswered
                                                            : ConnectionSlots::Rank::kSilent;
}

bool ConnectionAcceptor::IsLeavingFull(Door& door) {
  // Looked through only at the limit, so the usual case costs nothing.
  if (door.leaving.size() < kMaxLeaving) return false;
  std::erase_if(door.leaving, [](const SocketName& socket) { return !IsOpen(socket); });
  return door.leaving.size() >= kMaxLeaving;
}

void ConnectionAcceptor::ShutDown(const Connection& connection, bool discards_unsent) {
  // gRPC may close its descriptor at any moment, and the number would be another file's. So the
  // socket is given a second number first; then the connection is still there, or it never was the
  // one that is held.
  const int held = dup3(connection.socket.fd, hold_.get(), O_CLOEXEC);
  if (held >= 0 && IsOpen(connection.socket)) {
    ledger_.Excuse(connection.socket.fd);
    if (discards_unsent) {
      // The buffer's contents would otherwise outlive the connection.
      const linger at_once = {.l_onoff = 1, .l_linger = 0};
      setsockopt(held, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    shutdown(held, SHUT_RDWR);
  }
  // The hold gets its own file back, which closes the second number.
  dup3(stop_.get(), hold_.get(), O_CLOEXEC);
}

void ConnectionAcceptor::End(Id id, std::atomic<uint64_t> ConnectionCounters::*reason) {
  if (const auto waiting = waiting_.find(id); waiting != waiting_.end()) {
    // It was not read, so it had no chance to say anything.
    const bool is_evicted = reason == &ConnectionCounters::evicted;
    ConnectionCounters& counters = waiting->second.door->counters;
    ConnectionCounters::Count(is_evicted ? counters.evicted_waiting : counters.*reason);
  } else {
    const Connection& connection = connections_.at(id);
    ConnectionCounters::Count(connection.door->counters.*reason);
    ShutDown(connection, /*discards_unsent=*/true);
  }
  Forget(id);
}

void ConnectionAcceptor::Forget(Id id) {
  if (waiting_.contains(id)) {
    slots_.Remove(id);
    Dequeue(id);  // which closes it
    return;
  }
  const auto found = connections_.find(id);
  const Connection& connection = found->second;
  // gRPC has yet to close it, and its backlog of such connections is bounded.
  if (IsOpen(connection.socket) && !IsLeavingFull(*connection.door)) {
    connection.door->leaving.push_back(connection.socket);
  }
  slots_.Remove(id);
  connections_.erase(found);
}

void ConnectionAcceptor::Accept(int socket, size_t number, absl::Time now) {
  Door& door = *doors_[number];
  FileDescriptor fd(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) {
    if (errno == EMFILE || errno == ENFILE) {
      spare_.TurnAway(socket);
      ConnectionCounters::Count(door.counters.refused_for_descriptors);
    }
    return;
  }
  const auto refuse = [&door](ConnectionSlots::Limit limit) {
    ConnectionCounters::Count(door.counters.refused[static_cast<size_t>(limit)]);
  };
  // Each refusal closes the socket, when `fd` goes.
  if (IsLeavingFull(door)) return refuse(ConnectionSlots::Limit::kListener);
  const ConnectionSlots::Peer peer = PeerOf(fd.get());
  const ConnectionPacer::Turn turn = TurnOf(peer.name, now);
  if (turn == ConnectionPacer::Turn::kFull) {
    ConnectionCounters::Count(door.counters.refused_for_pace);
    return;
  }
  const ConnectionSlots::Decision decision =
      slots_.Admit(number, peer, now, [this](Id id) { return RankOf(id); });
  if (decision.refused) return refuse(*decision.refused);
  for (const Id id : decision.evicted) End(id, &ConnectionCounters::evicted);
  NewConnection connection = {std::move(fd), socket, &door, peer.name};
  if (turn == ConnectionPacer::Turn::kWait) {
    Enqueue(decision.id, std::move(connection));
  } else {
    HandOver(decision.id, std::move(connection), turn == ConnectionPacer::Turn::kPaced,
             EPOLL_CTL_ADD);
  }
}

ConnectionPacer::Turn ConnectionAcceptor::TurnOf(const std::string& peer, absl::Time now) {
  for (const ConnectionLedger::Waste& waste : ledger_.TakeWaste()) {
    if (waste.flooded_at > absl::InfinitePast()) pacer_.Remember(waste.peer, waste.flooded_at);
    if (waste.unserved > 0) pacer_.Charge(waste.peer, waste.unserved, now);
  }
  const ConnectionPacer::Turn turn = pacer_.Ask(peer, now);
  if (turn != ConnectionPacer::Turn::kFull) return turn;
  // Quiet connections enter first, so the oldest is usually a flood's. One look is enough: if each
  // new connection caused a search through all others, a flood would gain by it.
  const Id oldest = pacer_.OldestOf(peer);
  if (IsQuiet(waiting_.at(oldest).fd.get())) return turn;
  End(oldest, &ConnectionCounters::evicted);
  return ConnectionPacer::Turn::kWait;
}

void ConnectionAcceptor::Enqueue(Id id, NewConnection connection) {
  // For the end of the connection alone: it stays unread.
  epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd.get(), &event) != 0) {
    ConnectionCounters::Count(connection.door->counters.refused_for_descriptors);
    slots_.Remove(id);
    return;
  }
  ++connection.door->waiting;
  pacer_.Enqueue(connection.peer, id);
  waiting_.emplace(id, std::move(connection));
}

void ConnectionAcceptor::AdmitDue(absl::Time now) {
  const auto is_quiet = [this](Id id) { return IsQuiet(waiting_.at(id).fd.get()); };
  while (const std::optional<Id> id = pacer_.TakeDue(now, is_quiet)) {
    HandOver(*id, Dequeue(*id), /*is_paced=*/true, EPOLL_CTL_MOD);
  }
}

ConnectionAcceptor::NewConnection ConnectionAcceptor::Dequeue(Id id) {
  NewConnection connection = std::move(waiting_.extract(id).mapped());
  --connection.door->waiting;
  pacer_.Remove(connection.peer, id);
  return connection;
}

void ConnectionAcceptor::HandOver(Id id, NewConnection connection, bool is_paced, int operation) {
  const FileDescriptor& fd = connection.fd;
  Door& door = *connection.door;
  if (is_paced) ConnectionCounters::Count(door.counters.paced);
  if (door.listener->address().is_unix) {
    // Packaged systems give 208 KiB, which stops a large result many times on its way.
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kUnixSendBufferBytes,
               sizeof(kUnixSendBufferBytes));
  } else {
    // A small answer must not wait for the acknowledgement of the one before (Nagle).
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ledger_.Register(fd.get(), std::move(connection.peer), is_paced);
  const SocketEntry* const entry = socket_table::Find(fd.get());
  const Connection tracked = {
      .socket = {fd.get(), entry == nullptr ? 0 : entry->facts.generation()}, .door = &door};
  if (entry == nullptr || !Await(id, tracked, operation)) {
    ConnectionCounters::Count(door.counters.refused_for_descriptors);
    ledger_.Forget(fd.get());
    slots_.Remove(id);
    return;
  }
  // From here on the descriptor is gRPC's.
  connections_.emplace(id, tracked);
  GrpcAcceptor& acceptor = door.gate->For(fd.get());
  GrpcAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = connection.socket;
  parameters.fd = connection.fd.release();
  acceptor.HandleNewConnection(&parameters);
}

bool ConnectionAcceptor::Await(Id id, const Connection& connection, int operation) {
  const bool is_full = connection.full_since != absl::InfiniteFuture();
  epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data = {.u64 = id}};
  if (is_full) event.events |= EPOLLOUT;
  return epoll_ctl(epoll_.get(), operation, connection.socket.fd, &event) == 0;
}

}  // namespace opserve::server
