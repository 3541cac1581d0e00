#include "server/session/session_metrics.h"

#include "proto/status/error.h"

namespace opserve::server {
namespace {

// A gauge of those that are there now, and a counter of ends by result.
template <size_t kResults>
void AddLifetimes(const char* gauge, const char* gauge_help, int64_t now, const char* counter,
                  const char* counter_help, const char* const (&results)[kResults],
                  const std::array<std::atomic<uint64_t>, kResults>& ended,
                  std::vector<prometheus::MetricFamily>* families) {
  families->push_back(MetricFamilyBuilder(gauge, gauge_help, prometheus::MetricType::Gauge)
                          .Add({}, static_cast<double>(now))
                          .Build());
  MetricFamilyBuilder ends(counter, counter_help, prometheus::MetricType::Counter);
  for (size_t i = 0; i < kResults; ++i) {
    ends.Add({{"result", results[i]}},
             static_cast<double>(ended[i].load(std::memory_order_relaxed)));
  }
  families->push_back(ends.Build());
}

}  // namespace

void SessionMetrics::RecordEnd(const absl::Status& status) {
  open_.fetch_sub(1, std::memory_order_relaxed);
  // Any other error is the client's breach of the protocol.
  Result result = kProtocol;
  if (status.ok()) {
    result = kClosed;
  } else if (absl::IsCancelled(status)) {
    result = kBroken;
  } else if (absl::IsUnavailable(status)) {
    result = kDraining;
  }
  ends_[result].fetch_add(1, std::memory_order_relaxed);
}

void SessionMetrics::RecordArrivalEnd(const absl::Status& status) {
  arriving_.fetch_sub(1, std::memory_order_relaxed);
  Arrival arrival = kFailed;
  if (status.ok()) {
    arrival = kArrived;
  } else if (ErrorReasonOf(status) == Reason::kUploadStalled) {
    arrival = kStalled;
  } else if (absl::IsCancelled(status)) {
    arrival = kCancelled;
  } else if (absl::IsDeadlineExceeded(status)) {
    arrival = kExpired;
  }
  arrivals_[arrival].fetch_add(1, std::memory_order_relaxed);
}

void SessionMetrics::RecordDepartureEnd(const absl::Status& status) {
  departing_.fetch_sub(1, std::memory_order_relaxed);
  Departure departure = kBrokenOff;
  if (status.ok()) {
    departure = kSent;
  } else if (absl::IsCancelled(status)) {
    departure = kDropped;
  } else if (absl::IsDeadlineExceeded(status)) {
    departure = kLate;
  }
  departures_[departure].fetch_add(1, std::memory_order_relaxed);
}

void SessionMetrics::Collect(std::vector<prometheus::MetricFamily>* families) const {
  // Names of results: in the order of Result, Arrival and Departure.
  AddLifetimes("opserve_sessions", "Sessions that are open.", open(), "opserve_sessions_total",
               "Sessions that have ended: by the client, with all answers (closed), with their "
               "connection or by the client without waiting (broken), because the client broke the "
               "protocol (protocol), or with the daemon (draining).",
               {"closed", "broken", "protocol", "draining"}, ends_, families);
  AddLifetimes(
      "opserve_session_requests_arriving",
      "Announced requests whose payloads arrive in chunks now; device memory is booked for "
      "them.",
      arriving(), "opserve_session_arrivals_total",
      "Announced requests whose payloads have arrived, or never will: the client sent "
      "nothing or too little for too long (stalled), it or its connection ended them "
      "(cancelled), their deadline passed (expired), or the device or its memory failed "
      "them (failed).",
      {"arrived", "stalled", "cancelled", "expired", "failed"}, arrivals_, families);
  AddLifetimes(
      "opserve_session_requests_departing",
      "Requests whose results leave device memory part by part now, as fast as their "
      "clients read; the memory is theirs until then.",
      departing(), "opserve_session_departures_total",
      "Requests whose results have left device memory (sent), or never will: the client or "
      "its connection ended them (cancelled), their deadline passed before the client had "
      "read enough (expired), or the device failed them (failed).",
      {"sent", "cancelled", "expired", "failed"}, departures_, families);
  MetricFamilyBuilder messages("opserve_session_messages_total",
                               "Messages of sessions that came from clients.",
                               prometheus::MetricType::Counter);
  messages.Add({}, static_cast<double>(messages_.load(std::memory_order_relaxed)));
  families->push_back(messages.Build());
  MetricFamilyBuilder frames("opserve_session_frames_total",
                             "Frames in them; by the messages, how many travel together.",
                             prometheus::MetricType::Counter);
  frames.Add({}, static_cast<double>(frames_.load(std::memory_order_relaxed)));
  families->push_back(frames.Build());
}

}  // namespace opserve::server
