// Programs whose results stay on the device: views and literals, kept, replaced and donated
// tensors, and the order in which requests use them.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

v1::Tensor View(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides = {},
                int64_t offset = 0) {
  v1::Tensor view;
  view.set_dtype(v1::DATA_TYPE_FLOAT);
  view.mutable_shape()->Add(shape.begin(), shape.end());
  view.mutable_strides()->Add(strides.begin(), strides.end());
  view.set_offset(offset);
  return view;
}

v1::Tensor Literal(const std::vector<int64_t>& shape, const std::vector<float>& values) {
  v1::Tensor tensor = View(shape);
  tensor.set_literal(Bytes(values));
  return tensor;
}

v1::Tensor Resident(const std::string& handle) {
  v1::Tensor tensor;
  tensor.set_resident_tensor(handle);
  return tensor;
}

v1::Tensor OutputOf(uint32_t invocation, v1::Tensor view = {}) {
  view.mutable_invocation_output()->set_invocation(invocation);
  return view;
}

// Adds an invocation with the inputs "self" and "other".
void Add(const std::string& op, const v1::Tensor& self, const v1::Tensor& other,
         v1::ExecuteRequest* request) {
  v1::Invocation* invocation = request->add_invocations();
  invocation->set_operator_(op);
  for (const auto& [name, tensor] : {std::pair("self", &self), std::pair("other", &other)}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    *input->mutable_tensor() = *tensor;
  }
}

// Adds `added` to every element of a resident tensor, in its own memory.
v1::ExecuteRequest InPlaceRequest(const std::string& handle, float added) {
  v1::ExecuteRequest request;
  v1::Tensor other = View({1});
  other.set_literal(Bytes({added}));
  Add("InplaceAdd", Resident(handle), other, &request);
  request.add_donated(handle);
  request.add_results()->mutable_replace()->set_handle(handle);
  request.set_want_receipt(true);
  return request;
}

class ProgramsTest : public ::testing::TestWithParam<Door> {
 protected:
  ~ProgramsTest() override {
    ClearFaults();
    daemon_.EndLeases();
    // A lane may still be about to let go of a tensor whose content a request replaced.
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == 0; }))
        << daemon_.HeldByRequests() << " held";
  }

  std::string Upload(const std::vector<float>& values) {
    const auto uploaded = calls_.Upload({.bytes = Bytes(values)});
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    return uploaded.response.handle();
  }

  std::vector<float> Download(const std::string& handle) {
    const auto downloaded = calls_.Download(handle);
    EXPECT_TRUE(downloaded.status.ok()) << ToStatus(downloaded.status);
    return Floats(downloaded.bytes);
  }

  v1::ExecuteResponse Execute(const v1::ExecuteRequest& request) {
    v1::ExecuteResponse response;
    const grpc::Status status = caller_.Execute(request, &response);
    EXPECT_TRUE(status.ok()) << ToStatus(status);
    return response;
  }

  grpc::Status Refusal(const v1::ExecuteRequest& request) {
    v1::ExecuteResponse response;
    return caller_.Execute(request, &response);
  }

  InProcessDaemon daemon_;
  TensorCalls calls_{daemon_.target()};
  DoorCaller caller_{daemon_.target(), GetParam()};
};

TEST_P(ProgramsTest, AnOutputIsReadThroughAnyView) {
  v1::ExecuteRequest request;
  Add("Add", Literal({2, 3}, {1, 2, 3, 4, 5, 6}), Literal({3}, {10, 20, 30}), &request);
  v1::Tensor all_ones = View({3, 2}, {0, 0});
  all_ones.set_literal(Bytes({1}));
  Add("Add", OutputOf(0, View({3, 2}, {1, 3})), all_ones, &request);  // transposed
  Add("Mul", OutputOf(0, View({2}, {3}, 2)), OutputOf(1, View({2}, {0}, 5)), &request);  // a column
  for (uint32_t i = 0; i < 3; ++i) request.add_results()->set_invocation(i);

  const v1::ExecuteResponse response = Execute(request);

  EXPECT_THAT(Floats(response.payloads(0)), ElementsAre(11, 22, 33, 14, 25, 36));
  EXPECT_THAT(Floats(response.payloads(1)), ElementsAre(12, 15, 23, 26, 34, 37));
  EXPECT_THAT(Floats(response.payloads(2)), ElementsAre(33 * 37, 36 * 37));
}

TEST_P(ProgramsTest, KeptResultsAreTensorsLikeUploadedOnes) {
  v1::ExecuteRequest request;
  Add("Add", Literal({2}, {1, 2}), Literal({2}, {3, 4}), &request);
  Add("Mul", OutputOf(0), OutputOf(0), &request);
  request.add_results()->mutable_keep();
  request.add_results();  // the same one, sent back
  v1::WantedResult* squares = request.add_results();
  squares->set_invocation(1);
  squares->mutable_keep()->mutable_lease()->set_seconds(5);

  const v1::ExecuteResponse response = Execute(request);

  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.payloads_size(), 1);
  EXPECT_THAT(Floats(response.payloads(0)), ElementsAre(4, 6));
  EXPECT_THAT(Download(response.results(0).tensor().resident_tensor()), ElementsAre(4, 6));
  EXPECT_THAT(Download(response.results(2).tensor().resident_tensor()), ElementsAre(16, 36));
  EXPECT_EQ(response.results(0).kept().version(), 1u);
  EXPECT_FALSE(response.results(1).has_kept());
  EXPECT_GT(response.results(0).kept().lease_end().seconds(),
            response.results(2).kept().lease_end().seconds() + 60);
  EXPECT_EQ(calls_.CountTensors(), 2u);
}

TEST_P(ProgramsTest, OfResultsToKeepAllAreKeptOrNone) {
  Config config = InProcessDaemon::DefaultConfig();
  config.resident_max_tensors_per_tenant = 2;
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  DoorCaller caller(daemon.target(), GetParam());
  v1::ExecuteRequest request;
  for (int i = 0; i < 3; ++i) {
    Add("Add", Literal({1}, {1}), Literal({1}, {2}), &request);
    v1::WantedResult* result = request.add_results();
    result->set_invocation(static_cast<uint32_t>(i));
    result->mutable_keep();
  }
  v1::ExecuteResponse response;

  const grpc::Status status = caller.Execute(request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(DetailOf(status).reason(), "tenant_memory");
  EXPECT_EQ(calls.CountTensors(), 0u);
  InjectFaults("kernel=aclnnAdd,code=507035");
  request.mutable_results()->RemoveLast();
  EXPECT_FALSE(caller.Execute(request, &response).ok());
  EXPECT_EQ(calls.CountTensors(), 0u);
  ASSERT_TRUE(caller.Execute(request, &response).ok());
  EXPECT_EQ(calls.CountTensors(), 2u);
  daemon.EndLeases();
}

TEST_P(ProgramsTest, AReplacedTensorHasTheNextVersion) {
  const std::string handle = Upload({1, 2, 3});
  v1::ExecuteRequest request;
  Add("Add", Resident(handle), Literal({1}, {10}), &request);
  v1::ReplaceTensor* replace = request.add_results()->mutable_replace();
  replace->set_handle(handle);
  replace->set_version(1);

  EXPECT_EQ(Execute(request).results(0).kept().version(), 2u);
  EXPECT_THAT(Download(handle), ElementsAre(11, 12, 13));

  const grpc::Status stale = Refusal(request);
  EXPECT_EQ(stale.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DetailOf(stale).reason(), "tensor_version");
  EXPECT_THAT(Download(handle), ElementsAre(11, 12, 13));
  EXPECT_EQ(calls_.CountTensors(), 1u);
}

TEST_P(ProgramsTest, ADonatedTensorIsWorkedInAndNotCopied) {
  const std::string handle = Upload(std::vector<float>(1 << 20, 1));

  const v1::ExecuteResponse response = Execute(InPlaceRequest(handle, 2));

  EXPECT_LT(response.receipt().device_memory_bytes(), 4096u);
  EXPECT_EQ(response.results(0).kept().version(), 2u);
  EXPECT_EQ(Download(handle), std::vector<float>(1 << 20, 3));
}

TEST_P(ProgramsTest, WhatIsStillReadIsNotWorkedIn) {
  const std::string handle = Upload({1, 2});
  v1::ExecuteRequest request = InPlaceRequest(handle, 5);
  Add("Add", Resident(handle), OutputOf(0), &request);  // the old elements and the new ones
  request.add_results()->set_invocation(1);

  const v1::ExecuteResponse response = Execute(request);

  EXPECT_THAT(Floats(response.payloads(0)), ElementsAre(1 + 6, 2 + 7));
  EXPECT_THAT(Download(handle), ElementsAre(6, 7));
}

TEST_P(ProgramsTest, ADonatedTensorThatIsNotReplacedIsGone) {
  const std::string handle = Upload({1, 2});
  v1::ExecuteRequest request;
  Add("Add", Resident(handle), Literal({1}, {10}), &request);
  request.add_donated(handle);

  EXPECT_THAT(Floats(Execute(request).payloads(0)), ElementsAre(11, 12));

  EXPECT_EQ(DetailOf(Refusal(request)).reason(), "tensor_unknown");
  EXPECT_EQ(calls_.CountTensors(), 0u);
}

TEST_P(ProgramsTest, AFailureBeforeTheLaunchGivesNothingUpAndALaterOneSaysSo) {
  const std::string handle = Upload({1, 2});
  v1::ExecuteRequest request = InPlaceRequest(handle, 1);
  request.mutable_results(0)->mutable_replace()->set_version(7);
  EXPECT_EQ(DetailOf(Refusal(request)).reason(), "tensor_version");
  EXPECT_THAT(Download(handle), ElementsAre(1, 2));
  request.mutable_results(0)->mutable_replace()->clear_version();

  InjectFaults("kernel=aclnnInplaceAdd,code=507035");
  EXPECT_FALSE(Refusal(request).ok());

  EXPECT_EQ(DetailOf(Refusal(request)).reason(), "tensor_lost");
  EXPECT_EQ(DetailOf(calls_.Download(handle).status).reason(), "tensor_lost");
  EXPECT_EQ(calls_.Release(handle), 1u);
}

TEST_P(ProgramsTest, RequestsThatChangeATensorRunInTheOrderSent) {
  constexpr int kSteps = 200;
  const std::string handle = Upload({0, 0});
  const auto stub = NewStub(daemon_.target());
  TestStream stream(*stub);
  // Each step is sent before the last one is answered; readers between them see the steps before.
  std::vector<float> seen(kSteps, -1);
  int answered = 0;
  const auto receive = [&] {
    const v1::ExecuteStreamResponse answer = stream.Receive();
    ASSERT_TRUE(answer.has_response()) << answer.DebugString();
    if (answer.id() >= kSteps) seen[answer.id() - kSteps] = Floats(answer.payloads(0))[0];
    ++answered;
  };
  for (uint64_t step = 0; step < kSteps; ++step) {
    v1::ExecuteStreamRequest change;
    change.set_id(step);
    *change.mutable_request() = InPlaceRequest(handle, 1);
    ASSERT_TRUE(stream.Send(change));
    v1::ExecuteStreamRequest read;
    read.set_id(kSteps + step);
    Add("Mul", Resident(handle), Literal({1}, {1}), read.mutable_request());
    ASSERT_TRUE(stream.Send(read));
    if (step >= 8) receive();
    if (step >= 8) receive();
  }
  while (answered < 2 * kSteps && !HasFatalFailure()) receive();
  stream.SendNoMore();

  EXPECT_TRUE(stream.Finish().ok());
  for (int step = 0; step < kSteps; ++step) EXPECT_EQ(seen[step], step + 1);
  EXPECT_THAT(Download(handle), ElementsAre(kSteps, kSteps));
}

// Each pair of uses of one tensor, both sent before the first is answered. The first one is slow,
// so that the second would overtake it if it did not wait.
TEST_P(ProgramsTest, UsesOfATensorTakeEffectInTheOrderSent) {
  enum Use { kRead, kReplace, kWorkIn, kGiveUp };
  // A tensor of 1, read or changed: what the request sends back, and what is left.
  const auto request_of = [](Use use, const std::string& handle) {
    v1::ExecuteRequest request;
    if (use == kWorkIn) {
      request = InPlaceRequest(handle, 10);
    } else {
      Add("Add", Resident(handle), Literal({1}, {use == kReplace ? 10.0f : 0.0f}), &request);
      if (use == kReplace) request.add_results()->mutable_replace()->set_handle(handle);
      if (use == kGiveUp) request.add_donated(handle);
    }
    if (use == kRead || use == kGiveUp) request.add_results();
    return request;
  };
  const auto adds = [](Use use) { return use == kReplace || use == kWorkIn ? 10.0f : 0.0f; };
  const auto stub = NewStub(daemon_.target());
  for (const Use first : {kRead, kReplace, kWorkIn, kGiveUp}) {
    for (const Use second : {kRead, kReplace, kWorkIn, kGiveUp}) {
      SCOPED_TRACE(absl::StrCat(first, " before ", second));
      const std::string handle = Upload({1, 1});
      InjectFaults("kernel=*,slow=20000");
      TestStream stream(*stub);
      for (int number = 0; number < 2; ++number) {
        v1::ExecuteStreamRequest sent;
        sent.set_id(number);
        *sent.mutable_request() = request_of(number == 0 ? first : second, handle);
        ASSERT_TRUE(stream.Send(sent));
      }
      for (int i = 0; i < 2; ++i) {
        const v1::ExecuteStreamResponse answer = stream.Receive();
        ASSERT_TRUE(answer.has_response()) << answer.DebugString();
        const Use use = answer.id() == 0 ? first : second;
        if (answer.payloads_size() == 0) continue;
        const float before = answer.id() == 0 ? 0 : adds(first);
        EXPECT_THAT(Floats(answer.payloads(0)), Each(1 + before + adds(use))) << answer.id();
      }
      stream.SendNoMore();
      EXPECT_TRUE(stream.Finish().ok());
      ClearFaults();
      if (first == kGiveUp || second == kGiveUp) {
        EXPECT_EQ(DetailOf(calls_.Download(handle).status).reason(), "tensor_unknown");
      } else {
        EXPECT_THAT(Download(handle), Each(1 + adds(first) + adds(second)));
      }
    }
  }
}

TEST_P(ProgramsTest, ARequestThatChangesTensorsRunsOnceForEachKey) {
  const std::string handle = Upload({1, 2});
  v1::ExecuteRequest request = InPlaceRequest(handle, 1);
  request.set_idempotency_key("step 1");

  const v1::ExecuteResponse first = Execute(request);
  const v1::ExecuteResponse again = Execute(request);

  EXPECT_EQ(first.results(0).SerializeAsString(), again.results(0).SerializeAsString());
  EXPECT_THAT(Download(handle), ElementsAre(2, 3));
}

TEST_P(ProgramsTest, TenThousandInvocationsAreOneProgram) {
  constexpr int kInvocations = 10'000;
  v1::ExecuteRequest request;
  v1::Tensor one = View({64}, {0});
  one.set_literal(Bytes({1}));
  Add("Add", one, one, &request);
  for (int i = 1; i < kInvocations; ++i) Add("Add", OutputOf(i - 1), one, &request);
  request.set_want_receipt(true);

  const v1::ExecuteResponse response = Execute(request);

  EXPECT_EQ(Floats(response.payloads(0)), std::vector<float>(64, kInvocations + 1));
  RecordProperty("validate_ms", static_cast<int>(response.receipt().validate_ns() / 1'000'000));
  // Two of the chain's outputs live at one time, beside the literals.
  EXPECT_LT(response.receipt().device_memory_bytes(), 2u << 20);
  Add("Add", one, one, &request);
  EXPECT_EQ(DetailOf(Refusal(request)).reason(), "too_large");
}

TEST_P(ProgramsTest, MistakesAreNamed) {
  const std::string handle = Upload({1, 2});
  struct Case {
    const char* name;
    void (*change)(const std::string& handle, v1::ExecuteRequest* request);
    const char* message;
  };
  const Case cases[] = {
      {"ViewBeyondTheOutput",
       [](const std::string&, v1::ExecuteRequest* request) {
         Add("Add", OutputOf(0, View({2}, {1}, 1)), Literal({1}, {1}), request);
       },
       "self: the view takes 12 bytes of a result of 8"},
      {"ViewOfAnotherDtype",
       [](const std::string&, v1::ExecuteRequest* request) {
         v1::Tensor view = View({2});
         view.set_dtype(v1::DATA_TYPE_INT32);
         Add("Add", OutputOf(0, view), Literal({1}, {1}), request);
       },
       "self: a view of dtype INT32 of a result of FLOAT"},
      {"LongLiteral",
       [](const std::string&, v1::ExecuteRequest* request) {
         Add("Add", Literal({1025}, std::vector<float>(1025)), Literal({1}, {1}), request);
       },
       "the literal has 4100 bytes, at most 4096 allowed"},
      {"ShortLiteral",
       [](const std::string&, v1::ExecuteRequest* request) {
         Add("Add", Literal({3}, {1, 2}), Literal({1}, {1}), request);
       },
       "the literal has 8 bytes; FLOAT [3] takes 12"},
      {"KeptTwice",
       [](const std::string&, v1::ExecuteRequest* request) {
         request->add_results()->mutable_keep();
         request->add_results()->mutable_keep();
       },
       "is kept twice"},
      {"ReplacedByAnotherShape",
       [](const std::string& to, v1::ExecuteRequest* request) {
         Add("Add", Literal({3}, {1, 2, 3}), Literal({1}, {1}), request);
         v1::WantedResult* result = request->add_results();
         result->set_invocation(1);
         result->mutable_replace()->set_handle(to);
       },
       "out: FLOAT [3] cannot replace a resident tensor of FLOAT [2]"},
      {"DonatedUnused",
       [](const std::string& unused, v1::ExecuteRequest* request) { request->add_donated(unused); },
       "donated: a resident tensor that the request does not use"},
      {"NegativeLease",
       [](const std::string&, v1::ExecuteRequest* request) {
         request->add_results()->mutable_keep()->mutable_lease()->set_seconds(-1);
       },
       "the lease is negative"},
      {"LongLease",
       [](const std::string&, v1::ExecuteRequest* request) {
         request->add_results()->mutable_keep()->mutable_lease()->set_seconds(3601);
       },
       "lease: is 1h1s, at most 1h allowed (--resident_max_lease)"},
  };
  for (const Case& c : cases) {
    v1::ExecuteRequest request;
    Add("Add", Literal({2}, {1, 2}), Literal({1}, {1}), &request);
    c.change(handle, &request);

    const grpc::Status status = Refusal(request);

    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << c.name;
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(c.message)) << c.name;
  }
  EXPECT_THAT(Download(handle), ElementsAre(1, 2));
}

INSTANTIATE_TEST_SUITE_P(Doors, ProgramsTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
