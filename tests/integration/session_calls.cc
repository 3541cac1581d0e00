#include "tests/integration/session_calls.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/integration/execute_stream_calls.h"

namespace opserve::server {
namespace {

constexpr size_t kHeaderBytes = 16;

template <typename Number>
void Append(Number number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

template <typename Number>
Number Load(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

}  // namespace

std::string FrameBytes(uint8_t kind, uint64_t number, absl::string_view body) {
  std::string frame;
  Append(static_cast<uint32_t>(body.size()), &frame);
  Append(kind, &frame);
  frame.append(3, '\0');
  Append(number, &frame);
  frame.append(body.data(), body.size());
  return frame;
}

std::string RequestFrame(uint64_t number, const v1::ExecuteRequest& program, absl::Duration timeout,
                         absl::string_view traceparent) {
  std::string body;
  Append(static_cast<uint64_t>(absl::ToInt64Microseconds(timeout)), &body);
  Append(static_cast<uint32_t>(traceparent.size()), &body);
  body.append(traceparent.data(), traceparent.size());
  body += program.SerializeAsString();
  return FrameBytes(kRequestFrame, number, body);
}

std::string AnnouncementFrame(uint64_t number, const v1::ExecuteRequest& program,
                              const std::vector<uint64_t>& sizes, absl::Duration timeout) {
  std::string body;
  Append(static_cast<uint64_t>(absl::ToInt64Microseconds(timeout)), &body);
  Append(uint32_t{0}, &body);
  Append(static_cast<uint32_t>(sizes.size()), &body);
  for (const uint64_t size : sizes) Append(size, &body);
  body += program.SerializeAsString();
  return FrameBytes(kAnnouncementFrame, number, body);
}

uint64_t CreditOf(const TestFrame& frame) {
  const bool is_credit = frame.kind == kCreditFrame && frame.body.size() == sizeof(uint64_t);
  return is_credit ? Load<uint64_t>(frame.body.data()) : 0;
}

std::string OnesRequestFrame(uint64_t number, int64_t count, absl::Duration timeout) {
  return RequestFrame(number, OnesRequest(count, ""), timeout);
}

bool IsAllOnes(const TestFrame& frame, int64_t count) {
  v1::ExecuteResponse response;
  return frame.kind == kAnswerFrame && response.ParseFromString(frame.body) &&
         IsAllOnes(response, count);
}

v1::StatusDetails ErrorOf(const TestFrame& frame) {
  v1::StatusDetails error;
  if (frame.kind == kErrorFrame) error.ParseFromString(frame.body);
  return error;
}

void AddToken(const std::string& token, grpc::ClientContext* context) {
  if (!token.empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
}

TestSession::TestSession(v1::OperatorService::Stub& stub, bool says_hello, uint64_t features,
                         const std::string& token) {
  AddToken(token, &context_);
  context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
  stream_ = stub.Session(&context_);
  if (!says_hello) return;
  v1::SessionHello hello;
  hello.set_version(1);
  hello.set_features(features);
  Send(FrameBytes(kHelloFrame, 0, hello.SerializeAsString()));
  const TestFrame frame = Receive();
  if (frame.kind == kHelloFrame) hello_.ParseFromString(frame.body);
}

bool TestSession::Send(absl::string_view frames) {
  v1::SessionMessage message;
  message.set_frames(frames.data(), frames.size());
  return stream_->Write(message);
}

TestFrame TestSession::Receive() {
  v1::SessionMessage message;
  while (frames_.empty()) {
    if (!stream_->Read(&message)) return {};
    ++messages_;
    frames_ = message.frames();
  }
  TestFrame frame;
  if (frames_.size() < kHeaderBytes) return frame;
  const auto bytes = Load<uint32_t>(frames_.data());
  frame.kind = Load<uint8_t>(frames_.data() + 4);
  frame.number = Load<uint64_t>(frames_.data() + 8);
  frame.body = frames_.substr(kHeaderBytes, bytes);
  frames_.erase(0, kHeaderBytes + bytes);
  return frame;
}

TestFrame TestSession::ReceiveEnd() {
  for (;;) {
    TestFrame frame = Receive();
    if (frame.kind == kCreditFrame) continue;
    if (frame.kind == kPartFrame) {
      ++parts_;
      answers_[frame.number] += frame.body;
      continue;
    }
    if (frame.kind == kAnswerFrame) frame.body.insert(0, answers_[frame.number]);
    answers_.erase(frame.number);
    return frame;
  }
}

}  // namespace opserve::server
