#include "server/native/native_request.h"
#include "server/program/bind_program.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/test_operators.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

v1::NamedTensor* AddInput(v1::Invocation* invocation, const char* name,
                          const std::vector<int64_t>& shape, uint32_t payload) {
  v1::NamedTensor* input = invocation->add_inputs();
  input->set_name(name);
  input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
  input->mutable_tensor()->mutable_shape()->Add(shape.begin(), shape.end());
  input->mutable_tensor()->set_payload(payload);
  return input;
}

// L1LossBackward of three [2,3] tensors in payloads 0, 1 and 2, of 24 bytes each.
v1::ExecuteRequest L1Request() {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("L1LossBackward");
  AddInput(invocation, "grad_output", {2, 3}, 0);
  AddInput(invocation, "self", {2, 3}, 1);
  AddInput(invocation, "target", {2, 3}, 2);
  return request;
}

// KlDivBackward followed by LogSoftmaxBackward of its output; payloads 0 to 3.
v1::ExecuteRequest TwoStepRequest() {
  v1::ExecuteRequest request = L1Request();
  request.mutable_invocations(0)->set_operator_("KlDivBackward");
  v1::Invocation* second = request.add_invocations();
  second->set_operator_("LogSoftmaxBackward");
  v1::NamedTensor* input = second->add_inputs();
  input->set_name("grad_output");
  input->mutable_tensor()->mutable_invocation_output()->set_invocation(0);
  AddInput(second, "output", {2, 3}, 3);
  return request;
}

// Resident tensors [2,3] of FLOAT: "a" and "b" on device 0, "c" on device 1, "lost" lost.
absl::StatusOr<std::shared_ptr<ResidentTensor>> FindNamedResident(absl::string_view handle) {
  if (handle == "lost") {
    return MakeError(Reason::kTensorLost, "lost");
  }
  if (handle != "a" && handle != "b" && handle != "c") {
    return MakeError(Reason::kTensorUnknown, "unknown");
  }
  auto tensor = std::make_shared<ResidentTensor>();
  tensor->spec = {v1::DATA_TYPE_FLOAT, {2, 3}};
  tensor->device = handle == "c" ? 1 : 0;
  return tensor;
}

absl::StatusOr<ProgramCall> Bind(const v1::ExecuteRequest& request,
                                 const std::vector<uint64_t>& payload_bytes) {
  ProgramLimits limits;
  limits.max_invocations = 3;
  limits.max_tensor_bytes = 1000;
  limits.max_program_bytes = 2000;
  return BindProgram(TranslateProgram(request), payload_bytes, TestOperators(), limits,
                     FindNamedResident);
}

TEST(BindProgramTest, OneInvocation) {
  const auto bound = Bind(L1Request(), {24, 24, 24});

  ASSERT_TRUE(bound.ok()) << bound.status();
  ASSERT_EQ(bound->program->invocations.size(), 1u);
  const BoundInvocation& invocation = bound->program->invocations[0];
  EXPECT_EQ(invocation.op->descriptor->name, "L1LossBackward");
  EXPECT_EQ(invocation.outputs.at(0).spec, (TensorSpec{v1::DATA_TYPE_FLOAT, {2, 3}}));
  EXPECT_EQ(invocation.inputs[1].strides, (Shape{3, 1}));
  EXPECT_EQ(bound->program->results, (std::vector<BoundResult>{{{0, 0}}}));
  EXPECT_EQ(bound->program->input_bytes, 3 * 24u);
  EXPECT_EQ(bound->program->output_bytes, 24u);
  EXPECT_EQ(bound->device(), std::nullopt);
}

TEST(BindProgramTest, AnOutputIsReadByALaterInvocation) {
  const auto bound = Bind(TwoStepRequest(), {24, 24, 24, 24});

  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->program->invocations[0].outputs.at(0).last_reader, 1u);
  EXPECT_FALSE(bound->program->invocations[0].outputs.at(0).is_result);
  EXPECT_EQ(bound->program->results, (std::vector<BoundResult>{{{1, 0}}}));
}

TEST(BindProgramTest, AStridedViewMayBeSmallerThanItsPayload) {
  v1::ExecuteRequest request = L1Request();
  v1::Tensor* tensor = request.mutable_invocations(0)->mutable_inputs(1)->mutable_tensor();
  tensor->add_strides(1);
  tensor->add_strides(2);
  tensor->set_offset(4);

  const auto bound = Bind(request, {24, 100, 24});

  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->program->invocations[0].inputs[1].storage_elements, 4 + 1 + 2 * 2 + 1);
}

struct RefusedCase {
  const char* name;
  std::function<void(v1::ExecuteRequest*)> change;
  const char* message;
  const char* reason = "invalid";
};

v1::Tensor* Self(v1::ExecuteRequest* request) {
  return request->mutable_invocations(0)->mutable_inputs(1)->mutable_tensor();
}

TEST(BindProgramTest, MistakesAreNamed) {
  const std::vector<RefusedCase> cases = {
      {"NoInvocation", [](auto* r) { r->clear_invocations(); }, "invocations: there is none"},
      {"UnknownOperator", [](auto* r) { r->mutable_invocations(0)->set_operator_("Nope"); },
       "Nope: no such operator"},
      {"UnknownInput", [](auto* r) { r->mutable_invocations(0)->mutable_inputs(0)->set_name("x"); },
       "x: no such input; there are: grad_output, self, target"},
      {"InputTwice",
       [](auto* r) { r->mutable_invocations(0)->mutable_inputs(0)->set_name("self"); },
       "self: given twice"},
      {"InputMissing", [](auto* r) { r->mutable_invocations(0)->mutable_inputs()->RemoveLast(); },
       "target: missing"},
      {"NoDtype", [](auto* r) { Self(r)->clear_dtype(); }, "self: dtype 0 is not a dtype"},
      {"UnsupportedDtype",
       [](auto* r) {
         Self(r)->set_dtype(v1::DATA_TYPE_DOUBLE);
         Self(r)->mutable_shape()->Set(1, 1);
         Self(r)->mutable_shape()->Set(0, 3);
       },
       "self: dtype DOUBLE; it may be FLOAT, FLOAT16, BF16"},
      {"NoStorage", [](auto* r) { Self(r)->clear_storage(); }, "self: has no storage"},
      {"PayloadOutOfRange", [](auto* r) { Self(r)->set_payload(3); },
       "payload 3 of a message with 3"},
      {"PayloadUnused", [](auto* r) { Self(r)->set_payload(0); }, "payload 1 belongs to no tensor"},
      {"PayloadTooShort", [](auto* r) { Self(r)->mutable_shape()->Set(1, 4); },
       "has 24 bytes; FLOAT [2,4] takes 32"},
      {"PayloadTooLong", [](auto* r) { Self(r)->mutable_shape()->Set(1, 2); },
       "has 24 bytes; FLOAT [2,2] takes 16"},
      {"NegativeExtent", [](auto* r) { Self(r)->mutable_shape()->Set(0, -2); }, "negative extent"},
      {"RankTooHigh",
       [](auto* r) {
         for (int i = 0; i < 7; ++i) Self(r)->add_shape(1);
       },
       "self: rank 9 is above the highest, 8"},
      {"SizeOverflows", [](auto* r) { Self(r)->mutable_shape()->Set(0, int64_t{1} << 62); },
       "takes 2^63 bytes or more"},
      {"StridesOfOtherRank", [](auto* r) { Self(r)->add_strides(1); }, "1 strides for shape [2,3]"},
      {"NegativeStride",
       [](auto* r) {
         Self(r)->add_strides(-3);
         Self(r)->add_strides(1);
       },
       "must not be negative"},
      {"StrideBeyondPayload",
       [](auto* r) {
         Self(r)->add_strides(100);
         Self(r)->add_strides(1);
       },
       "takes at least"},
      {"StrideOverflows",
       [](auto* r) {
         Self(r)->add_strides(INT64_MAX);
         Self(r)->add_strides(INT64_MAX);
       },
       "beyond 2^63"},
      {"OffsetOverflows", [](auto* r) { Self(r)->set_offset(INT64_MAX); }, "beyond 2^63"},
      {"NegativeOffset", [](auto* r) { Self(r)->set_offset(-1); }, "must not be negative"},
      {"OwnOutputAsInput", [](auto* r) { Self(r)->mutable_invocation_output()->set_invocation(0); },
       "output of invocation 0, which is not before it"},
      {"UnknownAttribute",
       [](auto* r) { r->mutable_invocations(0)->add_attributes()->set_name("alpha"); },
       "alpha: no such attribute"},
      {"UnknownOutput", [](auto* r) { r->mutable_invocations(0)->add_outputs()->set_name("y"); },
       "y: no such output; there is grad_input"},
      {"UnsupportedOutputDtype",
       [](auto* r) {
         v1::OutputRequest* output = r->mutable_invocations(0)->add_outputs();
         output->set_name("grad_input");
         output->set_dtype(v1::DATA_TYPE_DOUBLE);
       },
       "grad_input: dtype DOUBLE asked for"},
      {"ResultOfNoInvocation", [](auto* r) { r->add_results()->set_invocation(1); },
       "results: output of invocation 1"},
      {"ResultTwice",
       [](auto* r) {
         r->add_results();
         r->add_results();
       },
       "asked for twice"},
      {"TooManyInvocations",
       [](auto* r) {
         for (int i = 0; i < 3; ++i) *r->add_invocations() = r->invocations(0);
       },
       "4 given, at most 3 allowed", "too_large"},
      {"OutputTooLarge",
       [](auto* r) {
         // Every input repeats one row, so the output is larger than all of them.
         for (v1::NamedTensor& input : *r->mutable_invocations(0)->mutable_inputs()) {
           input.mutable_tensor()->mutable_shape()->Set(0, 100);
           input.mutable_tensor()->add_strides(0);
           input.mutable_tensor()->add_strides(1);
         }
       },
       "grad_input: takes 1200 bytes, at most 1000 allowed", "too_large"},
  };
  for (const RefusedCase& c : cases) {
    v1::ExecuteRequest request = L1Request();
    c.change(&request);

    const auto bound = Bind(request, {24, 24, 24});

    EXPECT_EQ(bound.status().code(), absl::StatusCode::kInvalidArgument) << c.name;
    EXPECT_THAT(std::string(bound.status().message()), HasSubstr(c.message)) << c.name;
    const auto detail = ErrorDetailOf(bound.status());
    ASSERT_TRUE(detail.has_value()) << c.name;
    EXPECT_EQ(detail->reason(), c.reason) << c.name;
  }
}

TEST(BindProgramTest, TheErrorSaysWhichInvocation) {
  v1::ExecuteRequest request = TwoStepRequest();
  request.mutable_invocations(1)
      ->mutable_inputs(0)
      ->mutable_tensor()
      ->mutable_invocation_output()
      ->set_invocation(1);

  const auto bound = Bind(request, {24, 24, 24, 24});

  EXPECT_THAT(std::string(bound.status().message()), HasSubstr("which is not before it"));
  EXPECT_EQ(ErrorDetailOf(bound.status())->invocation(), 1u);
}

TEST(BindProgramTest, PayloadsAboveTheLimitAreRefused) {
  EXPECT_EQ(ErrorDetailOf(Bind(L1Request(), {24, 1001, 24}).status())->reason(), "too_large");
  EXPECT_EQ(ErrorDetailOf(Bind(L1Request(), {999, 999, 999}).status())->reason(), "too_large");
}

// As many bytes as a sum of 64 bits cannot have.
TEST(BindProgramTest, ASumOfInputsDoesNotWrap) {
  ProgramLimits limits;
  limits.max_tensor_bytes = UINT64_MAX;
  limits.max_program_bytes = UINT64_MAX - 1;
  const std::vector<uint64_t> payload_bytes = {24, uint64_t{1} << 63, uint64_t{1} << 63};
  const auto bound = BindProgram(TranslateProgram(L1Request()), payload_bytes, TestOperators(),
                                 limits, FindNamedResident);
  EXPECT_EQ(ErrorDetailOf(bound.status())->reason(), "too_large") << bound.status();
}

// L1Request with self and target in resident tensors.
v1::ExecuteRequest ResidentRequest(const char* self, const char* target) {
  v1::ExecuteRequest request = L1Request();
  for (const auto& [index, handle] : {std::pair(1, self), std::pair(2, target)}) {
    v1::Tensor* tensor = request.mutable_invocations(0)->mutable_inputs(index)->mutable_tensor();
    tensor->Clear();
    tensor->set_resident_tensor(handle);
  }
  return request;
}

TEST(BindProgramTest, AResidentTensorIsCountedOnceAndNamesTheDevice) {
  const auto bound = Bind(ResidentRequest("a", "a"), {24});

  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->residents.size(), 1u);
  EXPECT_EQ(bound->device(), 0);
  EXPECT_EQ(bound->program->input_bytes, 24u + 24u);
  EXPECT_EQ(bound->program->invocations[0].inputs[1].spec.shape, (Shape{2, 3}));
}

TEST(BindProgramTest, AViewOfAResidentTensorStaysInside) {
  v1::ExecuteRequest request = ResidentRequest("a", "b");
  v1::Tensor* self = Self(&request);
  self->set_dtype(v1::DATA_TYPE_FLOAT);
  self->add_shape(2);
  self->add_shape(3);
  self->add_strides(1);  // transposed: as [3,2]
  self->add_strides(2);
  EXPECT_TRUE(Bind(request, {24}).ok());

  self->set_offset(1);
  EXPECT_THAT(std::string(Bind(request, {24}).status().message()),
              HasSubstr("the view takes 28 bytes of a resident tensor of 24"));
  self->set_offset(0);
  self->set_dtype(v1::DATA_TYPE_FLOAT16);
  EXPECT_THAT(std::string(Bind(request, {24}).status().message()),
              HasSubstr("a view of dtype FLOAT16 of a resident tensor of FLOAT"));
}

TEST(BindProgramTest, WhatIsWrongWithAResidentTensorIsToldWithItsArgument) {
  const auto unknown = Bind(ResidentRequest("a", "x"), {24});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(unknown.status()), "tensor_unknown");
  EXPECT_EQ(ErrorDetailOf(unknown.status())->argument(), "target");

  const auto lost = Bind(ResidentRequest("lost", "a"), {24});
  EXPECT_EQ(lost.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(lost.status()), "tensor_lost");
}

TEST(BindProgramTest, ResidentTensorsAreOnOneDeviceWhenTheProgramRuns) {
  EXPECT_TRUE(Bind(ResidentRequest("a", "b"), {24})->CheckOneDevice().ok());
  EXPECT_TRUE(Bind(L1Request(), {24, 24, 24})->CheckOneDevice().ok());

  const absl::Status apart = Bind(ResidentRequest("a", "c"), {24})->CheckOneDevice();

  EXPECT_EQ(apart.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(apart.message()), HasSubstr("is on device 1, another one on device 0"));
}

// Every input is one element, repeated.
v1::ExecuteRequest RepeatedL1Request(int64_t elements) {
  v1::ExecuteRequest request = L1Request();
  for (v1::NamedTensor& input : *request.mutable_invocations(0)->mutable_inputs()) {
    input.mutable_tensor()->mutable_shape()->Resize(1, elements);
    input.mutable_tensor()->set_shape(0, elements);
    input.mutable_tensor()->add_strides(0);
  }
  return request;
}

TEST(BindProgramTest, OutputsOutOfProportionAreRefused) {
  ProgramLimits limits;
  limits.max_output_ratio = 100;
  const auto bind = [&](int64_t elements) {
    return BindProgram(TranslateProgram(RepeatedL1Request(elements)), {4, 4, 4}, TestOperators(),
                       limits, FindNamedResident)
        .status();
  };

  EXPECT_TRUE(bind(((1 << 20) + 1200) / 4).ok());
  const absl::Status refused = bind(((1 << 20) + 1200) / 4 + 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refused), "amplification");
  EXPECT_EQ(ErrorDetailOf(refused)->retry_pushback_ms(), -1);
  EXPECT_EQ(ErrorDetailOf(refused)->argument(), "grad_input");
}

TEST(BindProgramTest, ResultsThatStayAreInProportion) {
  v1::ExecuteRequest request = RepeatedL1Request(10 << 20);
  const auto bind = [&] {
    return BindProgram(TranslateProgram(request), {4, 4, 4}, TestOperators(), {}, FindNamedResident)
        .status();
  };
  EXPECT_EQ(ReasonOf(bind()), "amplification");
  v1::WantedResult* kept = request.add_results();
  kept->mutable_keep();
  EXPECT_TRUE(bind().ok()) << bind();
  // Neither is what is made on the way to them.
  v1::Invocation* next = request.add_invocations();
  *next = request.invocations(0);
  v1::Tensor* output = next->mutable_inputs(0)->mutable_tensor();
  output->clear_strides();
  output->mutable_invocation_output()->set_invocation(0);
  kept->set_invocation(1);
  EXPECT_TRUE(bind().ok()) << bind();
  // A result that travels is none that stays.
  request.add_results();
  request.mutable_results(1)->set_invocation(0);
  EXPECT_EQ(ReasonOf(bind()), "amplification") << "host memory from a few bytes";
}

TEST(BindProgramTest, MoreWorkThanARequestMayAskForIsRefused) {
  ProgramLimits limits;
  const auto bind = [&](const v1::ExecuteRequest& request, uint64_t max_work) {
    limits.max_program_work = max_work;
    return BindProgram(TranslateProgram(request), {24, 24, 24, 24}, TestOperators(), limits,
                       FindNamedResident);
  };
  const auto bound = bind(TwoStepRequest(), 12);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->program->work, 12u);
  EXPECT_EQ(bound->program->invocations[1].work, 6u);

  const absl::Status refused = bind(TwoStepRequest(), 11).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "LogSoftmaxBackward: computes 6 elements, which brings the request to 12, at most 11 "
            "allowed in one request");
  EXPECT_EQ(ReasonOf(refused), "work_limit");
  EXPECT_EQ(ErrorDetailOf(refused)->invocation(), 1u);
  EXPECT_EQ(ErrorDetailOf(refused)->retry_pushback_ms(), -1);

  // What is repeated counts as often as it is computed with, whatever memory it takes.
  v1::ExecuteRequest repeated = L1Request();
  repeated.mutable_invocations(0)->set_operator_("KlDivBackward");
  v1::Tensor* target = repeated.mutable_invocations(0)->mutable_inputs(2)->mutable_tensor();
  target->clear_shape();
  for (const int64_t extent : {int64_t{1} << 50, int64_t{2}, int64_t{3}}) target->add_shape(extent);
  for (const int64_t stride : {0, 3, 1}) target->add_strides(stride);
  limits.max_work = 1000;
  const absl::Status too_much = BindProgram(TranslateProgram(repeated), {24, 24, 24},
                                            TestOperators(), limits, FindNamedResident)
                                    .status();
  EXPECT_EQ(ReasonOf(too_much), "work_limit") << too_much;
  EXPECT_THAT(std::string(too_much.message()),
              HasSubstr("KlDivBackward: computes 6755399441055744 elements, at most 1000"));
}

TEST(BindProgramTest, StepsOfProductsCountLess) {
  ProgramLimits limits;
  const auto bind = [&](uint64_t rows, uint64_t inner, uint64_t columns) {
    v1::ExecuteRequest request;
    v1::Invocation* product = request.add_invocations();
    product->set_operator_("Matmul");
    uint32_t payload = 0;
    for (const auto& [name, shape] : {std::pair("self", std::pair(rows, inner)),
                                      std::pair("mat2", std::pair(inner, columns))}) {
      v1::NamedTensor* input = product->add_inputs();
      input->set_name(name);
      v1::Tensor* tensor = input->mutable_tensor();
      tensor->set_dtype(v1::DATA_TYPE_FLOAT);
      tensor->add_shape(static_cast<int64_t>(shape.first));
      tensor->add_shape(static_cast<int64_t>(shape.second));
      tensor->set_payload(payload++);
    }
    return BindProgram(TranslateProgram(request), {rows * inner * 4, inner * columns * 4},
                       TestOperators(), limits, FindNamedResident);
  };
  const auto head = bind(8192, 768, 50257);
  EXPECT_TRUE(head.ok()) << "the last layer of a language model: " << head.status();
  const auto bound = bind(1024, 1024, 1024);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->program->work, uint64_t{4} << 20);
  EXPECT_EQ(bound->program->invocations[0].work, uint64_t{1} << 30) << "for estimates of its time";
  limits.max_work = 4'000'000;
  EXPECT_THAT(std::string(bind(1024, 1024, 1024).status().message()),
              HasSubstr("Matmul: computes 1073741824 steps of a product, as much as 4194304 "
                        "elements, at most 4000000 allowed in one invocation"));
}

TEST(BindProgramTest, ViewsWithoutElementsStayInTheirStorageToo) {
  struct Case {
    std::vector<int64_t> shape, strides;
    int64_t offset;
    const char* message;  // "": accepted
  };
  const int64_t huge = int64_t{1} << 62;
  for (const Case& c : {
           Case{{0, 3}, {}, 0, ""},
           Case{{0, 3}, {3, 1}, 6, ""},
           Case{{0, 3}, {3, 1}, 7, "takes at least 28"},
           Case{{0, 3}, {3, 1}, int64_t{1} << 60, "takes at least 4611686018427387904"},
           Case{{0, 3}, {3, 1}, int64_t{1} << 61, "beyond 2^63"},
           Case{{0, 3}, {3, huge}, 0, "beyond 2^63"},
           Case{{3, 0}, {huge, 1}, 0, "beyond 2^63"},
           Case{{0, 3}, {huge, 1}, 0, ""},
           Case{{0, 3}, {-1, 1}, 0, "must not be negative"},
       }) {
    v1::ExecuteRequest request = L1Request();
    for (v1::NamedTensor& input : *request.mutable_invocations(0)->mutable_inputs()) {
      input.mutable_tensor()->mutable_shape()->Assign(c.shape.begin(), c.shape.end());
      input.mutable_tensor()->mutable_strides()->Assign(c.strides.begin(), c.strides.end());
      input.mutable_tensor()->set_offset(c.offset);
    }
    const uint64_t bytes = c.strides.empty() ? 0 : 24;
    const auto bound = Bind(request, {bytes, bytes, bytes});
    SCOPED_TRACE(absl::StrCat(c.offset, " ", c.message));
    if (*c.message != '\0') {
      EXPECT_EQ(bound.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(bound.status().message()), HasSubstr(c.message));
      continue;
    }
    ASSERT_TRUE(bound.ok()) << bound.status();
    for (const BoundInput& input : bound->program->invocations[0].inputs) {
      EXPECT_EQ(input.strides, ContiguousStrides(input.spec.shape)) << "nothing is reached by them";
      EXPECT_EQ(input.offset, c.offset);
    }
  }
}

TEST(BindProgramTest, StridesOfSingleElementsDoNotReachTheLibraries) {
  v1::ExecuteRequest request = L1Request();
  for (v1::NamedTensor& input : *request.mutable_invocations(0)->mutable_inputs()) {
    v1::Tensor* tensor = input.mutable_tensor();
    tensor->clear_shape();
    for (const int64_t extent : {1, 6}) tensor->add_shape(extent);
    for (const int64_t stride : {INT64_MAX, int64_t{1}}) tensor->add_strides(stride);
  }
  const auto bound = Bind(request, {24, 24, 24});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->program->invocations[0].inputs[0].strides, (Shape{6, 1}));
}

}  // namespace
}  // namespace opserve::server
