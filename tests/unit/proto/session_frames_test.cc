#include "proto/session/session_frames.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "opserve/v1/error.pb.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/session.pb.h"
#include "proto/codec/payload_message.h"

namespace opserve::codec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

template <typename Number>
std::string LittleEndian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(number); ++i) {
    bytes += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
  }
  return bytes;
}

std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number > 0x7f; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes + static_cast<char>(number);
}

// A frame, byte by byte as SESSION.md has it.
std::string FrameBytes(int kind, uint64_t number, const std::string& body, int flags = 0,
                       uint16_t zero = 0) {
  return absl::StrCat(
      LittleEndian(static_cast<uint32_t>(body.size())), LittleEndian(static_cast<uint8_t>(kind)),
      LittleEndian(static_cast<uint8_t>(flags)), LittleEndian(zero), LittleEndian(number), body);
}

std::string MessageBytes(const std::string& frames) {
  return absl::StrCat("\x0a", Varint(frames.size()), frames);
}

std::string StartBytes(uint64_t microseconds, const std::string& traceparent) {
  return absl::StrCat(LittleEndian(microseconds),
                      LittleEndian(static_cast<uint32_t>(traceparent.size())), traceparent);
}

// A slice for each piece. Their memory is outside of them: gRPC puts small slices together that
// have theirs inside.
grpc::ByteBuffer OfPieces(const std::vector<std::string>& pieces) {
  std::vector<grpc::Slice> slices;
  for (const std::string& piece : pieces) {
    auto* const kept = new std::string(piece);
    slices.emplace_back(
        kept->data(), kept->size(), [](void* bytes) { delete static_cast<std::string*>(bytes); },
        kept);
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Of a buffer that is not compressed.
Slices PiecesOf(const grpc::ByteBuffer& buffer) {
  Slices slices;
  EXPECT_TRUE(TakeSlices(buffer, &slices).ok());
  return slices;
}

std::string BytesOf(absl::Span<const grpc::Slice> slices) {
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

std::string BytesOf(const grpc::ByteBuffer& buffer) { return BytesOf(PiecesOf(buffer)); }

// Calls `check` with the bytes in one slice, in slices of each size, and cut at each two places,
// which may be the same one: then there is a slice without bytes.
template <typename Check>
void ForAllSlices(const std::string& bytes, Check check) {
  for (size_t size = 1; size <= bytes.size(); ++size) {
    SCOPED_TRACE(absl::StrCat("slices of ", size));
    std::vector<std::string> pieces;
    for (size_t at = 0; at < bytes.size(); at += size) pieces.push_back(bytes.substr(at, size));
    check(OfPieces(pieces));
  }
  for (size_t first = 0; first <= bytes.size(); ++first) {
    for (size_t second = first; second <= bytes.size(); ++second) {
      SCOPED_TRACE(absl::StrCat("cut at ", first, " and ", second));
      check(OfPieces(
          {bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)}));
    }
  }
}

// Kind, number, body.
using PlainFrame = std::tuple<FrameKind, uint64_t, std::string>;

// All frames of a message up to the fault, if there is one.
struct Outcome {
  std::vector<PlainFrame> frames;
  absl::Status status;
};

Outcome ReadAll(const grpc::ByteBuffer& message) {
  FrameReader reader;
  if (const absl::Status status = reader.Read(message); !status.ok()) return {{}, status};
  Outcome outcome;
  while (true) {
    auto frame = reader.Next();
    if (!frame.ok()) outcome.status = frame.status();
    if (!frame.ok() || !frame->has_value()) return outcome;
    outcome.frames.emplace_back((*frame)->kind, (*frame)->number, BytesOf((*frame)->body));
  }
}

Outcome ReadAll(const std::string& message) { return ReadAll(OfPieces({message})); }

void ExpectBroken(const absl::Status& status, const std::string& text) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const std::string message(status.message());
  EXPECT_THAT(message, StartsWith("the session's protocol is broken: "));
  EXPECT_THAT(message, HasSubstr(text));
}

// Frames of each kind, some without a body.
std::vector<PlainFrame> ExampleFrames() {
  return {{FrameKind::kHello, 0, "hi"},
          {FrameKind::kRequest, 1, StartBytes(5, "trace") + "request"},
          {FrameKind::kAnswer, UINT64_MAX, "a"},
          {FrameKind::kError, uint64_t{1} << 40, ""},
          {FrameKind::kCancel, 3, ""},
          {FrameKind::kPing, 0x0102030405060708, ""},
          {FrameKind::kPong, 0, ""},
          {FrameKind::kGoingAway, 0, std::string(1, '\0')}};
}

// Where each of the frames ends, from the first one's beginning.
std::string Laid(const std::vector<PlainFrame>& frames, std::vector<size_t>* ends) {
  std::string bytes;
  for (const auto& [kind, number, body] : frames) {
    bytes += FrameBytes(static_cast<int>(kind), number, body);
    ends->push_back(bytes.size());
  }
  return bytes;
}

TEST(FrameReaderTest, TheseTestsHaveTheSlicesThatTheySpeakOf) {
  EXPECT_THAT(PiecesOf(OfPieces({"a", "b", "", "c"})), SizeIs(4));
}

TEST(FrameReaderTest, ReadsAMessageHoweverItIsCut) {
  std::vector<size_t> ends;
  ForAllSlices(MessageBytes(Laid(ExampleFrames(), &ends)), [](const grpc::ByteBuffer& message) {
    const Outcome outcome = ReadAll(message);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    ASSERT_EQ(outcome.frames, ExampleFrames());
  });
}

TEST(FrameReaderTest, AMessageThatEndsEarlyIsRefused) {
  std::vector<size_t> ends;
  const std::string message = MessageBytes(Laid(ExampleFrames(), &ends));
  for (size_t bytes = 1; bytes < message.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    const Outcome outcome = ReadAll(message.substr(0, bytes));
    EXPECT_THAT(outcome.frames, SizeIs(0));
    ExpectBroken(outcome.status, "another length");
  }
}

TEST(FrameReaderTest, FramesBeforeOneThatIsCutOffAreRead) {
  std::vector<size_t> ends;
  const std::string frames = Laid(ExampleFrames(), &ends);
  for (size_t bytes = 0; bytes <= frames.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    std::vector<PlainFrame> whole = ExampleFrames();
    const size_t count = std::upper_bound(ends.begin(), ends.end(), bytes) - ends.begin();
    const size_t left = bytes - (count > 0 ? ends[count - 1] : 0);
    whole.resize(count);
    const Outcome outcome = ReadAll(MessageBytes(frames.substr(0, bytes)));
    EXPECT_EQ(outcome.frames, whole);
    if (left == 0) {
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    } else if (left < kFrameHeaderBytes) {
      ExpectBroken(outcome.status,
                   absl::StrCat("a frame's header is cut off after ", left, " bytes"));
    } else {
      ExpectBroken(outcome.status, absl::StrCat("is longer than the rest of its message, ",
                                                left - kFrameHeaderBytes));
    }
  }
}

TEST(FrameReaderTest, FramesThatBreakARuleAreRefused) {
  const std::string max_size = "\xff\xff\xff\xff";
  const struct {
    const char* name;
    std::string frame;
    const char* text;
  } cases[] = {
      {"KindZero", FrameBytes(0, 1, ""), "a frame of the unknown kind 0"},
      {"KindOfNoVersion", FrameBytes(13, 1, ""), "a frame of the unknown kind 13"},
      {"LastKind", FrameBytes(255, 1, ""), "a frame of the unknown kind 255"},
      {"LowestFlag", FrameBytes(6, 1, "", 1), "the flags of a frame"},
      {"HighestFlag", FrameBytes(6, 1, "", 0x80), "the flags of a frame"},
      {"FirstZeroByte", FrameBytes(6, 1, "", 0, 1), "the two bytes behind them must be 0"},
      {"SecondZeroByte", FrameBytes(6, 1, "", 0, 0x8000), "the two bytes behind them must be 0"},
      {"OneByteTooLong", "\1" + FrameBytes(6, 1, "").substr(1), "a frame's body of 1 bytes"},
      {"LongestBody", max_size + FrameBytes(6, 1, "").substr(4), "a frame's body of 4294967295 b"},
      {"HeaderWithoutItsEnd", FrameBytes(6, 1, "").substr(0, 15), "cut off after 15 bytes"},
  };
  const PlainFrame before(FrameKind::kPong, 7, "");
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    ForAllSlices(MessageBytes(FrameBytes(7, 7, "") + c.frame),
                 [&](const grpc::ByteBuffer& message) {
                   const Outcome outcome = ReadAll(message);
                   EXPECT_THAT(outcome.frames, ElementsAre(before));
                   ExpectBroken(outcome.status, c.text);
                 });
  }
}

TEST(FrameReaderTest, TheFieldMustBeTheWholeMessage) {
  const std::string ping = FrameBytes(6, 7, "");
  const std::string nine_bytes = "\x90\x80\x80\x80\x80\x80\x80\x80\x80";  // 16, and there is more
  const std::string ones(9, '\xff');
  const struct {
    const char* name;
    std::string message;
    const char* text;  // nullptr: it is right
  } cases[] = {
      {"Right", "\x0a\x10" + ping, nullptr},
      {"LengthInTwoBytes", std::string("\x0a\x90\x00", 3) + ping, nullptr},
      {"LengthInTenBytes", "\x0a" + nine_bytes + std::string(1, '\0') + ping, nullptr},
      {"LengthInElevenBytes", "\x0a" + nine_bytes + std::string("\x80\0", 2) + ping, "another len"},
      {"LengthOf64BitsMore", "\x0a" + nine_bytes + "\2" + ping, "another length"},
      {"LengthOf2To63", "\x0a" + std::string(9, '\x80') + "\1" + ping, "another length"},
      {"LengthOf2To63More", "\x0a" + nine_bytes + "\1" + ping, "another length"},
      {"LongestLength", "\x0a" + ones + "\1" + ping, "another length"},
      {"LengthWithoutEnd", "\x0a" + ones + ones + ping, "another length"},
      {"LengthCutOff", "\x0a\x90", "another length"},
      {"NoLength", "\x0a", "another length"},
      {"TooShort", "\x0a\x0f" + ping, "another length"},
      {"TooLong", "\x0a\x11" + ping, "another length"},
      {"ZeroBeforeFrames", std::string("\x0a\0", 2) + ping, "another length"},
      {"FieldTwice", "\x0a\x10" + ping + "\x0a\x10" + ping, "another length"},
      {"AnotherFieldBehind", "\x0a\x10" + ping + std::string("\x10\0", 2), "another length"},
      {"AnotherField", "\x12\x10" + ping, "not a SessionMessage"},
      {"AnotherWireType", "\x08\x10" + ping, "not a SessionMessage"},
      {"TagInTwoBytes", std::string("\x8a\x00\x10", 3) + ping, "not a SessionMessage"},
      {"NoField", ping, "not a SessionMessage"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    ForAllSlices(c.message, [&](const grpc::ByteBuffer& message) {
      const Outcome outcome = ReadAll(message);
      if (c.text != nullptr) {
        EXPECT_THAT(outcome.frames, SizeIs(0));
        return ExpectBroken(outcome.status, c.text);
      }
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_THAT(outcome.frames, ElementsAre(PlainFrame(FrameKind::kPing, 7, "")));
    });
  }
}

TEST(FrameReaderTest, AMessageMayHaveNoFrames) {
  for (const std::string& message : {std::string(), std::string("\x0a\0", 2)}) {
    const Outcome outcome = ReadAll(message);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_THAT(outcome.frames, SizeIs(0));
  }
  EXPECT_TRUE(ReadAll(OfPieces({})).status.ok());
}

TEST(FrameReaderTest, BodiesStayWhereTheyArrived) {
  const std::string payload(100'000, 'x');
  const grpc::Slice slice(MessageBytes(FrameBytes(2, 1, StartBytes(0, "trace") + payload)));
  FrameReader reader;
  const absl::Status status = reader.Read(grpc::ByteBuffer(&slice, 1));
  ASSERT_TRUE(status.ok()) << status;
  auto frame = reader.Next();
  ASSERT_TRUE(frame.ok() && frame->has_value());
  ASSERT_TRUE(ReadRequestStart(&(*frame)->body).ok());

  const Slices& body = (*frame)->body;
  ASSERT_THAT(body, SizeIs(1));
  EXPECT_EQ(body[0].size(), payload.size());
  EXPECT_EQ(body[0].end(), slice.end());
}

TEST(RequestStartTest, IsReadHoweverItIsCut) {
  const struct {
    const char* name;
    uint64_t microseconds;
    absl::Duration timeout;
  } cases[] = {
      {"None", 0, absl::InfiniteDuration()},
      {"Shortest", 1, absl::Microseconds(1)},
      {"AnHour", 3'600'000'000, absl::Hours(1)},
      {"Long", (uint64_t{1} << 62) - 1, absl::Microseconds((int64_t{1} << 62) - 1)},
      {"TooLongToCount", uint64_t{1} << 62, absl::InfiniteDuration()},
      {"Negative", uint64_t{1} << 63, absl::InfiniteDuration()},
      {"Longest", UINT64_MAX, absl::InfiniteDuration()},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    for (const std::string traceparent : {"", "00-0af7-b7ad-01"}) {
      for (const std::string rest : {"", "a request"}) {
        ForAllSlices(StartBytes(c.microseconds, traceparent) + rest,
                     [&](const grpc::ByteBuffer& bytes) {
                       Slices body = PiecesOf(bytes);
                       const auto start = ReadRequestStart(&body);
                       ASSERT_TRUE(start.ok()) << start.status();
                       EXPECT_EQ(start->timeout, c.timeout);
                       EXPECT_EQ(start->traceparent, traceparent);
                       EXPECT_EQ(BytesOf(body), rest);
                     });
      }
    }
  }
}

TEST(RequestStartTest, MayHaveATraceOfAtMost256Bytes) {
  const std::string longest(kMaxTraceParentBytes, 't');
  Slices body = PiecesOf(OfPieces({StartBytes(0, longest), "rest"}));
  const auto start = ReadRequestStart(&body);
  ASSERT_TRUE(start.ok()) << start.status();
  EXPECT_EQ(start->traceparent, longest);
  EXPECT_EQ(BytesOf(body), "rest");

  body = PiecesOf(OfPieces({StartBytes(0, longest + "t"), "rest"}));
  ExpectBroken(ReadRequestStart(&body).status(), "a traceparent of 257 bytes, at most 256");
  body = PiecesOf(OfPieces({std::string(8, '\0') + "\xff\xff\xff\xff", "rest"}));
  ExpectBroken(ReadRequestStart(&body).status(), "a traceparent of 4294967295 bytes");
}

TEST(RequestStartTest, CutOffIsRefused) {
  const std::string bytes = StartBytes(5, "traceparent");
  for (size_t size = 0; size < bytes.size(); ++size) {
    SCOPED_TRACE(size);
    Slices body = PiecesOf(OfPieces({bytes.substr(0, size)}));
    ExpectBroken(ReadRequestStart(&body).status(),
                 size < 12 ? absl::StrCat("the body of a request has ", size, " bytes, at least 12")
                           : absl::StrCat("a traceparent of 11 bytes, at most 256 allowed, ",
                                          size - 12, " left"));
  }
}

TEST(PayloadSizesTest, AreReadAsTheyAreWrittenHoweverTheyAreCut) {
  for (const std::vector<uint64_t>& sizes :
       {std::vector<uint64_t>{}, {0}, {1, UINT64_MAX, 0, uint64_t{1} << 40}}) {
    const std::string bytes = WritePayloadSizes(sizes);
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {
      Slices body = PiecesOf(OfPieces({bytes.substr(0, cut), bytes.substr(cut) + "rest"}));

      const auto read = ReadPayloadSizes(4, &body);

      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(std::vector<uint64_t>(read->begin(), read->end()), sizes);
      EXPECT_EQ(BytesOf(ToByteBuffer(body)), "rest");
    }
  }
}

TEST(PayloadSizesTest, ThatAreTooManyOrCutOffAreRefused) {
  const std::string bytes = WritePayloadSizes({1, 2, 3});
  for (size_t size = 0; size < bytes.size(); ++size) {
    Slices body = PiecesOf(OfPieces({bytes.substr(0, size)}));
    ExpectBroken(ReadPayloadSizes(3, &body).status(), "an announcement");
  }
  Slices body = PiecesOf(OfPieces({bytes}));
  ExpectBroken(ReadPayloadSizes(2, &body).status(), "an announcement of 3 payloads, at most 2");
}

TEST(CreditTest, HasEightBytes) {
  for (const uint64_t credit : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    EXPECT_EQ(*ReadCredit(PiecesOf(OfPieces({WriteCredit(credit)}))), credit);
  }
  for (const size_t size : {size_t{0}, size_t{7}, size_t{9}}) {
    ExpectBroken(ReadCredit(PiecesOf(OfPieces({std::string(size, 1)}))).status(), "8 bytes");
  }
}

TEST(RequestStartTest, IsWrittenAsItIsRead) {
  const struct {
    absl::Duration timeout;
    uint64_t microseconds;
  } cases[] = {
      {absl::InfiniteDuration(), 0},
      {absl::Microseconds(1), 1},
      {absl::Milliseconds(1500), 1'500'000},
      // What has run out already must not become "no timeout".
      {absl::Nanoseconds(999), 1},
      {absl::ZeroDuration(), 1},
      {-absl::Seconds(1), 1},
      {-absl::InfiniteDuration(), 1},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::FormatDuration(c.timeout));
    EXPECT_EQ(WriteRequestStart({.timeout = c.timeout, .traceparent = "trace"}),
              StartBytes(c.microseconds, "trace"));
  }
  EXPECT_EQ(WriteRequestStart({}), StartBytes(0, ""));
}

TEST(FrameWriterTest, WritesWhatTheReaderReads) {
  const std::string start = StartBytes(7, "trace");
  FrameWriter writer;
  std::vector<PlainFrame> expected;
  std::string bytes;
  const auto add = [&](FrameKind kind, const std::string& first,
                       const std::vector<std::string>& rest) {
    const Slices slices = PiecesOf(OfPieces(rest));
    std::string body = first;
    for (const std::string& piece : rest) body += piece;
    const uint64_t number = expected.size() << 56 | expected.size();
    writer.Add(kind, number, first, slices);
    expected.emplace_back(kind, number, body);
    bytes += FrameBytes(static_cast<int>(kind), number, body);
    EXPECT_EQ(writer.bytes(), bytes.size());
  };
  // Alone, between copied bodies and next to referred ones.
  for (const size_t size : {0, 1, 1000, 8192, 8193, 70'000, 9000, 0}) {
    add(FrameKind::kRequest, start, {std::string(size, 'a')});
    add(FrameKind::kAnswer, "", {std::string(size, 'b')});
    add(FrameKind::kError, "", {"some", std::string(size, 'c'), "", std::string(size, 'd'), "end"});
  }
  const std::string message = BytesOf(writer.Finish());
  EXPECT_TRUE(message == MessageBytes(bytes));  // without 400 KB of text
  const Outcome outcome = ReadAll(message);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_TRUE(outcome.frames == expected);

  EXPECT_EQ(writer.bytes(), 0u);
  EXPECT_EQ(BytesOf(writer.Finish()), std::string("\x0a\0", 2));
  writer.Add(FrameKind::kPing, 7, "");
  EXPECT_EQ(BytesOf(writer.Finish()), MessageBytes(FrameBytes(6, 7, "")));
}

TEST(FrameWriterTest, RefersToLargeBodiesAndPutsSmallOnesTogether) {
  const std::vector<grpc::Slice> large = {grpc::Slice(std::string(8193, 'a')),
                                          grpc::Slice(std::string(1 << 20, 'b'))};
  const Slices small = PiecesOf(OfPieces({std::string(8192, 'c'), "small"}));
  FrameWriter writer;
  for (int i = 0; i < 100; ++i) writer.Add(FrameKind::kAnswer, i, "small", small);
  writer.Add(FrameKind::kAnswer, 100, "start", large);
  for (int i = 0; i < 100; ++i) writer.Add(FrameKind::kAnswer, i, "small");
  // The field's tag and length, small frames, two large slices, small frames.
  const Slices slices = PiecesOf(writer.Finish());
  ASSERT_THAT(slices, SizeIs(5));
  EXPECT_EQ(slices[2].begin(), large[0].begin());
  EXPECT_EQ(slices[3].begin(), large[1].begin());
}

TEST(FrameWriterTest, WritesPayloadMessages) {
  v1::ExecuteResponse header;
  header.add_results()->mutable_tensor()->set_payload(0);
  FrameWriter writer;
  std::vector<PlainFrame> expected;
  for (const size_t size : {0, 1, 1000, 8192, 8193, 70'000}) {
    const std::vector<grpc::Slice> payloads = {grpc::Slice(std::string(size, 'a')), grpc::Slice(),
                                               grpc::Slice(std::string(size / 2, 'b'))};
    const std::string body = BytesOf(BuildPayloadMessage(header, payloads));
    EXPECT_TRUE(BytesOf(BuildPayloadMessage(header.SerializeAsString(), payloads)) == body) << size;
    EXPECT_EQ(PayloadMessageBytes(header.ByteSizeLong(), payloads), body.size());
    writer.AddPayloadMessage(FrameKind::kAnswer, size, header.SerializeAsString(), payloads);
    expected.emplace_back(FrameKind::kAnswer, size, body);
  }
  const Outcome outcome = ReadAll(writer.Finish());
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_TRUE(outcome.frames == expected);  // without 200 KB of text
}

struct GoldenCase {
  const char* file;
  std::vector<PlainFrame> frames;
};

// What tests/data/wire/session has, made of messages of today.
std::vector<GoldenCase> GoldenCases() {
  v1::SessionHello hello;
  hello.set_version(1);
  hello.set_build("example 1.0");
  v1::SessionHello daemons_hello;
  daemons_hello.set_version(1);
  daemons_hello.mutable_limits()->set_max_requests(256);
  daemons_hello.mutable_limits()->set_max_request_bytes(1 << 20);
  daemons_hello.mutable_limits()->set_max_message_bytes(4 << 20);
  daemons_hello.set_build("opserved 1.0");
  v1::ExecuteResponse answer;
  v1::Result* result = answer.add_results();
  result->mutable_source()->set_output("grad_input");
  result->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
  result->mutable_tensor()->add_shape(3);
  result->mutable_tensor()->set_payload(0);
  answer.add_payloads(absl::StrCat(LittleEndian(0x3f800000), LittleEndian(0xc0000000),
                                   LittleEndian(0)));  // 1, -2, 0
  v1::ErrorDetail detail;
  detail.set_reason("invalid");
  detail.set_operator_("L1LossBackward");
  detail.set_argument("other");
  detail.set_retry_pushback_ms(-1);
  v1::StatusDetails error;
  error.set_code(3);
  error.set_message("L1LossBackward: no input \"other\"");
  error.add_details()->PackFrom(detail);
  v1::SessionGoingAway going_away;
  going_away.set_last_request(3);
  going_away.set_reason("the daemon ends");

  // Gradients of sums of absolute differences, of so many elements.
  const auto request = [](int elements) {
    const uint32_t values[3][3] = {{0x3f800000, 0x40000000, 0x40800000},  // 1, 2, 4
                                   {0x3f800000, 0xbf800000, 0},           // 1, -1, 0
                                   {0, 0x3f800000, 0}};                   // 0, 1, 0
    v1::ExecuteRequest request;
    v1::Invocation* invocation = request.add_invocations();
    invocation->set_operator_("L1LossBackward");
    for (const char* name : {"grad_output", "self", "target"}) {
      v1::NamedTensor* input = invocation->add_inputs();
      input->set_name(name);
      input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
      input->mutable_tensor()->add_shape(elements);
      input->mutable_tensor()->set_payload(request.payloads_size());
      std::string* payload = request.add_payloads();
      for (int i = 0; i < elements; ++i) {
        *payload += LittleEndian(values[request.payloads_size() - 1][i]);
      }
    }
    v1::NamedAttribute* reduction = invocation->add_attributes();
    reduction->set_name("reduction");
    reduction->mutable_value()->set_int64_value(2);
    return request.SerializeAsString();
  };
  v1::ExecuteRequest program;
  v1::NamedTensor* self = program.add_invocations()->add_inputs();
  program.mutable_invocations(0)->set_operator_("Neg");
  self->set_name("self");
  self->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
  self->mutable_tensor()->add_shape(3);
  self->mutable_tensor()->set_payload(1);
  const std::string traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto start = [](absl::Duration timeout, const std::string& trace = "") {
    return WriteRequestStart({.timeout = timeout, .traceparent = trace});
  };
  return {
      {"hello_client", {{FrameKind::kHello, 0, hello.SerializeAsString()}}},
      {"hello_daemon", {{FrameKind::kHello, 0, daemons_hello.SerializeAsString()}}},
      {"request",
       {{FrameKind::kRequest, 1, start(absl::Milliseconds(1500), traceparent) + request(3)}}},
      {"answer", {{FrameKind::kAnswer, 1, answer.SerializeAsString()}}},
      {"error", {{FrameKind::kError, 2, error.SerializeAsString()}}},
      {"cancel", {{FrameKind::kCancel, 3, ""}}},
      {"ping", {{FrameKind::kPing, 7, ""}}},
      {"pong", {{FrameKind::kPong, 7, ""}}},
      {"going_away", {{FrameKind::kGoingAway, 0, going_away.SerializeAsString()}}},
      {"announcement",
       {{FrameKind::kAnnouncement, 5,
         start(absl::Seconds(2)) + WritePayloadSizes({4, 12}) + program.SerializeAsString()}}},
      {"chunks",
       {{FrameKind::kChunk, 5, LittleEndian(0x3f800000)},
        {FrameKind::kPing, 8, ""},
        {FrameKind::kChunk, 5, LittleEndian(0x40000000)}}},
      {"credit", {{FrameKind::kCredit, 5, WriteCredit(uint64_t{3} << 18)}}},
      {"parts",
       {{FrameKind::kPart, 5, answer.SerializeAsString().substr(0, 20)},
        {FrameKind::kPong, 8, ""},
        {FrameKind::kAnswer, 5, answer.SerializeAsString().substr(20)}}},
      {"batch",
       {{FrameKind::kRequest, 4, start(absl::InfiniteDuration()) + request(3)},
        {FrameKind::kPing, UINT64_MAX, ""},
        {FrameKind::kRequest, uint64_t{1} << 40, start(absl::Seconds(2)) + request(1)},
        {FrameKind::kCancel, 4, ""}}},
  };
}

TEST(SessionFramesTest, AreTheBytesThatAreStored) {
  for (const GoldenCase& c : GoldenCases()) {
    SCOPED_TRACE(c.file);
    std::ifstream file(absl::StrCat(OPSERVE_TEST_DATA_DIR, "/wire/session/", c.file, ".bin"),
                       std::ios::binary);
    const std::string stored{std::istreambuf_iterator<char>(file), {}};
    const Outcome outcome = ReadAll(stored);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.frames, c.frames);
    FrameWriter writer;
    for (const auto& [kind, number, body] : c.frames) writer.Add(kind, number, body);
    EXPECT_EQ(BytesOf(writer.Finish()), stored);
  }
}

}  // namespace
}  // namespace opserve::codec
