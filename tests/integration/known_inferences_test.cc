// Open Inference requests that come again, with other ids and other elements.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/kserve/known_inferences.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"
#include "tests/integration/metric_value.h"

namespace opserve::server {
namespace {

using inference::ModelInferRequest;

constexpr int64_t kElements = 100;

TEST(InferenceHeaderTest, IsAllButTheId) {
  ModelInferRequest request = OnesModel(kElements);
  const std::string without = request.SerializeAsString();
  for (const std::string& id : {std::string(), std::string("a"), std::string(5000, 'x')}) {
    request.set_id(id);
    const std::string header = request.SerializeAsString();
    const auto split = SplitInferenceHeader(header);
    ASSERT_TRUE(split.has_value());
    EXPECT_EQ(split->text, without);
    EXPECT_EQ(split->id, id);
  }
  // As protobuf reads it, the last of several counts.
  request.set_id("first");
  ModelInferRequest second;
  second.set_id("second");
  const std::string twice = request.SerializeAsString() + second.SerializeAsString();
  EXPECT_EQ(SplitInferenceHeader(twice)->id, "second");
  EXPECT_EQ(SplitInferenceHeader(twice)->text, without);
}

TEST(InferenceHeaderTest, WhatAParserHasToLookAtIsNone) {
  ModelInferRequest request = OnesModel(kElements);
  request.set_id("caf\xc3\xa9");
  EXPECT_FALSE(SplitInferenceHeader(request.SerializeAsString()).has_value());
  request.set_id("abc");
  const std::string header = request.SerializeAsString();
  for (size_t cut = 1; cut < header.size(); ++cut) {
    const auto split = SplitInferenceHeader(absl::string_view(header).substr(0, cut));
    // Cut between two fields it is a message.
    if (split) {
      EXPECT_TRUE(ModelInferRequest().ParseFromString(header.substr(0, cut))) << cut;
    }
  }
  EXPECT_FALSE(SplitInferenceHeader("\xff\xff\xff").has_value());
}

class KnownInferencesTest : public ::testing::Test {
 protected:
  double Count(const char* result) {
    return MetricValue(daemon_.daemon(), "opserve_bound_program_requests_total",
                       {{"result", result}});
  }

  InProcessDaemon daemon_;
  const std::unique_ptr<InferenceStub> stub_ = NewInferenceStub(daemon_.target());
};

TEST_F(KnownInferencesTest, EqualRequestsHaveTheirOwnIdsAndElements) {
  for (int i = 0; i < 20; ++i) {
    ModelInferRequest request = OnesInference(kElements);
    request.set_id(absl::StrCat("request ", i));
    const InferResult result = Infer(*stub_, request);
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_EQ(result.response.id(), request.id());
    EXPECT_TRUE(IsAllOnes(result.response, kElements));
    // The same header, and self - target is 0.
    request.set_raw_input_contents(2, request.raw_input_contents(1));
    const InferResult equal = Infer(*stub_, request);
    ASSERT_TRUE(equal.status.ok());
    EXPECT_EQ(equal.response.outputs(0).name(), "grad_input");
    EXPECT_EQ(equal.response.raw_output_contents(0), RawElements(std::vector<float>(kElements, 0)));
  }
  // Each polling thread meets it once.
  EXPECT_GE(Count("hit"), 30);
}

TEST_F(KnownInferencesTest, OthersAreOthers) {
  ASSERT_TRUE(IsAllOnes(Infer(*stub_, OnesInference(kElements)).response, kElements));
  ModelInferRequest longer = OnesInference(kElements + 1);
  EXPECT_TRUE(IsAllOnes(Infer(*stub_, longer).response, kElements + 1));
  // The header of one, with the elements of the other.
  ModelInferRequest wrong = OnesInference(kElements);
  wrong.set_id("wrong");
  wrong.set_raw_input_contents(1, wrong.raw_input_contents(1) + "1234");
  const grpc::Status status = Infer(*stub_, wrong).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("[request id: wrong]"));
}

// Their elements are in the header.
TEST_F(KnownInferencesTest, TypedContentsAreNotKept) {
  for (int i = 0; i < 3; ++i) {
    ModelInferRequest request = OnesModel(kElements);
    request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(0);
    for (const int input : {1, 2}) {
      for (int64_t j = 0; j < kElements; ++j) {
        request.mutable_inputs(input)->mutable_contents()->add_fp32_contents(
            static_cast<float>(i + input));
      }
    }
    const InferResult result = Infer(*stub_, request);
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
  }
  EXPECT_EQ(Count("hit"), 0);
  EXPECT_EQ(Count("miss"), 0);
}

}  // namespace
}  // namespace opserve::server
