// Session with generated classes and stubs, and frames made by hand as proto/SESSION.md has them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "opserve/v1/operator_service.grpc.pb.h"

namespace opserve::server {

enum TestFrameKind : uint8_t {
  kHelloFrame = 1,
  kRequestFrame = 2,
  kAnswerFrame = 3,
  kErrorFrame = 4,
  kCancelFrame = 5,
  kPingFrame = 6,
  kPongFrame = 7,
  kGoingAwayFrame = 8,
  kAnnouncementFrame = 9,
  kChunkFrame = 10,
  kCreditFrame = 11,
  kPartFrame = 12,
};

// Of the features in a client's hello.
inline constexpr uint64_t kTakesParts = 2;

struct TestFrame {
  uint8_t kind = 0;  // 0: there is none
  uint64_t number = 0;
  std::string body;
};

// The bytes of a frame.
std::string FrameBytes(uint8_t kind, uint64_t number, absl::string_view body = "");

// Of a request that may take `timeout` (zero: the default), with `program` or OnesProgram(count).
std::string RequestFrame(uint64_t number, const v1::ExecuteRequest& program,
                         absl::Duration timeout = absl::ZeroDuration(),
                         absl::string_view traceparent = "");
std::string OnesRequestFrame(uint64_t number, int64_t count = 10,
                             absl::Duration timeout = absl::ZeroDuration());

// Of the same announced, with payloads of `sizes` to follow.
std::string AnnouncementFrame(uint64_t number, const v1::ExecuteRequest& program,
                              const std::vector<uint64_t>& sizes,
                              absl::Duration timeout = absl::ZeroDuration());

// The bytes that a credit grants; 0 of another frame.
uint64_t CreditOf(const TestFrame& frame);
// Whether it answers OnesProgram(count).
bool IsAllOnes(const TestFrame& frame, int64_t count = 10);
// The error of a frame of that kind; another frame gives none (code 0).
v1::StatusDetails ErrorOf(const TestFrame& frame);

// Sends a tenant's token with a call. "": none.
void AddToken(const std::string& token, grpc::ClientContext* context);

// One Session call.
class TestSession {
 public:
  // Says hello with these features, and waits for the daemon's, unless told otherwise. `token`: of
  // a tenant, or none.
  explicit TestSession(v1::OperatorService::Stub& stub, bool says_hello = true,
                       uint64_t features = 0, const std::string& token = "");

  // In one message. False: the session has ended.
  bool Send(absl::string_view frames);
  void SendNoMore() { stream_->WritesDone(); }
  // The next frame, whatever message it is in.
  TestFrame Receive();
  // The next frame that is neither a credit nor a part; an answer with the parts before it.
  TestFrame ReceiveEnd();
  int parts() const { return parts_; }  // that ReceiveEnd has received
  // After the last frame.
  grpc::Status Finish() { return stream_->Finish(); }
  void Cancel() { context_.TryCancel(); }

  const v1::SessionHello& hello() const { return hello_; }  // the daemon's
  int messages() const { return messages_; }                // received so far

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SessionMessage, v1::SessionMessage>> stream_;
  v1::SessionHello hello_;
  std::string frames_;  // received, and not taken yet
  int messages_ = 0;
  std::map<uint64_t, std::string> answers_;  // their parts that have come, by request
  int parts_ = 0;
};

}  // namespace opserve::server
