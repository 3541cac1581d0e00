#include "server/net/http2_inspector.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/net/client_hello.h"
#include "tests/integration/http2_frames.h"

namespace opserve::server {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Http2Limits SmallLimits() {
  return {.max_header_block_bytes = 1000,
          .max_continuations = 3,
          .stream_burst = 10,
          .reset_burst = 6,
          .control_burst = 30,
          .identified_stream_burst = 40,
          .identified_reset_burst = 25,
          .identified_control_burst = 50,
          .streams_per_second = 2,
          .identified_streams_per_second = 20,
          .resets_per_second = 2,
          .control_per_second = 4,
          .unidentified_bytes = 8192,
          .unidentified_bytes_per_second = 2048};
}

std::string Times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string Block(size_t bytes, uint8_t flags) {
  return Http2Frame(kHttp2Headers, flags, 1, std::string(bytes, 'x'));
}
std::string Continuation(size_t bytes, uint8_t flags, uint32_t stream = 1) {
  return Http2Frame(kHttp2Continuation, flags, stream, std::string(bytes, 'x'));
}
std::string Data(size_t bytes, uint8_t flags = 0) {
  return Http2Frame(kHttp2Data, flags, 1, std::string(bytes, 'x'));
}
std::string Control(uint8_t type, size_t bytes) {
  return Http2Frame(type, 0, 0, std::string(bytes, '\0'));
}

const std::string kCall = Block(20, kHttp2EndHeaders);
const std::string kReset = Http2Frame(kHttp2ResetStream, 0, 1, std::string(4, '\0'));
const std::string kPing = Control(kHttp2Ping, 8);
const std::string kEmptySettings = Control(kHttp2Settings, 0);

struct Case {
  const char* name;
  std::string bytes;  // after the preface
  Flood flood;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"Nothing", "", Flood::kNone},
      {"OneCall", kEmptySettings + kCall + Data(100, kHttp2EndStream), Flood::kNone},
      {"ABlockInFourFrames",
       Block(10, 0) + Times(2, Continuation(10, 0)) + Continuation(10, kHttp2EndHeaders),
       Flood::kNone},
      {"ABlockInFiveFrames", Block(10, 0) + Times(4, Continuation(10, 0)), Flood::kHeaders},
      {"EmptyContinuations", Block(10, 0) + Times(4, Continuation(0, 0)), Flood::kHeaders},
      {"ALargeBlock", Block(1000, kHttp2EndHeaders), Flood::kNone},
      {"ATooLargeBlock", Block(1001, kHttp2EndHeaders), Flood::kHeaders},
      {"ATooLargeBlockInPieces", Block(600, 0) + Continuation(401, kHttp2EndHeaders),
       Flood::kHeaders},
      {"BlocksDoNotAddUp", Times(5, Block(900, kHttp2EndHeaders)), Flood::kNone},
      {"AnotherFrameWithinABlock", Block(10, 0) + kPing, Flood::kMalformed},
      {"AnotherStreamWithinABlock", Block(10, 0) + Continuation(10, 0, 3), Flood::kMalformed},
      {"AContinuationOfNothing", Continuation(10, 0), Flood::kMalformed},
      {"AsManyCallsAsMayBe", Times(10, kCall), Flood::kNone},
      {"OneCallMore", Times(11, kCall), Flood::kStreams},
      {"AsManyResetsAsMayBe", Times(6, kCall + kReset), Flood::kNone},
      {"OneResetMore", Times(7, kCall + kReset), Flood::kResets},
      {"ResetsOfNothing", Times(7, kReset), Flood::kResets},
      {"AsManyPingsAsMayBe", Times(30, kPing), Flood::kNone},
      {"OnePingMore", Times(31, kPing), Flood::kControlFrames},
      {"SettingsFrames", Times(16, kEmptySettings), Flood::kControlFrames},
      {"OneFrameOfManySettings", Control(kHttp2Settings, 6 * 29), Flood::kControlFrames},
      {"WindowUpdates", Times(31, Control(kHttp2WindowUpdate, 4)), Flood::kControlFrames},
      {"Priorities", Times(31, Control(kHttp2Priority, 5)), Flood::kControlFrames},
      {"UnknownFrames", Times(31, Control(0xfa, 1)), Flood::kControlFrames},
      {"LargeUnknownFrames", Times(2, Control(0xfa, 16 << 10)), Flood::kControlFrames},
      {"EmptyData", kCall + Times(31, Data(0)), Flood::kControlFrames},
      {"TinyData", kCall + Times(31, Data(15)), Flood::kControlFrames},
      {"EndsOfStreams", Times(4, kCall + Data(0, kHttp2EndStream)), Flood::kNone},
      {"EndsOfNothing", Times(32, Data(0, kHttp2EndStream)), Flood::kControlFrames},
      {"DataOfNobody", kCall + Data(8192), Flood::kNone},
      {"TooMuchDataOfNobody", kCall + Data(8193), Flood::kData},
      {"ManyDataFramesOfNobody", kCall + Times(9, Data(100)), Flood::kData},
  };
  return *cases;
}

class Http2InspectorTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Http2InspectorTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(Http2InspectorTest, JudgesAtOnce) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector inspector(limits, 0);
  EXPECT_EQ(inspector.Read(kHttp2Preface + GetParam().bytes), GetParam().flood);
  if (GetParam().flood == Flood::kNone) return;
  EXPECT_EQ(inspector.Read(kCall), GetParam().flood) << "and stays with it";
}

TEST_P(Http2InspectorTest, JudgesTheSameWhereverItIsCut) {
  const Http2Limits limits = SmallLimits();
  const std::string bytes = kHttp2Preface + GetParam().bytes;
  for (size_t cut = 0; cut <= std::min<size_t>(bytes.size(), 600); ++cut) {
    Http2Inspector inspector(limits, 0);
    inspector.Read(absl::string_view(bytes).substr(0, cut));
    EXPECT_EQ(inspector.Read(absl::string_view(bytes).substr(cut)), GetParam().flood) << cut;
  }
  Http2Inspector inspector(limits, 0);
  Flood flood = Flood::kNone;
  for (char byte : bytes) flood = inspector.Read({&byte, 1});
  EXPECT_EQ(flood, GetParam().flood) << "byte by byte";
}

TEST(Http2InspectorTest, RefusesOtherProtocols) {
  const Http2Limits limits = SmallLimits();
  EXPECT_EQ(Http2Inspector(limits, 0).Read("GET / HTTP/1.1\r\n"), Flood::kMalformed);
  EXPECT_EQ(Http2Inspector(limits, 0).Read("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r"), Flood::kMalformed);
  EXPECT_EQ(Http2Inspector(limits, 0).Read("PRI * HT"), Flood::kNone) << "may become HTTP/2";
}

// A flood that time makes good: `bytes` may come once in `period`, and not twice.
struct RateCase {
  std::string bytes;
  int64_t period;
  Flood flood;
};

TEST(Http2InspectorTest, AccountsFillWithTime) {
  const Http2Limits limits = SmallLimits();
  for (const RateCase& c : {RateCase{Times(10, kCall), 5 * kSecond, Flood::kStreams},
                            RateCase{Times(6, kReset), 3 * kSecond, Flood::kResets},
                            RateCase{Times(30, kPing), 15 * kSecond / 2, Flood::kControlFrames},
                            RateCase{Data(8192), 4 * kSecond, Flood::kData}}) {
    Http2Inspector inspector(limits, 0);
    EXPECT_EQ(inspector.Read(kHttp2Preface), Flood::kNone);
    for (int i = 1; i <= 5; ++i) {
      EXPECT_EQ(inspector.Read(c.bytes), Flood::kNone) << i;
      inspector.Advance({.now_ns = i * c.period});
    }
    EXPECT_EQ(inspector.Read(c.bytes), Flood::kNone);
    EXPECT_EQ(inspector.Read(c.bytes), c.flood) << "accounts hold no more than their burst";
  }
}

TEST(Http2InspectorTest, IdentifiedCallsPayForTheirStreams) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector inspector(limits, 0);
  inspector.Read(kHttp2Preface);
  // The count of calls overflows on the way.
  constexpr uint32_t kMask = (uint32_t{1} << 29) - 1;
  uint32_t calls = kMask - 500;
  inspector.Advance({.is_identified = true, .identified_calls = calls});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(inspector.Read(kCall), Flood::kNone) << i;
    inspector.Advance({.is_identified = true, .identified_calls = ++calls & kMask});
  }
  EXPECT_EQ(inspector.Read(Times(40, kCall)), Flood::kNone) << "four times the others' burst";
  EXPECT_EQ(inspector.Read(kCall), Flood::kStreams);
}

// As much as an account holds before and after the first identified call.
struct BurstCase {
  std::string bytes;
  int before;
  int after;
  Flood flood;
};

TEST(Http2InspectorTest, TheFirstIdentifiedCallMakesTheAccountsLarger) {
  const Http2Limits limits = SmallLimits();
  for (const BurstCase& c :
       {BurstCase{kCall, 10, 40, Flood::kStreams}, BurstCase{kReset, 6, 25, Flood::kResets},
        BurstCase{kPing, 30, 50, Flood::kControlFrames}}) {
    Http2Inspector stranger(limits, 0);
    EXPECT_EQ(stranger.Read(kHttp2Preface + Times(c.before, c.bytes)), Flood::kNone);
    EXPECT_EQ(stranger.Read(c.bytes), c.flood);

    Http2Inspector tenant(limits, 0);
    EXPECT_EQ(tenant.Read(kHttp2Preface + Times(c.before, c.bytes)), Flood::kNone);
    tenant.Advance({.is_identified = true});
    EXPECT_EQ(tenant.Read(Times(c.after - c.before, c.bytes)), Flood::kNone);
    EXPECT_EQ(tenant.Read(c.bytes), c.flood);
  }
}

TEST(Http2InspectorTest, PacedConnectionsHaveLittleUntilTheFirstIdentifiedCall) {
  const Http2Limits limits = PacedLimits(Http2Limits());
  for (const BurstCase& c :
       {BurstCase{kCall, 8, 1024, Flood::kStreams}, BurstCase{kReset, 4, 1000, Flood::kResets},
        BurstCase{kPing, 64, 2000, Flood::kControlFrames}}) {
    Http2Inspector stranger(limits, 0);
    EXPECT_EQ(stranger.Read(kHttp2Preface + Times(c.before, c.bytes)), Flood::kNone);
    EXPECT_EQ(stranger.Read(c.bytes), c.flood);

    Http2Inspector tenant(limits, 0);
    tenant.Read(kHttp2Preface);
    tenant.Advance({.is_identified = true});
    EXPECT_EQ(tenant.Read(Times(c.after, c.bytes)), Flood::kNone);
    EXPECT_EQ(tenant.Read(c.bytes), c.flood);
  }
}

TEST(Http2InspectorTest, AHundredFirstCallsAreNoFlood) {
  const Http2Limits limits;
  Http2Inspector inspector(limits, 0);
  const std::string watch_and_calls = Times(101, kCall + Data(100, kHttp2EndStream));
  EXPECT_EQ(inspector.Read(kHttp2Preface + watch_and_calls), Flood::kNone);
}

TEST(Http2InspectorTest, SaysWhetherThePeerSpeaksHttp2) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector inspector(limits, 0);
  inspector.Read("PRI * HT");
  EXPECT_FALSE(inspector.has_preface());
  inspector.Read(absl::string_view(kHttp2Preface).substr(8));
  EXPECT_TRUE(inspector.has_preface());
}

TEST(Http2InspectorTest, AnswersPayForResetsAndAcknowledgements) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector inspector(limits, 0);
  inspector.Read(kHttp2Preface);
  for (uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_EQ(inspector.Read(kReset), Flood::kNone) << i;
    ASSERT_EQ(inspector.Read(Times(2, Control(kHttp2WindowUpdate, 4))), Flood::kNone) << i;
    inspector.Advance({.sent_bytes = 64 * i});
  }
  EXPECT_EQ(inspector.Read(Times(7, kReset)), Flood::kResets);
}

TEST(Http2InspectorTest, IdentifiedConnectionsMaySendAnyAmountOfData) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector inspector(limits, 0);
  inspector.Read(kHttp2Preface + kCall);
  inspector.Advance({.is_identified = true, .identified_calls = 1});
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(inspector.Read(Data(16 << 10)), Flood::kNone);
}

TEST(Http2InspectorTest, NamesEveryFlood) {
  std::vector<absl::string_view> names;
  for (size_t i = 0; i < kNumFloods; ++i) names.push_back(FloodName(static_cast<Flood>(i)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

std::string ClientHello(size_t record_bytes) {
  std::string hello("\x16\x03\x01", 3);
  hello.push_back(static_cast<char>(record_bytes >> 8));
  hello.push_back(static_cast<char>(record_bytes));
  hello += std::string("\x01\x00\x02\x00\x03\x03", 6);
  for (int i = 0; i < 32; ++i) hello.push_back(static_cast<char>(i));
  return hello + std::string(200, 'x');
}

TEST(ClientHelloReaderTest, ReadsTheNumberWhereverItIsCut) {
  using State = ClientHelloReader::State;
  const std::string hello = ClientHello(517);
  for (size_t cut = 0; cut < hello.size(); ++cut) {
    ClientHelloReader reader;
    EXPECT_EQ(reader.Read(hello.substr(0, cut)), cut < 43 ? State::kReading : State::kDone);
    EXPECT_EQ(reader.Read(hello.substr(cut)), State::kDone);
    for (uint8_t i = 0; i < 32; ++i) EXPECT_EQ(reader.random()[i], i);
  }
}

TEST(ClientHelloReaderTest, RefusesWhatHidesTheNumber) {
  using State = ClientHelloReader::State;
  EXPECT_EQ(ClientHelloReader().Read(ClientHello(38)), State::kDone);
  EXPECT_EQ(ClientHelloReader().Read(ClientHello(37)), State::kMalformed);
  EXPECT_EQ(ClientHelloReader().Read("PRI * HTTP/2.0\r\n"), State::kMalformed);
  EXPECT_EQ(ClientHelloReader().Read("\x80\x2e\x01"), State::kMalformed) << "of SSL 2";
  EXPECT_EQ(ClientHelloReader().Read("\x15\x03\x01"), State::kMalformed) << "an alert";
}

}  // namespace
}  // namespace opserve::server
