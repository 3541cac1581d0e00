// How large answers travel through a session: in parts.

#include <algorithm>

#include "gmock/gmock.h"
#include "opserve/v1/session.pb.h"
#include "tests/unit/client/session_fixture.h"

namespace opserve {
namespace {

using testing::HasSubstr;

class SessionPartsTest : public SessionFixture {
 protected:
  static PeerFrame PartFrame(const PeerFrame& answer, size_t from, size_t size) {
    return {
        .kind = PeerFrame::kPart, .number = answer.number, .body = answer.body.substr(from, size)};
  }
  // Of all bytes behind the parts.
  static PeerFrame RestFrame(const PeerFrame& answer, size_t from) {
    PeerFrame rest = answer;
    rest.body.erase(0, from);
    return rest;
  }
};

TEST_F(SessionPartsTest, TheClientSaysThatItTakesThem) {
  v1::SessionHello hello;
  absl::Notification has_hello;
  PlayAll([&](SessionPeer& peer) {
    if (const std::optional<PeerFrame> frame = peer.Read()) hello.ParseFromString(frame->body);
    has_hello.Notify();
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  Connect();
  // The second one opens the session, and waits for it no more than the first.
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());

  has_hello.WaitForNotification();
  End();
  EXPECT_EQ(hello.features() & 2, 2u);
}

TEST_F(SessionPartsTest, PartsAndTheAnswerAreTheResponseWhereverTheyAreCut) {
  constexpr int kRounds = 100;
  size_t answer_bytes = 0;
  // Cut behind each byte, the last one too; those of two requests between each other.
  Start(HelloFrame(), [&](SessionPeer& peer) {
    for (size_t cut = 1; cut <= kRounds; ++cut) {
      const PeerRequest first = peer.ReadRequest(), second = peer.ReadRequest();
      const PeerFrame a = first.Answer(), b = second.Answer();
      answer_bytes = a.body.size();
      const size_t end = std::min(cut, answer_bytes);
      peer.Write({PartFrame(a, 0, 1), PartFrame(b, 0, 1)});
      peer.Write({PartFrame(a, 1, end - 1), RestFrame(b, 1)});
      peer.Write({RestFrame(a, end)});
    }
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });

  for (int i = 0; i < kRounds; ++i) {
    std::vector<Outcome> outcomes = StartCalls(2, i);
    ExpectValues(outcomes, i);
  }

  End();
  EXPECT_EQ(num_calls_, 0);
  EXPECT_LT(answer_bytes, size_t{kRounds});
}

TEST_F(SessionPartsTest, AnErrorMakesThePartsVoid) {
  Start(HelloFrame(), [&](SessionPeer& peer) {
    const PeerRequest request = peer.ReadRequest();
    peer.Write({PartFrame(request.Answer(), 0, 3)});
    peer.Write({ErrorFrame(request.number, grpc::StatusCode::INVALID_ARGUMENT, "no rest")});
    const PeerRequest next = peer.ReadRequest();
    peer.Write({next.Answer()});
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });

  EXPECT_THAT(client_->Execute(ScaleOf({1})).status().message(), HasSubstr("no rest"));

  EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
  End();
}

TEST_F(SessionPartsTest, PartsThatComeAfterTheDeadlineAreDropped) {
  Start(HelloFrame(), [&](SessionPeer& peer) {
    const PeerRequest request = peer.ReadRequest();
    const PeerFrame answer = request.Answer();
    peer.Write({PartFrame(answer, 0, 3)});
    const std::optional<PeerFrame> cancel = peer.Read();  // at the deadline
    EXPECT_TRUE(cancel && cancel->kind == PeerFrame::kCancel && cancel->number == request.number);
    peer.Write({PartFrame(answer, 3, 3)});
    peer.Write({RestFrame(answer, 6)});
    const PeerRequest next = peer.ReadRequest();
    peer.Write({next.Answer()});
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });

  Request request = ScaleOf({1});
  request.timeout = absl::Milliseconds(500);
  const absl::Status late = client_->Execute(request).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kDeadlineExceeded) << late;

  EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
  End();
}

}  // namespace
}  // namespace opserve
