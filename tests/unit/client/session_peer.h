// The daemon's side of a session for tests of clients, after proto/SESSION.md alone.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/session.pb.h"
#include "tests/unit/client/test_server.h"

namespace opserve {

struct PeerFrame {
  enum Kind : uint8_t {
    kHello = 1,
    kRequest,
    kAnswer,
    kError,
    kCancel,
    kPing,
    kPong,
    kGoingAway,
    kAnnouncement,
    kChunk,
    kCredit,
    kPart,
  };

  Kind kind = kHello;
  uint64_t number = 0;
  std::string body = {};
};

// The bytes of a frame.
std::string BytesOf(const PeerFrame& frame);

// Frames that a daemon sends.
PeerFrame HelloFrame(uint32_t max_requests = 1000, uint64_t max_request_bytes = 1 << 20,
                     const std::string& daemon = "");
// The same of a daemon that takes announcements: of requests of any kind (5), or of those with
// neither identity nor idempotency key nor prepared program (1).
PeerFrame AnnouncementsHelloFrame(uint64_t features = 5);
PeerFrame CreditFrame(uint64_t number, uint64_t bytes);
PeerFrame ErrorFrame(uint64_t number, grpc::StatusCode code, const std::string& message,
                     const v1::ErrorDetail& detail = {});
PeerFrame GoingAwayFrame(uint64_t last_request);

// A request, taken apart.
struct PeerRequest {
  explicit PeerRequest(const PeerFrame& frame);

  // The answer that TestServer's Execute gives; an empty one to a request without contents.
  PeerFrame Answer() const;

  uint64_t number = 0;
  uint64_t timeout_us = 0;
  std::string traceparent;
  v1::ExecuteRequest message;
};

// An announced request, taken apart; its payloads follow.
struct PeerAnnouncement {
  explicit PeerAnnouncement(const PeerFrame& frame);

  uint64_t total() const;

  uint64_t number = 0;
  std::vector<uint64_t> sizes;
  v1::ExecuteRequest message;
};

// Not thread-safe.
class SessionPeer {
 public:
  SessionPeer(grpc::ServerContext* context, TestServer::SessionStream* stream)
      : context_(*context), stream_(*stream) {}

  // The next frame that is no ping. Nothing: the client sends no more. Pings are answered when
  // their message comes.
  std::optional<PeerFrame> Read();

  // From now on pings are left without an answer.
  void IgnorePings() { answers_pings_ = false; }

  // The next frame, which is a request; otherwise the test fails and it is a request without
  // contents.
  PeerRequest ReadRequest();

  // Frames that came in the same message as those that were read, and are not read yet; pings are
  // none of them.
  size_t frames_left() const { return frames_.size(); }

  // Writes the frames in one message.
  void Write(const std::vector<PeerFrame>& frames);
  void WriteBytes(const std::string& frames);

  // Reads until the client sends no more.
  void ReadToTheEnd();

  // Whether the client, or its connection, broke the session off.
  bool IsCancelled() const { return context_.IsCancelled(); }

 private:
  grpc::ServerContext& context_;
  TestServer::SessionStream& stream_;
  bool answers_pings_ = true;
  std::deque<PeerFrame> frames_;
};

}  // namespace opserve
