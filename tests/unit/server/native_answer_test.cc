// The native protocol's words for an answer: as much as its caller does not know.
#include "server/native/native_answer.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

v1::ExecuteResponse Response(const std::string& text) {
  v1::ExecuteResponse response;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &response)) << text;
  return response;
}

// A result that travels, one in shared memory, and two that stay.
RequestAnswer Described() {
  RequestAnswer answer;
  answer.has_results = true;
  answer.payloads.emplace_back(absl::string_view("abcd"));
  answer.kept = {{.handle = "new", .is_new = true, .lease_end = absl::FromUnixSeconds(7)},
                 {.handle = "old", .version = 5}};
  answer.run.device = 3;
  answer.results.resize(4);
  for (uint32_t i = 0; i < 4; ++i) {
    answer.results[i].invocation = i;
    answer.results[i].output = "out";
    answer.results[i].spec = {v1::DATA_TYPE_FLOAT, {1}};
  }
  answer.results[0].payload = 0;
  answer.results[1].range = MemoryRange{.connection = "c", .region = 1, .offset = 64, .size = 4};
  answer.results[2].kept = 0;
  answer.results[3].kept = 1;
  return answer;
}

// Of a request whose protocol knows the results.
RequestAnswer WithKnownResults(bool is_any_kept) {
  RequestAnswer answer = Described();
  answer.has_results = false;
  answer.results.clear();
  if (!is_any_kept) answer.kept.clear();
  return answer;
}

RequestAnswer RequestAnswerOf(PinnedBuffer result) {
  RequestAnswer answer;
  answer.payloads.emplace_back(std::move(result));
  return answer;
}

std::shared_ptr<const KnownRequests::Known> Known() {
  auto known = std::make_shared<KnownRequests::Known>();
  known->answer = Response("results { source { output: \"out\" } tensor { dtype: 1 payload: 0 } }");
  known->answer_bytes = known->answer.SerializeAsString();
  return known;
}

TEST(NativeAnswerTest, SaysWhatItsCallerDoesNotKnow) {
  const char* const kFull =
      R"(results { source { output: "out" } tensor { dtype: 1 shape: 1 payload: 0 } }
          results { source { invocation: 1 output: "out" }
                    tensor { dtype: 1 shape: 1
                             shared_memory { connection: "c" region: 1 offset: 64 size: 4 } } }
          results { source { invocation: 2 output: "out" }
                    tensor { dtype: 1 shape: 1 resident_tensor: "new" }
                    kept { lease_end { seconds: 7 } version: 1 device: 3 } }
          results { source { invocation: 3 output: "out" }
                    tensor { dtype: 1 shape: 1 resident_tensor: "old" }
                    kept { version: 5 device: 3 } })";
  const char* const kBrief =
      "brief { versions: 5 kept { handle: \"new\" lease_end { seconds: 7 } } device: 3 }";
  const struct {
    const char* name;
    RequestAnswer answer;
    AnswerForm form;
    std::string expected;
  } kCases[] = {
      {"all", Described(), {}, kFull},
      {"the caller knows the results", WithKnownResults(true), {.is_brief = true}, kBrief},
      {"it knows them all", WithKnownResults(false), {.is_brief = true}, "brief {}"},
      {"they are those of an equal request",
       WithKnownResults(false),
       {.known = Known()},
       "results { source { output: \"out\" } tensor { dtype: 1 payload: 0 } }"},
      {"a repetition that wants more", WithKnownResults(true), {}, kBrief},
      {"a repetition that wants less", Described(), {.is_brief = true}, kFull},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const v1::ExecuteResponse expected = Response(c.expected);
    std::string made;
    v1::ExecuteResponse read;
    ASSERT_TRUE(read.ParseFromString(std::string(HeaderBytesOf(c.answer, c.form, &made))));
    EXPECT_THAT(read.DebugString(), expected.DebugString());
    EXPECT_THAT(HeaderOf(c.answer, c.form).DebugString(), expected.DebugString());
  }
}

TEST(NativeAnswerTest, AReceiptComesWithEachForm) {
  RequestAnswer answer = WithKnownResults(true);
  answer.is_not_remembered = true;
  answer.run.plan_hits = 9;
  for (AnswerForm form : {AnswerForm{.is_brief = true}, AnswerForm{.known = Known()}}) {
    form.has_receipt = true;
    std::string made;
    v1::ExecuteResponse read;
    ASSERT_TRUE(read.ParseFromString(std::string(HeaderBytesOf(answer, form, &made))));
    EXPECT_EQ(read.receipt().plan_hits(), 9u);
    EXPECT_TRUE(read.receipt().not_remembered());
    EXPECT_EQ(read.has_brief(), form.is_brief);
  }
}

TEST(NativeAnswerTest, SlicesKeepTheirBytesUnlessTheyAreCopiedAtOnce) {
  codec::Slices slices;
  {
    RequestAnswer answer;
    answer.payloads.emplace_back(absl::string_view("kept"));
    answer.payloads.emplace_back(absl::string_view(""));
    slices = PayloadsOf(answer);
    const codec::Slices borrowed = PayloadsOf(answer, 4);
    EXPECT_EQ(static_cast<const void*>(borrowed[0].begin()), answer.payloads[0].view().data());
    EXPECT_NE(PayloadsOf(RequestAnswerOf(PinnedBuffer()), 4)[0].begin(), nullptr);
    EXPECT_EQ(static_cast<const void*>(PayloadsOf(answer, 3)[0].begin()),
              static_cast<const void*>(slices[0].begin()));
  }
  EXPECT_EQ(std::string(slices[0].begin(), slices[0].end()), "kept");
  EXPECT_EQ(slices[1].size(), 0u);
}

TEST(ResultBytesTest, AreThereUntilTheLastReferenceGoes) {
  void* shared = nullptr;
  absl::string_view bytes;
  {
    const ResultBytes one(absl::string_view("a result"));
    ResultBytes other = one;
    ResultBytes moved = std::move(other);
    other = moved;
    bytes = other.view();
    shared = moved.Share();
  }
  EXPECT_THAT(std::string(bytes), HasSubstr("a result"));
  ResultBytes::Release(shared);  // the address sanitizer sees one that is missing or too many
}

}  // namespace
}  // namespace opserve::server
