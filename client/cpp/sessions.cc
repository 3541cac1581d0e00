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
    for (const std::shared_ptr<Session>& session : Current(is_large)) {
      switch (session->PlaceFor(body->Length())) {
        case Session::Place::kNone:
          continue;
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
      if (number != 0) return Place{session, number};
    }
  }
  return std::nullopt;
}

Sessions::InTurn Sessions::Current(bool is_large) {
  absl::MutexLock lock(&mutex_);
  // A program that makes one request is served best by a call.
  const bool is_first = !std::exchange(has_request_, true);
  const bool is_time = is_large || (!is_first && absl::Now() >= next_opening_);
  if (current_.empty() && is_time && !is_given_up_) {
    current_.push_back(Open(/*is_probe=*/false));
    next_probe_ = absl::InfinitePast();
    probe_wait_ = FirstProbeWait();
    has_looked_ = false;
  }
  if (transport_.is_balanced() && !has_looked_ && !is_large) return {};
  InTurn in_turn = current_;
  if (in_turn.size() > 1) {
    std::rotate(in_turn.begin(), in_turn.begin() + ++next_turn_ % in_turn.size(), in_turn.end());
    // One whose daemon cannot serve is left at the next Tend, and until then the last to be asked:
    // each refusal costs a repetition, of which there are few.
    std::stable_partition(in_turn.begin(), in_turn.end(),
                          [](const auto& session) { return !session->is_unavailable(); });
  }
  return in_turn;
}

std::shared_ptr<Session> Sessions::Open(bool is_probe) {
  auto session = std::make_shared<Session>(
      &transport_, &queue_, &poller_writes_,
      Session::Handlers{.opened = [this](Session* opened) { HandleOpened(opened); },
                        .received = [this](Session* received) { received_ = received; },
                        .ended = [this](Session* ended) { HandleEnd(ended); }});
  known_.push_back({session, is_probe});
  // With the mutex held, so that the end comes later.
  session->Begin();
  return session;
}

void Sessions::ProbeIfDue(absl::Time now) {
  if (current_.empty() || current_.front()->daemon().empty()) return;
  if (probe_ != nullptr || is_given_up_ || now < next_probe_) return;
  probe_ = Open(/*is_probe=*/true).get();
}

void Sessions::HandleOpened(Session* session) {
  bool is_kept = true;
  {
    absl::MutexLock lock(&mutex_);
    if (session == probe_) {
      probe_ = nullptr;
      is_kept = KeepProbe(session);
      if (!is_kept) EndProbe();
    }
    ProbeIfDue(absl::Now());
  }
  if (!is_kept) session->Leave();
}

bool Sessions::KeepProbe(const Session* probe) {
  if (probe->daemon().empty() || is_given_up_ || avoided_.contains(probe->daemon())) return false;
  for (const std::shared_ptr<Session>& session : current_) {
    if (session->daemon() == probe->daemon()) return false;
  }
  Known& known = *Find(probe);
  known.is_probe = false;
  current_.push_back(known.session);
  probes_in_a_row_ = 0;
  probe_wait_ = FirstProbeWait();
  return true;
}

std::vector<Sessions::Known>::iterator Sessions::Find(const Session* session) {
  return std::find_if(known_.begin(), known_.end(),
                      [session](const Known& known) { return known.session.get() == session; });
}

// As many as there are sessions, so that where calls go round, all daemons are met.
void Sessions::EndProbe() {
  if (++probes_in_a_row_ < current_.size()) return;
  probes_in_a_row_ = 0;
  has_looked_ = true;
  next_probe_ = absl::Now() + probe_wait_;
  probe_wait_ = std::min(2 * probe_wait_, kProbeInterval);
}

void Sessions::Leave(const Session* session) {
  InTurn left;
  {
    absl::MutexLock lock(&mutex_);
    if (session->is_useless()) {
      is_given_up_ = true;
      left.swap(current_);
    }
    const auto found = std::find_if(current_.begin(), current_.end(),
                                    [session](const auto& one) { return one.get() == session; });
    if (found != current_.end()) {
      current_.erase(found);
      if (session->has_answered()) wait_ = kShortestWait;
      if (current_.empty()) next_opening_ = absl::Now() + wait_;
    }
  }
  for (const std::shared_ptr<Session>& one : left) one->Leave();
}

void Sessions::HandleEnd(Session* session) {
  Leave(session);
  absl::MutexLock lock(&mutex_);
  if (session == probe_) {
    probe_ = nullptr;
    EndProbe();
    ProbeIfDue(absl::Now());
  }
  const auto known = Find(session);
  if (!known->is_probe && !session->has_answered()) wait_ = std::min(2 * wait_, kLongestWait);
  known_.erase(known);
}

void Sessions::Write() {
  InTurn current;
  {
    absl::MutexLock lock(&mutex_);
    current = current_;
  }
  for (const std::shared_ptr<Session>& session : current) session->Write();
}

void Sessions::ReadOn() {
  if (Session* const session = std::exchange(received_, nullptr)) session->ReadOn();
}

void Sessions::Tend(absl::Time now) {
  std::vector<std::shared_ptr<Session>> sessions;
  InTurn left;
  {
    absl::MutexLock lock(&mutex_);
    absl::erase_if(avoided_, [now](const auto& avoided) { return avoided.second < now; });
    for (auto session = current_.begin(); session != current_.end() && current_.size() > 1;) {
      if (!(*session)->is_unavailable()) {
        ++session;
        continue;
      }
      avoided_[(*session)->daemon()] = now + kProbeInterval;
      left.push_back(std::move(*session));
      session = current_.erase(session);
    }
    ProbeIfDue(now);
    for (const Known& known : known_) sessions.push_back(known.session);
  }
  for (const std::shared_ptr<Session>& session : left) session->Leave();
  for (const std::shared_ptr<Session>& session : sessions) session->EndOverdue(now);
}

void Sessions::Stop() {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    absl::MutexLock lock(&mutex_);
    is_given_up_ = true;
    for (const Known& known : known_) sessions.push_back(known.session);
  }
  for (const std::shared_ptr<Session>& session : sessions) session->Stop();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &Sessions::IsIdle));
}

}  // namespace opserve
