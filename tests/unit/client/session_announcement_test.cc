// How large requests travel through a session: announced, their payloads in chunks.

#include <cstring>
#include <numeric>

#include "gmock/gmock.h"
#include "tests/unit/client/session_fixture.h"

namespace opserve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kElements = 600'000;  // more than what is sent whole
constexpr uint64_t kBytes = kElements * sizeof(float);
constexpr uint64_t kMostChunkBytes = 256 << 10;

class SessionAnnouncementTest : public SessionFixture {
 protected:
  static std::vector<float> Elements(float first) {
    std::vector<float> elements(kElements);
    std::iota(elements.begin(), elements.end(), first);
    return elements;
  }
  // With inputs of kElements, of which the second is a tenth.
  static Request Large() {
    Request request = ScaleOf(Elements(1));
    request.invocations[0].inputs.push_back(
        {"y", Tensor::Owning<float>({kElements / 10}, std::vector<float>(kElements / 10, 2.5f))});
    return request;
  }

  // Reads chunks of the request, granting `portion` more bytes when all that was granted is there;
  // the payloads.
  static std::vector<std::string> ReadChunks(SessionPeer& peer, const PeerAnnouncement& request,
                                             uint64_t portion) {
    std::vector<std::string> payloads;
    uint64_t granted = 0, received = 0;
    for (const uint64_t size : request.sizes) {
      std::string payload;
      while (payload.size() < size) {
        if (received == granted) {
          const uint64_t more = std::min(portion, request.total() - granted);
          granted += more;
          peer.Write({CreditFrame(request.number, more)});
        }
        const std::optional<PeerFrame> frame = peer.Read();
        if (!frame || frame->kind != PeerFrame::kChunk) {
          ADD_FAILURE() << "no chunk";
          return payloads;
        }
        EXPECT_EQ(frame->number, request.number);
        EXPECT_LE(frame->body.size(), kMostChunkBytes);
        payload += frame->body;
        received += frame->body.size();
        EXPECT_LE(received, granted);
      }
      EXPECT_EQ(payload.size(), size);  // no chunk has bytes of two
      payloads.push_back(std::move(payload));
    }
    return payloads;
  }

  static PeerFrame Empty(uint64_t number) {
    return {.kind = PeerFrame::kAnswer,
            .number = number,
            .body = v1::ExecuteResponse().SerializeAsString()};
  }
};

TEST_F(SessionAnnouncementTest, PayloadsArriveWholeHoweverTheyAreGranted) {
  std::vector<std::vector<std::string>> arrived;
  PlayAll([&](SessionPeer& peer) {
    peer.Read();
    peer.Write({AnnouncementsHelloFrame()});
    for (const uint64_t portion : {uint64_t{1} << 30, uint64_t{100'003}, uint64_t{1} << 20}) {
      const std::optional<PeerFrame> frame = peer.Read();
      if (!frame) return grpc::Status::OK;
      const PeerAnnouncement request(*frame);
      EXPECT_THAT(request.sizes, ElementsAre(kBytes, kBytes / 10));
      EXPECT_EQ(request.message.invocations(0).operator_(), "Scale");
      EXPECT_TRUE(request.message.payloads().empty());
      arrived.push_back(ReadChunks(peer, request, portion));
      peer.Write({Empty(request.number)});
    }
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  Connect();

  for (int i = 0; i < 3; ++i) (void)client_->Execute(Large());

  End();
  EXPECT_EQ(num_calls_, 0);  // not even the first one is a call
  ASSERT_EQ(arrived.size(), 3u);
  std::string x(kBytes, 0);
  std::memcpy(x.data(), Elements(1).data(), kBytes);
  for (const std::vector<std::string>& payloads : arrived) {
    ASSERT_EQ(payloads.size(), 2u);
    EXPECT_TRUE(payloads[0] == x);
  }
}

TEST_F(SessionAnnouncementTest, AreCallsForADaemonThatTakesNone) {
  PlayAll([&](SessionPeer& peer) {
    peer.Read();
    peer.Write({HelloFrame()});
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  Connect();

  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client_->Execute(Large()).ok());

  EXPECT_EQ(num_calls_, 2);
  End();
}

TEST_F(SessionAnnouncementTest, SmallRequestsAreNotHeldUp) {
  absl::Notification is_announced;
  PlayAll([&](SessionPeer& peer) {
    peer.Read();
    peer.Write({AnnouncementsHelloFrame()});
    std::optional<PeerAnnouncement> large;
    int answered = 0;
    while (answered < 3 || !large) {
      const std::optional<PeerFrame> frame = peer.Read();
      if (!frame) return grpc::Status::OK;
      if (frame->kind == PeerFrame::kAnnouncement) {
        large.emplace(*frame);
        is_announced.Notify();
      } else {
        peer.Write({PeerRequest(*frame).Answer()});
        ++answered;
      }
    }
    ReadChunks(peer, *large, kMostChunkBytes);
    peer.Write({Empty(large->number)});
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  Connect();

  Outcome large = client_->ExecuteAsync(Large());
  is_announced.WaitForNotification();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client_->Execute(ScaleOf({1})).ok());
  (void)large.get();
  End();
}

TEST_F(SessionAnnouncementTest, AnErrorBeforeTheEndIsConfirmedAndNoMoreIsSent) {
  std::vector<PeerFrame::Kind> later;
  absl::Notification is_confirmed;
  PlayAll([&](SessionPeer& peer) {
    peer.Read();
    peer.Write({AnnouncementsHelloFrame()});
    const PeerAnnouncement request(*peer.Read());
    peer.Write({CreditFrame(request.number, 1000)});
    EXPECT_EQ(peer.Read()->kind, PeerFrame::kChunk);
    peer.Write({ErrorFrame(request.number, grpc::StatusCode::INVALID_ARGUMENT, "enough")});
    while (const std::optional<PeerFrame> frame = peer.Read()) {
      later.push_back(frame->kind);
      if (later.size() == 1) is_confirmed.Notify();
    }
    if (later.empty()) is_confirmed.Notify();
    return grpc::Status::OK;
  });
  Connect();

  EXPECT_THAT(client_->Execute(Large()).status().message(), HasSubstr("enough"));

  is_confirmed.WaitForNotification();
  End();
  EXPECT_THAT(later, ElementsAre(PeerFrame::kCancel));
}

TEST_F(SessionAnnouncementTest, ACancelEndsTheChunks) {
  absl::Notification has_chunk;
  std::vector<PeerFrame::Kind> later;
  PlayAll([&](SessionPeer& peer) {
    peer.Read();
    peer.Write({AnnouncementsHelloFrame()});
    const PeerAnnouncement request(*peer.Read());
    peer.Write({CreditFrame(request.number, 1000)});
    EXPECT_EQ(peer.Read()->kind, PeerFrame::kChunk);
    has_chunk.Notify();
    const std::optional<PeerFrame> cancel = peer.Read();
    if (cancel) later.push_back(cancel->kind);
    // Credit that crossed the cancel.
    peer.Write({CreditFrame(request.number, 1000),
                ErrorFrame(request.number, grpc::StatusCode::CANCELLED, "cancelled")});
    while (const std::optional<PeerFrame> frame = peer.Read()) later.push_back(frame->kind);
    return grpc::Status::OK;
  });
  Connect();
  absl::Notification done;
  absl::Status status;
  const CallHandle call = client_->ExecuteAsync(Large(), [&](absl::StatusOr<Response> response) {
    status = response.status();
    done.Notify();
  });
  has_chunk.WaitForNotification();

  call.Cancel();

  done.WaitForNotification();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  End();
  EXPECT_THAT(later, ElementsAre(PeerFrame::kCancel));
}

TEST_F(SessionAnnouncementTest, IsAnnouncedAgainAfterItsSession) {
  struct Case {
    const char* name;
    std::function<grpc::Status(SessionPeer&, uint64_t)> end;
  };
  for (const Case& c : std::vector<Case>{{"broken",
                                          [](SessionPeer&, uint64_t) {
                                            return grpc::Status(grpc::StatusCode::UNAVAILABLE,
                                                                "broken");
                                          }},
                                         {"gone away", [](SessionPeer&peer, uint64_t number) {
                                            peer.Write({GoingAwayFrame(number - 1)});
                                            peer.ReadToTheEnd();
                                            return grpc::Status::OK;
                                          }}}) {
    SCOPED_TRACE(c.name);
    std::atomic<int> announcements = 0;
    PlayAll([&](SessionPeer& peer) {
      peer.Read();
      peer.Write({AnnouncementsHelloFrame()});
      const std::optional<PeerFrame> frame = peer.Read();
      if (!frame) return grpc::Status::OK;
      const PeerAnnouncement request(*frame);
      if (++announcements == 1) return c.end(peer, request.number);
      ReadChunks(peer, request, 1 << 20);
      peer.Write({Empty(request.number)});
      peer.ReadToTheEnd();
      return grpc::Status::OK;
    });
    Connect();

    (void)client_->Execute(Large());

    EXPECT_EQ(announcements, 2);
    EXPECT_EQ(num_calls_, 0);
    End();
  }
}

TEST_F(SessionAnnouncementTest, IsACallForADaemonWithoutSessions) {
  PlayAll([](SessionPeer&) { return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""); });
  Connect();

  for (int i = 0; i < 2; ++i) EXPECT_TRUE(client_->Execute(Large()).ok());

  EXPECT_EQ(num_calls_, 2);
  EXPECT_EQ(num_sessions_, 1);
  End();
}

TEST_F(SessionAnnouncementTest, WhatCannotBeAnnouncedIsACall) {
  PlayAll([&](SessionPeer& peer) {
    peer.Read();
    peer.Write({AnnouncementsHelloFrame()});
    peer.ReadToTheEnd();
    return grpc::Status::OK;
  });
  Connect();
  // Far too many nodes for a frame.
  Request program = ScaleOf({1});
  for (int i = 0; i < 60'000; ++i) {
    program.invocations.push_back(
        {.operator_name = "Scale", .inputs = {{"x", OutputOf{.invocation = 0}}}});
  }

  (void)client_->Execute(program);

  EXPECT_EQ(num_calls_, 1);
  End();
}

TEST_F(SessionAnnouncementTest, ThoseWithAKeyAreCallsForADaemonThatTakesOthersOnly) {
  for (const bool is_open : {false, true}) {
    for (const uint64_t features : {1, 5}) {
      SCOPED_TRACE(testing::Message() << features << (is_open ? ", open" : ", connecting"));
      const int calls = num_calls_;
      int announced = 0;
      PlayAll([&](SessionPeer& peer) {
        peer.Read();
        peer.Write({AnnouncementsHelloFrame(features)});
        while (const std::optional<PeerFrame> frame = peer.Read()) {
          if (frame->kind != PeerFrame::kAnnouncement) continue;
          const PeerAnnouncement request(*frame);
          announced += request.message.idempotency_key() == "key";
          ReadChunks(peer, request, 1 << 20);
          peer.Write({Empty(request.number)});
        }
        return grpc::Status::OK;
      });
      Connect();
      if (is_open) (void)client_->Execute(Large());
      Request request = Large();
      request.idempotency_key = "key";

      (void)client_->Execute(request);

      EXPECT_EQ(announced, features == 5 ? 1 : 0);
      EXPECT_EQ(num_calls_, calls + (features == 5 ? 0 : 1));
      End();
    }
  }
}

}  // namespace
}  // namespace opserve
