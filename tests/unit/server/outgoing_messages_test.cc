#include "server/grpc/outgoing_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

using codec::FrameKind;
using testing::ElementsAre;
using testing::Pair;

constexpr size_t kPart = codec::kMostChunkBytes;

codec::Slices SlicesOf(const std::vector<std::string>& pieces) {
  codec::Slices slices;
  for (const std::string& piece : pieces) slices.push_back(grpc::Slice(piece));
  return slices;
}

// The frames of the next message, and how many of the messages and answers ended with it.
struct Taken {
  std::vector<std::pair<FrameKind, uint64_t>> frames;  // with the requests' numbers
  std::vector<std::string> bodies;
  size_t ended = 0;
};

Taken Take(OutgoingMessages& outgoing) {
  Taken taken;
  grpc::ByteBuffer message;
  taken.ended = outgoing.Take(&message);
  codec::FrameReader reader;
  EXPECT_TRUE(reader.Read(message).ok());
  for (;;) {
    auto frame = reader.Next();
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (!frame.ok() || !frame->has_value()) return taken;
    taken.frames.emplace_back((*frame)->kind, (*frame)->number);
    std::string& body = taken.bodies.emplace_back();
    for (const grpc::Slice& slice : (*frame)->body) {
      body.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
}

TEST(OutgoingMessagesTest, AnAnswerInPartsHasItsBytesInOrderHoweverTheyLie) {
  std::string bytes;
  for (size_t i = 0; i < 2 * kPart + 5; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 251));
  const std::string first = bytes.substr(0, 3), rest = bytes.substr(3 + kPart);
  for (const std::vector<std::string>& pieces : std::vector<std::vector<std::string>>{
           {bytes},
           {first, bytes.substr(3, kPart), rest},
           {bytes.substr(0, kPart), bytes.substr(kPart, kPart), bytes.substr(2 * kPart)},
           {bytes.substr(0, 2 * kPart), "", bytes.substr(2 * kPart)}}) {
    OutgoingMessages outgoing;
    outgoing.AddInParts(9, SlicesOf(pieces));
    EXPECT_EQ(outgoing.size(), 1u);
    std::string sent;
    for (const FrameKind kind : {FrameKind::kPart, FrameKind::kPart, FrameKind::kAnswer}) {
      ASSERT_FALSE(outgoing.empty());
      const Taken taken = Take(outgoing);
      EXPECT_THAT(taken.frames, ElementsAre(Pair(kind, 9)));
      EXPECT_LE(taken.bodies[0].size(), kPart);
      EXPECT_EQ(taken.ended, kind == FrameKind::kAnswer ? 1u : 0u);
      sent += taken.bodies[0];
    }
    EXPECT_TRUE(outgoing.empty());
    EXPECT_TRUE(sent == bytes);
  }
}

TEST(OutgoingMessagesTest, APartGoesWithEachMessageAndAnswersTakeTurns) {
  OutgoingMessages outgoing;
  outgoing.AddInParts(1, SlicesOf({std::string(2 * kPart, 'a')}));
  outgoing.AddInParts(2, SlicesOf({std::string(kPart + 1, 'b')}));
  outgoing.BeginFrame(0).Add(FrameKind::kPong, 7, "");
  outgoing.BeginFrame(0).Add(FrameKind::kPong, 8, "");
  EXPECT_EQ(outgoing.size(), 4u);

  const Taken first = Take(outgoing);
  EXPECT_THAT(first.frames, ElementsAre(Pair(FrameKind::kPong, 7), Pair(FrameKind::kPong, 8),
                                        Pair(FrameKind::kPart, 1)));
  EXPECT_EQ(first.ended, 2u);
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kPart, 2)));
  // A frame that comes meanwhile waits for no other part.
  outgoing.BeginFrame(0).Add(FrameKind::kPong, 9, "");
  const Taken third = Take(outgoing);
  EXPECT_THAT(third.frames, ElementsAre(Pair(FrameKind::kPong, 9), Pair(FrameKind::kAnswer, 1)));
  EXPECT_EQ(third.ended, 2u);
  EXPECT_THAT(Take(outgoing).bodies, ElementsAre("b"));
  EXPECT_EQ(outgoing.size(), 0u);
}

TEST(OutgoingMessagesTest, AnAnswerMayComeInPieces) {
  OutgoingMessages outgoing;
  outgoing.AddInParts(1, SlicesOf({std::string(kPart, 'a'), "b"}), /*is_last=*/false);
  EXPECT_EQ(outgoing.BytesInParts(1), kPart + 1);
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kPart, 1)));
  EXPECT_EQ(outgoing.BytesInParts(1), 1u);
  // Another one does not come between the pieces that wait.
  outgoing.AddInParts(2, SlicesOf({"x"}));
  outgoing.AddInParts(1, SlicesOf({"c"}), /*is_last=*/false);
  EXPECT_EQ(outgoing.size(), 2u);

  const Taken bc = Take(outgoing);
  EXPECT_THAT(bc.frames, ElementsAre(Pair(FrameKind::kPart, 1)));
  EXPECT_THAT(bc.bodies, ElementsAre("bc"));
  EXPECT_EQ(bc.ended, 1u);
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kAnswer, 2)));
  EXPECT_TRUE(outgoing.empty());
  EXPECT_EQ(outgoing.BytesInParts(1), 0u);
  EXPECT_FALSE(outgoing.EraseInParts(1));

  outgoing.AddInParts(1, SlicesOf({"d"}));
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kAnswer, 1)));
}

TEST(OutgoingMessagesTest, WhatIsLeftOfAnAnswerCanBeForgotten) {
  OutgoingMessages outgoing;
  outgoing.AddInParts(1, SlicesOf({std::string(2 * kPart, 'a')}));
  outgoing.AddInParts(2, SlicesOf({std::string(kPart, 'b')}));
  outgoing.AddInParts(3, SlicesOf({std::string(3 * kPart, 'c')}));
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kPart, 1)));

  EXPECT_TRUE(outgoing.EraseInParts(3));
  EXPECT_FALSE(outgoing.EraseInParts(3));
  EXPECT_FALSE(outgoing.EraseInParts(4));

  EXPECT_EQ(outgoing.size(), 2u);
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kAnswer, 2)));
  EXPECT_THAT(Take(outgoing).frames, ElementsAre(Pair(FrameKind::kAnswer, 1)));
  EXPECT_TRUE(outgoing.empty());
}

}  // namespace
}  // namespace opserve::server
