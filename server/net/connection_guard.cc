#include "server/net/connection_guard.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace opserve::server {
namespace {

// Rough costs of a connection and of a TLS handshake, in refused streams.
constexpr double kPriceOfConnection = 10;
constexpr double kPriceOfHandshake = 40;

}  // namespace

void ConnectionGuard::Begin(std::shared_ptr<const GuardRules> rules, Connection connection) {
  absl::MutexLock lock(&mutex_);
  rules_ = std::move(rules);
  connection_ = std::move(connection);
  if (rules_ != nullptr) {
    inspector_.emplace(connection_.is_paced ? rules_->paced_limits : rules_->limits,
                       absl::GetCurrentTimeNanos());
  }
  is_excused_ = false;
  hello_ = ClientHelloReader();
  sent_bytes_.store(0, std::memory_order_relaxed);
  awaits_session_.store(false, std::memory_order_relaxed);
  has_ended_.store(false, std::memory_order_release);
}

bool ConnectionGuard::Received(int fd, const ConnectionFacts& facts, const msghdr& message,
                               size_t size) {
  absl::MutexLock lock(&mutex_);
  if (has_ended()) return false;
  if (rules_ == nullptr) return true;
  // After its hello the bytes of TLS are judged when they are decrypted.
  if (connection_.is_tls && hello_.state() == ClientHelloReader::State::kDone) return true;
  if (!connection_.is_tls) Advance(facts);
  Flood flood = Flood::kNone;
  // The buffers may be larger than the bytes that came.
  for (size_t i = 0; i < message.msg_iovlen && size > 0 && flood == Flood::kNone; ++i) {
    const iovec& piece = message.msg_iov[i];
    const size_t count = std::min(piece.iov_len, size);
    size -= count;
    const absl::string_view bytes(static_cast<const char*>(piece.iov_base), count);
    if (!connection_.is_tls) {
      flood = inspector_->Read(bytes);
    } else if (hello_.Read(bytes) == ClientHelloReader::State::kMalformed) {
      flood = Flood::kMalformed;
    }
  }
  // The session of the TLS library finds this connection by the hello's random.
  if (connection_.is_tls && hello_.state() == ClientHelloReader::State::kDone) {
    awaits_session_.store(true, std::memory_order_release);
  }
  return Judge(fd, flood);
}

bool ConnectionGuard::Decrypted(int fd, const ConnectionFacts& facts, absl::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  if (has_ended()) return false;
  if (rules_ == nullptr) return true;
  Advance(facts);
  return Judge(fd, inspector_->Read(bytes));
}

bool ConnectionGuard::Claims(const ClientRandom& random) {
  if (!awaits_session_.load(std::memory_order_acquire)) return false;
  absl::MutexLock lock(&mutex_);
  if (hello_.state() != ClientHelloReader::State::kDone || hello_.random() != random) return false;
  // The first session that asks has it.
  return awaits_session_.exchange(false);
}

void ConnectionGuard::Excuse() {
  absl::MutexLock lock(&mutex_);
  is_excused_ = true;
}

void ConnectionGuard::Closes(const ConnectionFacts& facts) {
  absl::MutexLock lock(&mutex_);
  if (rules_ == nullptr || has_ended() || is_excused_ || facts.is_identified()) return;
  ReportUnserved();
}

void ConnectionGuard::ReportUnserved() {
  rules_->unserved(connection_.peer, kPriceOfConnection +
                                         (connection_.is_tls ? kPriceOfHandshake : 0) +
                                         static_cast<double>(inspector_->streams()));
}

void ConnectionGuard::Advance(const ConnectionFacts& facts) {
  inspector_->Advance({.now_ns = absl::GetCurrentTimeNanos(),
                       .is_identified = facts.is_identified(),
                       .identified_calls = facts.identified_calls(),
                       .sent_bytes = sent_bytes_.load(std::memory_order_relaxed)});
}

bool ConnectionGuard::Judge(int fd, Flood flood) {
  if (flood == Flood::kNone) return true;
  has_ended_.store(true, std::memory_order_release);
  // A peer without HTTP/2 is a probe, most likely, and is not remembered as a flooder.
  rules_->ended(fd, inspector_->has_preface() ? connection_.peer : "", flood);
  if (!inspector_->has_preface()) ReportUnserved();
  // A reset also drops the data waiting in the socket's buffers.
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  shutdown(fd, SHUT_RDWR);
  return false;
}

}  // namespace opserve::server
