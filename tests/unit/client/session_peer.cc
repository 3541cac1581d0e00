#include "tests/unit/client/session_peer.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "gtest/gtest.h"
#include "opserve/v1/error.pb.h"

namespace opserve {
namespace {

constexpr size_t kHeaderBytes = 16;

template <typename Number>
Number Load(const std::string& bytes, size_t offset) {
  Number number = 0;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

template <typename Number>
void Append(Number number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

std::string BytesOf(const PeerFrame& frame) {
  std::string bytes;
  Append(static_cast<uint32_t>(frame.body.size()), &bytes);
  Append(static_cast<uint8_t>(frame.kind), &bytes);
  bytes.append(3, '\0');
  Append(frame.number, &bytes);
  return bytes + frame.body;
}

PeerFrame HelloFrame(uint32_t max_requests, uint64_t max_request_bytes, const std::string& daemon) {
  v1::SessionHello hello;
  hello.set_version(1);
  hello.set_daemon(daemon);
  hello.mutable_limits()->set_max_requests(max_requests);
  hello.mutable_limits()->set_max_request_bytes(max_request_bytes);
  hello.mutable_limits()->set_max_message_bytes(2 << 20);
  return {.kind = PeerFrame::kHello, .body = hello.SerializeAsString()};
}

PeerFrame AnnouncementsHelloFrame(uint64_t features) {
  PeerFrame frame = HelloFrame();
  v1::SessionHello hello;
  hello.ParseFromString(frame.body);
  hello.set_features(features);
  frame.body = hello.SerializeAsString();
  return frame;
}

PeerFrame CreditFrame(uint64_t number, uint64_t bytes) {
  PeerFrame frame{.kind = PeerFrame::kCredit, .number = number};
  Append(bytes, &frame.body);
  return frame;
}

PeerFrame ErrorFrame(uint64_t number, grpc::StatusCode code, const std::string& message,
                     const v1::ErrorDetail& detail) {
  v1::StatusDetails details;
  details.set_code(code);
  details.set_message(message);
  details.add_details()->PackFrom(detail);
  return {.kind = PeerFrame::kError, .number = number, .body = details.SerializeAsString()};
}

PeerFrame GoingAwayFrame(uint64_t last_request) {
  v1::SessionGoingAway going_away;
  going_away.set_last_request(last_request);
  return {.kind = PeerFrame::kGoingAway, .body = going_away.SerializeAsString()};
}

PeerRequest::PeerRequest(const PeerFrame& frame) : number(frame.number) {
  constexpr size_t kStartBytes = 12;
  if (frame.body.size() < kStartBytes) return;
  timeout_us = Load<uint64_t>(frame.body, 0);
  const auto trace_bytes = Load<uint32_t>(frame.body, 8);
  traceparent = frame.body.substr(kStartBytes, trace_bytes);
  EXPECT_TRUE(message.ParseFromString(frame.body.substr(kStartBytes + trace_bytes)));
}

PeerAnnouncement::PeerAnnouncement(const PeerFrame& frame) : number(frame.number) {
  EXPECT_EQ(frame.kind, PeerFrame::kAnnouncement);
  constexpr size_t kStartBytes = 12;
  size_t offset = kStartBytes + Load<uint32_t>(frame.body, 8);
  const auto count = Load<uint32_t>(frame.body, offset);
  offset += sizeof(count);
  for (uint32_t i = 0; i < count; ++i, offset += sizeof(uint64_t)) {
    sizes.push_back(Load<uint64_t>(frame.body, offset));
  }
  EXPECT_TRUE(message.ParseFromString(frame.body.substr(offset)));
}

uint64_t PeerAnnouncement::total() const {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
}

PeerFrame PeerRequest::Answer() const {
  v1::ExecuteResponse response;
  if (!message.invocations().empty()) TestServer::Echo(nullptr, message, &response);
  return {.kind = PeerFrame::kAnswer, .number = number, .body = response.SerializeAsString()};
}

std::optional<PeerFrame> SessionPeer::Read() {
  while (frames_.empty()) {
    v1::SessionMessage message;
    if (!stream_.Read(&message)) return std::nullopt;
    const std::string& bytes = message.frames();
    for (size_t offset = 0; offset < bytes.size();) {
      if (bytes.size() - offset < kHeaderBytes) {
        ADD_FAILURE() << "a cut header";
        break;
      }
      const auto size = Load<uint32_t>(bytes, offset);
      EXPECT_EQ(Load<uint32_t>(bytes, offset + 4) >> 8, 0u);
      EXPECT_LE(size, bytes.size() - offset - kHeaderBytes);
      PeerFrame frame{.kind = static_cast<PeerFrame::Kind>(bytes[offset + 4]),
                      .number = Load<uint64_t>(bytes, offset + 8),
                      .body = bytes.substr(offset + kHeaderBytes, size)};
      offset += kHeaderBytes + size;
      if (frame.kind != PeerFrame::kPing) {
        frames_.push_back(std::move(frame));
      } else if (answers_pings_) {
        Write({{.kind = PeerFrame::kPong, .number = frame.number}});
      }
    }
  }
  PeerFrame frame = frames_.front();
  frames_.pop_front();
  return frame;
}

PeerRequest SessionPeer::ReadRequest() {
  const std::optional<PeerFrame> frame = Read();
  EXPECT_TRUE(frame && frame->kind == PeerFrame::kRequest)
      << (frame ? static_cast<int>(frame->kind) : 0);
  return PeerRequest(frame.value_or(PeerFrame()));
}

void SessionPeer::Write(const std::vector<PeerFrame>& frames) {
  std::string bytes;
  for (const PeerFrame& frame : frames) bytes += BytesOf(frame);
  WriteBytes(bytes);
}

void SessionPeer::WriteBytes(const std::string& frames) {
  v1::SessionMessage message;
  message.set_frames(frames);
  stream_.Write(message);
}

void SessionPeer::ReadToTheEnd() {
  while (Read()) {
  }
}

}  // namespace opserve
