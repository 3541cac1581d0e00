#include "server/telemetry/http/http_listener.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/net/peer_name.h"

namespace opserve::server {
namespace {

constexpr int kGzipFormat = 16;  // added to the size of the window
constexpr int kMemoryLevel = 8;  // zlib's default

// `text` in the gzip format, at the speed that suits a scrape.
std::string Gzip(absl::string_view text) {
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzipFormat, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();  // the only reason there is
  }
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  deflate(&stream, Z_FINISH);  // ends at once, since there is room for all of it
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

constexpr absl::Duration kHeadTimeout = absl::Seconds(2);
constexpr absl::Duration kAnswerTimeout = absl::Seconds(10);
// How long a client may take to close its side after the answer.
constexpr absl::Duration kLingerTimeout = absl::Seconds(1);
constexpr size_t kMaxHeadBytes = 16384;

constexpr ConnectionSlots::Limits kConnections = {
    .total = 256, .per_listener = 256, .per_user = 256, .per_address = 64, .silence = kHeadTimeout};
// An answer is some MiB where there are many tenants.
constexpr ConnectionSlots::Limits kAnswers = {
    .total = 16, .per_listener = 16, .per_user = 16, .per_address = 8, .silence = kAnswerTimeout};

// Ids of events that concern no connection; connections' ids count from 1.
constexpr uint64_t kStop = UINT64_MAX;
constexpr uint64_t kFirstSocket = uint64_t{1} << 63;

constexpr absl::string_view kPlainText = "text/plain; charset=utf-8";

const char* ReasonPhrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

// The listener reports every rank as it changes.
std::optional<ConnectionSlots::Rank> AsReported(ConnectionSlots::Id /*id*/) {
  return ConnectionSlots::Rank::kSilent;
}

struct Response {
  HttpListener::Content content;
  std::string content_type = std::string(kPlainText);
  std::string security_policy = HttpListener::Page().security_policy;
};

Response Refusal(int status, absl::string_view why) {
  return {.content = {.status = status, .body = absl::StrCat(why, "\n")}};
}

// HEAD gets the headers of GET, its length included, and no body (RFC 9110, 9.3.2). Browsers are
// told not to guess the type, to keep no copy and to send no referrer.
std::string ToText(Response response, bool has_body, bool is_compressed) {
  const int status = response.content.status;
  if (is_compressed) response.content.body = Gzip(response.content.body);
  std::string text = absl::StrCat(
      "HTTP/1.1 ", status, " ", ReasonPhrase(status), "\r\nDate: ",
      absl::FormatTime("%a, %d %b %E4Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()),
      "\r\nConnection: close\r\nContent-Type: ", response.content_type,
      "\r\nContent-Security-Policy: ", response.security_policy,
      "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer"
      "\r\nCache-Control: no-store",
      status == 302 ? absl::StrCat("\r\nLocation: ", response.content.location) : "",
      status == 405 ? "\r\nAllow: GET, HEAD" : "",
      is_compressed ? "\r\nContent-Encoding: gzip" : "",
      "\r\nContent-Length: ", response.content.body.size(), "\r\n\r\n");
  if (has_body) text += response.content.body;
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpListener>> HttpListener::Start(Listener bound, HttpHosts hosts,
                                                                  std::vector<Page> pages) {
  auto listener = std::unique_ptr<HttpListener>(
      new HttpListener(std::move(bound), std::move(hosts), std::move(pages)));
  OPSERVE_RETURN_IF_ERROR(listener->Watch());
  listener->thread_ = std::thread([listener = listener.get()] { listener->Run(); });
  return listener;
}

HttpListener::HttpListener(Listener listener, HttpHosts hosts, std::vector<Page> pages)
    : listener_(std::move(listener)),
      hosts_(std::move(hosts)),
      pages_(std::move(pages)),
      slots_(kConnections),
      answers_(kAnswers) {}

absl::Status HttpListener::Watch() {
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  bool is_complete = spare_.Open();
  const auto watch = [&](int fd, uint64_t about) {
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = about}};
    is_complete = is_complete && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  };
  watch(stop_.get(), kStop);
  for (size_t i = 0; i < listener_.sockets().size(); ++i) {
    watch(listener_.sockets()[i].get(), kFirstSocket + i);
  }
  if (is_complete) return absl::OkStatus();
  return absl::ResourceExhaustedError("no more file descriptors to serve pages with");
}

HttpListener::~HttpListener() {
  if (!thread_.joinable()) return;
  // Nobody reads it, so the thread sees it whenever it looks.
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void HttpListener::Run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    // Deadlines need no more precision than this.
    const int wait_ms = connections_.empty() ? -1 : 250;
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), wait_ms);
    const absl::Time now = absl::Now();
    for (int i = 0; i < count; ++i) {
      const uint64_t about = events[i].data.u64;
      if (about == kStop) return;
      if (about >= kFirstSocket) {
        Accept(listener_.sockets()[about - kFirstSocket].get(), now);
        continue;
      }
      const auto found = connections_.find(about);
      if (found == connections_.end()) continue;  // ended by an event before this one
      if (!Serve(about, found->second, now)) {
        ConnectionCounters::Count(counters_.closed);
        End(about);
      }
    }
    EndOverdue(now);
    counters_.SetNow(slots_.CountsOf(0), /*of_waiting=*/0);
  }
}

void HttpListener::Accept(int socket, absl::Time now) {
  FileDescriptor fd(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.get() < 0) {
    // Left in the backlog, the connection would wake this thread again and again.
    if (errno == EMFILE || errno == ENFILE) {
      spare_.TurnAway(socket);
      ConnectionCounters::Count(counters_.refused_for_descriptors);
    }
    return;
  }
  ConnectionSlots::Peer peer = PeerOf(fd.get());
  const ConnectionSlots::Decision decision = slots_.Admit(/*listener=*/0, peer, now, &AsReported);
  for (const ConnectionSlots::Id evicted : decision.evicted) {
    ConnectionCounters::Count(counters_.evicted);
    End(evicted);
  }
  // Never refused: all connections of this listener can be evicted.
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = decision.id}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    slots_.Remove(decision.id);
    return;
  }
  connections_.emplace(decision.id, Connection{.socket = std::move(fd), .peer = std::move(peer)});
}

bool HttpListener::Serve(ConnectionSlots::Id id, Connection& connection, absl::Time now) {
  return connection.answer.empty() ? Read(id, connection, now) : Write(id, connection, now);
}

bool HttpListener::Read(ConnectionSlots::Id id, Connection& connection, absl::Time now) {
  std::array<char, 4096> buffer;
  const ssize_t size = recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  // Nothing there after all: another event comes.
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  if (size == 0) return false;
  // Read and thrown away, since a socket that is closed with unread input resets the connection.
  if (connection.is_answered) return true;
  connection.received.append(buffer.data(), static_cast<size_t>(size));
  const size_t end = connection.received.find("\r\n\r\n");
  if (end == std::string::npos && connection.received.size() <= kMaxHeadBytes) return true;
  connection.answer = end == std::string::npos || end > kMaxHeadBytes
                          ? ToText(Refusal(431, "the head is too large"), /*has_body=*/true,
                                   /*is_compressed=*/false)
                          : AnswerTo(absl::string_view(connection.received).substr(0, end));
  // clear() would keep the memory. The answer is treated likewise.
  connection.received = std::string();
  connection.is_answered = true;
  connection.end_by = now + kAnswerTimeout;
  slots_.Raise(id, ConnectionSlots::Rank::kAnswered);
  // Most answers fit the socket's buffer, so that no further event is needed.
  return Write(id, connection, now);
}

// Called again for each EPOLLOUT until all is sent. The slots of `answers_` bound the memory of
// answers that clients read slowly.
bool HttpListener::Write(ConnectionSlots::Id id, Connection& connection, absl::Time now) {
  const ssize_t size = send(connection.socket.get(), connection.answer.data() + connection.sent,
                            connection.answer.size() - connection.sent, MSG_NOSIGNAL);
  if (size < 0 && errno != EAGAIN && errno != EINTR) return false;
  if (size > 0) connection.sent += static_cast<size_t>(size);
  if (connection.sent == connection.answer.size()) {
    if (connection.answer_id != 0) {
      answers_.Remove(connection.answer_id);
      connection_of_answer_.erase(std::exchange(connection.answer_id, 0));
    }
    connection.answer = std::string();
    // To close now would reset the connection if the client has sent more than was read, and take
    // the answer away from it.
    shutdown(connection.socket.get(), SHUT_WR);
    connection.end_by = now + kLingerTimeout;
  } else if (connection.answer_id == 0) {
    // The client reads more slowly than it is written to, so the rest has to be kept for it.
    const ConnectionSlots::Decision decision = answers_.Admit(0, connection.peer, now, &AsReported);
    connection.answer_id = decision.id;
    connection_of_answer_[decision.id] = id;
    // Never refused, as in Accept.
    for (const ConnectionSlots::Id evicted : decision.evicted) {
      ConnectionCounters::Count(counters_.evicted);
      End(connection_of_answer_.at(evicted));
    }
  }
  epoll_event event = {.events = connection.answer.empty() ? EPOLLIN : EPOLLOUT,
                       .data = {.u64 = id}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event) == 0;
}

std::string HttpListener::AnswerTo(absl::string_view head) const {
  const std::optional<HttpRequest> request = ParseHttpRequest(head);
  if (!request) return ToText(Refusal(400, "not a request of HTTP/1"), true, false);
  const bool has_body = request->method != "HEAD";
  const auto page = std::find_if(pages_.begin(), pages_.end(),
                                 [&](const Page& p) { return p.path == request->path; });
  Response response;
  // A page of another site could make a browser ask under that site's name (DNS rebinding).
  if (!hosts_.Allows(request->host)) {
    response = Refusal(403, "unknown host: use an address, or name the host in --metrics_host");
  } else if (page == pages_.end()) {
    response = Refusal(404, "not found");
  } else if (has_body && request->method != "GET") {
    response = Refusal(405, "only GET and HEAD");
  } else {
    response = {page->content(), page->content_type, page->security_policy};
  }
  return ToText(std::move(response), has_body, request->takes_gzip);
}

void HttpListener::End(ConnectionSlots::Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (found->second.answer_id != 0) {
    answers_.Remove(found->second.answer_id);
    connection_of_answer_.erase(found->second.answer_id);
  }
  slots_.Remove(id);
  connections_.erase(found);
}

// Two kinds: those without a whole head in time, which slots_ knows, and those that are answered
// and do not end.
void HttpListener::EndOverdue(absl::Time now) {
  for (const ConnectionSlots::Id id : slots_.TakeOverdue(now, &AsReported)) {
    ConnectionCounters::Count(counters_.silent);
    End(id);
  }
  std::vector<ConnectionSlots::Id> slow;
  for (const auto& [id, connection] : connections_) {
    if (connection.end_by <= now) slow.push_back(id);
  }
  for (const ConnectionSlots::Id id : slow) {
    // One that has its whole answer and keeps its side open has not stalled.
    ConnectionCounters::Count(connections_.at(id).answer.empty() ? counters_.closed
                                                                 : counters_.stalled);
    End(id);
  }
}

}  // namespace opserve::server
