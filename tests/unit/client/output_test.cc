#include "client/cli/text/output.h"

#include <sstream>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {
namespace {

TEST(FormatTableTest, AlignsTextLeftAndNumbersRight) {
  EXPECT_EQ(FormatTable({{"NAME", "COUNT", "WHERE"}, {"a", "5", "here"}, {"long", "1234567", ""}}),
            "NAME    COUNT  WHERE\n"
            "a           5  here\n"
            "long  1234567\n");
  EXPECT_EQ(FormatTable({{"ONLY", "TITLES"}}), "ONLY  TITLES\n");
}

TEST(WrapTest, BreaksBetweenWordsAndKeepsIndents) {
  EXPECT_EQ(Wrap("one two three", 9, 0), "one two\nthree\n");
  EXPECT_EQ(Wrap("one two three", 9, 2), "  one two\n  three\n");
  EXPECT_EQ(Wrap("a:\n\n  x = y\nend\n", 80, 2), "  a:\n\n    x = y\n  end\n");
  EXPECT_EQ(Wrap("unbreakable", 4, 1), " unbreakable\n");
  EXPECT_EQ(Wrap("", 80, 2), "");
}

TEST(FormatBytesTest, UsesTheLargestUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{64} << 30), "64 GiB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16 EiB");
}

TEST(WriteJsonTest, BytesThatAreNotUtf8DoNotFail) {
  std::ostringstream out;
  WriteJson(out, {{"text", "a\xff"}});
  EXPECT_EQ(out.str(), "{\n  \"text\": \"a\xef\xbf\xbd\"\n}\n");
}

TEST(ProtoJsonTest, NumbersEnumsAndTimesArePlain) {
  v1::GetServerStatusResponse status;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(version: "1" start_time { seconds: 1700000000 }
         devices { device: 1 state: STATE_READY completed_requests: 18446744073709551615 })",
      &status));

  const auto json = ToJson(status);

  EXPECT_EQ(json["start_time"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["devices"][0]["state"], "READY");
  EXPECT_EQ(json["devices"][0]["completed_requests"], UINT64_MAX);
  EXPECT_EQ(json["devices"][0]["lanes"], 0);
  EXPECT_EQ(json["runtime"], "");
}

TEST(ProtoJsonTest, OnlyTheSetMemberOfAOneofAppears) {
  v1::OperatorDescriptor scale;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(inputs { dtypes: DATA_TYPE_FLOAT16 dtypes: DATA_TYPE_BF16 }
         attributes { type: TYPE_BOOL default_value { bool_value: false } })",
      &scale));

  const auto json = ToJson(scale);

  EXPECT_EQ(json["inputs"][0]["dtypes"].dump(), R"(["FLOAT16","BF16"])");
  EXPECT_EQ(json["attributes"][0]["type"], "BOOL");
  EXPECT_EQ(json["attributes"][0]["default_value"].dump(), R"({"bool_value":false})");
  EXPECT_FALSE(json["attributes"][0].contains("minimum"));
}

}  // namespace
}  // namespace opserve::cli
