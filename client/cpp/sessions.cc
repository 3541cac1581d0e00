#include "client/cpp/sessions.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"

namespace opserve {

std::optional<Sessions::Place> Sessions::Enter(SessionRequest* request,
                                               const grpc::ByteBuffer* body, absl::Time deadline,
                                               bool is_poller) {
  const bool is_large = body->Length() > Session::kWhole;
  // A large one may fit no call: if the session has just ended, it goes to the next one.
  for (int tries = is_large ? 2 : 1; tries > 0; --tries) {
    std::shared_ptr<Session> session = Current(is_large);
    if (session == nullptr) return std::nullopt;
    switch (session->PlaceFor(body->Length())) {
      case Session::Place::kNone:
        return std::nullopt;
      case Session::Place::kOver:
        Leave(session.get());
        continue;
      case Session::Place::kFree:
        break;
    }
    std::optional<Announcement> announcement;
    if (is_large) {
      announcement = Announcement::Of(*body);
      if (!announcement) return std::nullopt;
    }
    const uint64_t number = session->Enter(request, body, std::move(announcement), deadline,
                                           transport_.TraceParent(), is_poller);
    if (number != 0) return Place{std::move(session), number};
  }
  return std::nullopt;
}

std::shared_ptr<Session> Sessions::Current(bool is_large) {
  absl::MutexLock lock(&mutex_);
  // A program that makes one request is served best by a call.
  const bool is_first = !std::exchange(has_request_, true);
  const bool is_time = is_large || (!is_first && absl::Now() >= next_opening_);
  if (current_ == nullptr && is_time && !is_given_up_) {
    current_ = Open(Session::Purpose::kRequests);
    next_probe_ = absl::InfinitePast();
  }
  return current_;
}

std::shared_ptr<Session> Sessions::Open(Session::Purpose purpose) {
  auto session = std::make_shared<Session>(&transport_, &queue_, &poller_writes_, purpose,
                                           [this](Session* ended) { HandleEnd(ended); });
  sessions_.push_back(session);
  // With the mutex held, so that the end comes later.
  session->Begin();
  return session;
}

void Sessions::ProbeIfDue(absl::Time now) {
  if (current_ == nullptr || current_->daemon().empty()) return;
  if (probe_ != nullptr || is_given_up_ || now < next_probe_) return;
  next_probe_ = now + kProbeInterval;
  probe_ = Open(Session::Purpose::kProbe).get();
}

void Sessions::HandleProbe(const Session& probe) {
  std::shared_ptr<Session> left;
  {
    absl::MutexLock lock(&mutex_);
    probe_ = nullptr;
    if (probe.is_useless()) is_given_up_ = true;
    // The daemon of a session that has ended may have been succeeded by another.
    if (current_ == nullptr || current_->PlaceFor(0) != Session::Place::kFree) return;
    if (probe.daemon().empty() || probe.daemon() == current_->daemon()) return;
    is_given_up_ = true;
    left.swap(current_);
  }
  left->Leave();
}

void Sessions::Leave(const Session* session) {
  absl::MutexLock lock(&mutex_);
  if (session->is_useless()) is_given_up_ = true;
  if (current_.get() != session) return;
  current_ = nullptr;
  if (session->has_answered()) wait_ = kShortestWait;
  next_opening_ = absl::Now() + wait_;
}

void Sessions::HandleEnd(Session* session) {
  const bool is_probe = session->purpose() == Session::Purpose::kProbe;
  if (is_probe) {
    HandleProbe(*session);
  } else {
    Leave(session);
  }
  absl::MutexLock lock(&mutex_);
  if (!is_probe && !session->has_answered()) wait_ = std::min(2 * wait_, kLongestWait);
  std::erase_if(sessions_, [session](const auto& known) { return known.get() == session; });
}

void Sessions::Write() {
  std::shared_ptr<Session> current;
  {
    absl::MutexLock lock(&mutex_);
    current = current_;
  }
  if (current != nullptr) current->Write();
}

void Sessions::Tend(absl::Time now) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    absl::MutexLock lock(&mutex_);
    ProbeIfDue(now);
    sessions = sessions_;
  }
  for (const std::shared_ptr<Session>& session : sessions) session->EndOverdue(now);
}

void Sessions::Stop() {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    absl::MutexLock lock(&mutex_);
    is_given_up_ = true;
    sessions = sessions_;
  }
  for (const std::shared_ptr<Session>& session : sessions) session->Stop();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Sessions::IsIdle));
}

}  // namespace opserve
