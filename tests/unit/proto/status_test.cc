#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "proto/status/reason.h"

namespace opserve {
namespace {

using testing::EndsWith;

TEST(ReasonTest, EachHasATextOfItsOwn) {
  std::set<std::string> texts;
  for (size_t i = 0; i < kReasonCount; ++i) {
    const auto reason = static_cast<Reason>(i);
    const ReasonFacts& facts = FactsOf(reason);
    EXPECT_EQ(facts.reason, reason);
    EXPECT_EQ(ReasonFromText(facts.text), reason) << facts.text;
    EXPECT_NE(facts.code, absl::StatusCode::kOk) << facts.text;
    EXPECT_TRUE(texts.insert(std::string(facts.text)).second) << facts.text;
  }
  EXPECT_EQ(texts.count(""), 0);
}

TEST(ReasonTest, UnknownTextsAreNoReason) {
  for (const char* text : {"", "queue_fulL", "a_reason_of_tomorrow"}) {
    EXPECT_EQ(ReasonFromText(text), Reason::kNone) << text;
  }
}

TEST(ErrorTest, HasTheReasonsUsualCode) {
  const absl::Status error = MakeError(Reason::kQueueFull, "full", 250);
  EXPECT_EQ(error, [] {
    absl::Status expected = absl::ResourceExhaustedError("full");
    v1::ErrorDetail detail;
    detail.set_reason("queue_full");
    detail.set_retry_pushback_ms(250);
    SetErrorDetail(detail, &expected);
    return expected;
  }());
  EXPECT_EQ(ErrorReasonOf(error), Reason::kQueueFull);
}

TEST(ErrorTest, NeverFitsIsNeverRepeated) {
  const absl::Status error = NeverFits(Reason::kDeviceMemory, "too much");
  EXPECT_EQ(error.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorDetailOf(error)->retry_pushback_ms(), -1);
}

TEST(ErrorTest, NamesThePlace) {
  struct Case {
    ErrorPlace place;
    const char* message;
  };
  for (const Case& c : {Case{{.operator_name = "Matmul", .argument = "self"}, "Matmul: self: bad"},
                        Case{{.operator_name = "Matmul"}, "Matmul: bad"},
                        Case{{.argument = "self"}, "self: bad"}, Case{{}, "bad"}}) {
    const absl::Status error = CallError(Reason::kInvalid, c.place, "bad");
    EXPECT_EQ(error.message(), c.message);
    EXPECT_EQ(ErrorDetailOf(error)->operator_(), c.place.operator_name);
    EXPECT_EQ(ErrorDetailOf(error)->argument(), c.place.argument);
  }
}

TEST(ErrorTest, PlacesFurtherUpAddToTheDetail) {
  const absl::Status error =
      AtPlace({.invocation = 3},
              AtPlace({.operator_name = "outer"},
                      CallError(Reason::kTooLarge, {.operator_name = "inner", .argument = "self"},
                                "is large", 161002)));
  const v1::ErrorDetail detail = *ErrorDetailOf(error);
  EXPECT_EQ(detail.reason(), "too_large");
  EXPECT_EQ(detail.operator_(), "outer");
  EXPECT_EQ(detail.argument(), "self");
  EXPECT_EQ(detail.invocation(), 3);
  EXPECT_EQ(detail.aclnn_status(), 161002);
  EXPECT_EQ(error.message(), "inner: self: is large");
}

TEST(ErrorTest, APlaceGivesOtherErrorsADetail) {
  const absl::Status error = AtPlace({.operator_name = "Matmul"}, absl::InternalError("broken"));
  EXPECT_EQ(ErrorDetailOf(error)->operator_(), "Matmul");
  EXPECT_EQ(ErrorReasonOf(error), Reason::kNone);
  EXPECT_TRUE(AtPlace({.operator_name = "Matmul"}, absl::OkStatus()).ok());
}

TEST(ErrorTest, AnotherMessageKeepsTheDetail) {
  const absl::Status error = WithMessage("said better", MakeError(Reason::kDraining, "said", 10));
  EXPECT_EQ(error.message(), "said better");
  EXPECT_EQ(error.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrorDetailOf(error)->retry_pushback_ms(), 10);
}

TEST(ErrorTest, QuotedTextIsCut) {
  const std::string huge(size_t{50} << 20, 'x');
  const absl::Status error =
      AtPlace({.operator_name = huge, .argument = huge}, InvalidCall(huge, huge, huge));
  EXPECT_LE(error.message().size(), kMaxErrorBytes + 3);
  EXPECT_THAT(std::string(error.message()), EndsWith("..."));
  EXPECT_LE(ErrorDetailOf(error)->operator_().size(), kMaxErrorNameBytes + 3);
  EXPECT_LE(ErrorDetailOf(error)->argument().size(), kMaxErrorNameBytes + 3);
}

TEST(ErrorTest, CharactersAreNotCutApart) {
  EXPECT_EQ(Shortened("naïve", 3), "na...");
  EXPECT_EQ(Shortened("naïve", 4), "naï...");
  EXPECT_EQ(Shortened("naïve", 6), "naïve");
}

}  // namespace
}  // namespace opserve
