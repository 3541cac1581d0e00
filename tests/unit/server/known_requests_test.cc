// Programs of ordinary requests that are kept: for equal messages only, and not too many.
#include "server/native/known_requests.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/native/native_request.h"
#include "server/program/bind_program.h"
#include "tests/unit/server/test_operators.h"

namespace opserve::server {
namespace {

using Known = std::shared_ptr<const KnownRequests::Known>;

constexpr uint64_t kTensorBytes = 24;

v1::ExecuteRequest Request() {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("L1LossBackward");
  uint32_t payload = 0;
  for (const char* name : {"grad_output", "self", "target"}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->add_shape(2);
    input->mutable_tensor()->add_shape(3);
    input->mutable_tensor()->set_payload(payload++);
  }
  return request;
}

std::vector<codec::Payload> Payloads(std::vector<size_t> sizes = {kTensorBytes, kTensorBytes,
                                                                  kTensorBytes}) {
  std::vector<codec::Payload> payloads;
  for (const size_t size : sizes) payloads.push_back({.size = size, .pieces = {}});
  return payloads;
}

absl::StatusOr<std::shared_ptr<ResidentTensor>> FindAny(absl::string_view /*handle*/) {
  auto tensor = std::make_shared<ResidentTensor>();
  tensor->spec = {v1::DATA_TYPE_FLOAT, {2, 3}};
  return tensor;
}

ProgramCall BoundTo(const v1::ExecuteRequest& request,
                    const std::vector<uint64_t>& sizes = {kTensorBytes, kTensorBytes,
                                                          kTensorBytes}) {
  auto bound =
      BindProgram(TranslateProgram(request), sizes, TestOperators(), ProgramLimits(), FindAny);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *std::move(bound);
}

class KnownRequestsTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Program> Keep(const v1::ExecuteRequest& request, absl::string_view header) {
    return programs_->Keep(header, request, BoundTo(request));
  }

  KnownRequestCounters counters_;
  std::unique_ptr<KnownRequests> programs_ = std::make_unique<KnownRequests>(counters_);
};

TEST_F(KnownRequestsTest, AnEqualMessageGetsTheProgram) {
  EXPECT_EQ(programs_->Find("header", Payloads()), nullptr);
  const auto kept = Keep(Request(), "header");
  const Known known = programs_->Find("header", Payloads());
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->program, kept);
  EXPECT_EQ(known->message.SerializeAsString(), Request().SerializeAsString());
  EXPECT_FALSE(kept->invocations[0].plan_key.empty());
  EXPECT_EQ(counters_.hits, 1);
  EXPECT_EQ(counters_.misses, 1);
  EXPECT_EQ(counters_.programs, 1);
}

TEST_F(KnownRequestsTest, ACallOfAPreparedProgramGetsThatVeryProgram) {
  const ProgramCall bound = BoundTo(Request());
  v1::ExecuteRequest call;
  call.mutable_prepared()->set_program("handle");
  EXPECT_EQ(programs_->Keep("call", call, bound), bound.program);
  const Known known = programs_->Find("call", Payloads());
  ASSERT_NE(known, nullptr);
  EXPECT_EQ(known->program, bound.program);
  EXPECT_EQ(known->request.prepared->program, "handle");
}

TEST_F(KnownRequestsTest, OtherMessagesDoNot) {
  Keep(Request(), "header");
  EXPECT_EQ(programs_->Find("headers", Payloads()), nullptr);
  EXPECT_EQ(programs_->Find("Header", Payloads()), nullptr);
  EXPECT_EQ(programs_->Find("header", Payloads({kTensorBytes, kTensorBytes})), nullptr);
  EXPECT_EQ(programs_->Find("header", Payloads({kTensorBytes, kTensorBytes, kTensorBytes + 1})),
            nullptr);
  EXPECT_EQ(
      programs_->Find("header", Payloads({kTensorBytes, kTensorBytes, kTensorBytes, kTensorBytes})),
      nullptr);
}

TEST_F(KnownRequestsTest, SomeRequestsAreNotKept) {
  const struct {
    const char* name;
    std::function<void(v1::ExecuteRequest*)> change;
    size_t header_bytes = 100;
  } kCases[] = {
      {"a key", [](auto* request) { request->set_idempotency_key("key"); }},
      {"a resident tensor",
       [](auto* request) {
         request->mutable_invocations(0)->mutable_inputs(0)->mutable_tensor()->set_resident_tensor(
             "a");
         request->mutable_invocations(0)->mutable_inputs(1)->mutable_tensor()->set_payload(0);
         request->mutable_invocations(0)->mutable_inputs(2)->mutable_tensor()->set_payload(1);
       }},
      {"a result that stays", [](auto* request) { request->add_results()->mutable_keep(); }},
      {"seventeen invocations",
       [](auto* request) {
         for (int i = 0; i < 16; ++i) *request->add_invocations() = request->invocations(0);
       }},
      {"a large header", [](auto*) {}, 2049},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    v1::ExecuteRequest request = Request();
    test.change(&request);
    const bool has_resident = request.invocations(0).inputs(0).tensor().has_resident_tensor();
    const ProgramCall bound =
        BoundTo(request, std::vector<uint64_t>(has_resident ? 2 : 3, kTensorBytes));
    const std::string header(test.header_bytes, 'x');
    EXPECT_EQ(programs_->Keep(header, request, bound), bound.program);
    EXPECT_EQ(programs_->Find(
                  header, Payloads(has_resident ? std::vector<size_t>{kTensorBytes, kTensorBytes}
                                                : std::vector<size_t>(3, kTensorBytes))),
              nullptr);
  }
  EXPECT_EQ(counters_.misses, 0);
  EXPECT_EQ(counters_.programs, 0);
}

TEST_F(KnownRequestsTest, TheProgramThatWasNotUsedForTheLongestTimeMakesRoom) {
  for (int i = 0; i < 32; ++i) Keep(Request(), absl::StrCat("header ", i));
  EXPECT_NE(programs_->Find("header 0", Payloads()), nullptr);
  Keep(Request(), "one more");
  EXPECT_NE(programs_->Find("header 0", Payloads()), nullptr);
  EXPECT_EQ(programs_->Find("header 1", Payloads()), nullptr);
  EXPECT_NE(programs_->Find("one more", Payloads()), nullptr);
  EXPECT_EQ(counters_.programs, 32);
  programs_.reset();
  EXPECT_EQ(counters_.programs, 0);
}

}  // namespace
}  // namespace opserve::server
