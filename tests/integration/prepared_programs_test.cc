// Prepared programs over a real socket: replaced tensors, device resets, tenants' limits, and many
// callers at once.
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/run/prepared_programs.h"
#include "tests/adding_program.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/execute_stream_calls.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/session_calls.h"
#include "tests/integration/tensor_calls.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int64_t kElements = 64;

std::string Filled(float value) {
  const std::vector<float> values(kElements, value);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::vector<float> ElementsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Adds the payload of each call to its resident tensor `count` times, and replaces it: in the
// tensor's own memory if it is donated.
v1::PrepareRequest Step(int count, bool is_donated = false) {
  v1::PrepareRequest request = AddingProgram(is_donated ? "InplaceAdd" : "Add", count, kElements);
  v1::ExecuteRequest* program = request.mutable_program();
  v1::WantedResult* result = program->add_results();
  result->set_invocation(count - 1);
  result->mutable_replace()->set_program_input(1);
  program->add_results()->set_invocation(count - 1);
  if (is_donated) program->add_donated_inputs(1);
  return request;
}

v1::ExecuteRequest CallOf(const std::string& program, const std::string& tensor, float value) {
  v1::ExecuteRequest request;
  request.mutable_prepared()->set_program(program);
  request.mutable_prepared()->add_residents(tensor);
  request.add_payloads(Filled(value));
  return request;
}

class PreparedProgramsTest : public ::testing::TestWithParam<Door> {
 protected:
  static Config Limited() {
    Config config = InProcessDaemon::DefaultConfig();
    config.prepared_max_programs_per_tenant = 2;
    return config;
  }
  ~PreparedProgramsTest() override {
    ClearFaults();
    daemon_.EndLeases();
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == 0; }))
        << daemon_.HeldByRequests() << " held";
  }

  std::string Upload(float value) {
    const auto uploaded = calls_.Upload({.bytes = Filled(value)});
    EXPECT_TRUE(uploaded.status.ok()) << ToStatus(uploaded.status);
    return uploaded.response.handle();
  }
  std::string Prepare(const v1::PrepareRequest& request) {
    v1::PrepareResponse response;
    const grpc::Status status = calls_.Prepare(request, &response);
    EXPECT_TRUE(status.ok()) << ToStatus(status);
    return response.handle();
  }
  std::string ReasonOfCall(const v1::ExecuteRequest& request) {
    v1::ExecuteResponse response;
    return DetailOf(caller_.Execute(request, &response)).reason();
  }

  InProcessDaemon daemon_{Limited()};
  TensorCalls calls_{daemon_.target()};
  DoorCaller caller_{daemon_.target(), GetParam()};
};

TEST_P(PreparedProgramsTest, EachCallWorksOnItsOwnTensors) {
  for (const bool is_donated : {false, true}) {
    SCOPED_TRACE(is_donated ? "in place" : "anew");
    const std::string program = Prepare(Step(is_donated ? 1 : 3, is_donated));
    const float times = is_donated ? 1 : 3;
    const std::string a = Upload(0);
    const std::string b = Upload(100);
    for (int i = 1; i <= 3; ++i) {
      for (const auto& [tensor, start] : {std::pair(a, 0.0f), std::pair(b, 100.0f)}) {
        v1::ExecuteResponse response;
        const grpc::Status status = caller_.Execute(CallOf(program, tensor, 2), &response);
        ASSERT_TRUE(status.ok()) << ToStatus(status);
        EXPECT_EQ(response.results(0).kept().version(), 1u + static_cast<unsigned>(i));
        EXPECT_THAT(ElementsOf(response.payloads(0)),
                    Each(start + 2 * times * static_cast<float>(i)));
      }
    }
    EXPECT_THAT(ElementsOf(calls_.Download(a).bytes), Each(6 * times));
  }
}

// The daemon parses such calls once (KnownRequests), and looks for the program in each.
TEST_P(PreparedProgramsTest, EqualCallsAreAnsweredAlikeUntilTheProgramIsReleased) {
  v1::PrepareRequest request = AddingProgram("Add", 1, kElements);
  request.mutable_inputs(1)->set_kind(v1::ProgramInput::KIND_PAYLOAD);
  const std::string program = Prepare(request);
  v1::ExecuteRequest call;
  call.mutable_prepared()->set_program(program);
  std::string header;
  for (const float value : {1, 2, 3}) {
    call.clear_payloads();
    call.add_payloads(Filled(value));
    call.add_payloads(Filled(10));
    v1::ExecuteResponse response;
    const grpc::Status status = caller_.Execute(call, &response);
    ASSERT_TRUE(status.ok()) << ToStatus(status);
    ASSERT_EQ(response.payloads_size(), 1);
    EXPECT_THAT(ElementsOf(response.payloads(0)), Each(10 + value));
    response.clear_payloads();
    if (header.empty()) header = response.SerializeAsString();
    EXPECT_EQ(response.SerializeAsString(), header);
  }
  v1::ReleaseProgramsRequest release;
  release.add_handles(program);
  v1::ReleaseProgramsResponse released;
  ASSERT_TRUE(calls_.ReleasePrograms(release, &released).ok());
  EXPECT_EQ(ReasonOfCall(call), "program_unknown");
}

TEST_P(PreparedProgramsTest, NothingIsLeftOfAProgramThatIsReleased) {
  const auto kept = [this] {
    return MetricValue(daemon_.daemon(), "opserve_executor_cache_entries", {{"operator", "Add"}});
  };
  const auto bytes = [this] {
    return MetricValue(daemon_.daemon(), "opserve_prepared_program_bytes", {});
  };
  const std::string tensor = Upload(0);
  const std::string program = Prepare(Step(3));
  for (int i = 0; i < 4; ++i) {
    v1::ExecuteResponse response;
    const grpc::Status status = caller_.Execute(CallOf(program, tensor, 2), &response);
    ASSERT_TRUE(status.ok()) << ToStatus(status);
  }
  EXPECT_GT(kept(), 0);
  EXPECT_GT(bytes(), 0);

  v1::ReleaseProgramsRequest release;
  release.add_handles(program);
  v1::ReleaseProgramsResponse released;
  ASSERT_TRUE(calls_.ReleasePrograms(release, &released).ok());

  EXPECT_TRUE(Await([&] { return kept() == 0; })) << kept() << " left";
  EXPECT_EQ(bytes(), 0);
}

TEST_P(PreparedProgramsTest, WhatIsWrongIsToldAndNothingIsDone) {
  const std::string program = Prepare(Step(1));
  const std::string tensor = Upload(1);
  v1::ExecuteRequest both = CallOf(program, tensor, 2);
  both.add_invocations()->set_operator_("Relu");
  v1::ExecuteRequest keyed = CallOf(program, tensor, 2);
  keyed.add_payloads("more");

  EXPECT_EQ(ReasonOfCall(CallOf("no such handle", tensor, 2)), "program_unknown");
  EXPECT_EQ(ReasonOfCall(CallOf(program, "no such handle", 2)), "tensor_unknown");
  EXPECT_EQ(ReasonOfCall(both), "invalid");
  EXPECT_EQ(ReasonOfCall(keyed), "invalid");
  EXPECT_THAT(ElementsOf(calls_.Download(tensor).bytes), Each(1));
}

TEST_P(PreparedProgramsTest, ARepeatedCallWithAKeyRunsOnce) {
  const std::string program = Prepare(Step(1));
  const std::string tensor = Upload(1);
  v1::ExecuteRequest request = CallOf(program, tensor, 2);
  request.set_idempotency_key("step 1");
  for (int i = 0; i < 3; ++i) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(caller_.Execute(request, &response).ok());
    EXPECT_EQ(response.results(0).kept().version(), 2u);
  }
  EXPECT_THAT(ElementsOf(calls_.Download(tensor).bytes), Each(3));
}

TEST_P(PreparedProgramsTest, ABriefAnswerHasWhatTheCallerDoesNotKnow) {
  v1::PrepareRequest request = Step(2);
  v1::WantedResult* const kept = request.mutable_program()->add_results();
  kept->set_invocation(0);
  kept->mutable_keep()->mutable_lease()->set_seconds(60);
  v1::PrepareResponse prepared;
  ASSERT_TRUE(calls_.Prepare(request, &prepared).ok());
  const std::string tensor = Upload(1);
  v1::ExecuteRequest call = CallOf(prepared.handle(), tensor, 2);
  v1::ExecuteResponse whole;
  ASSERT_TRUE(caller_.Execute(call, &whole).ok());
  EXPECT_FALSE(whole.has_brief());

  for (const bool has_receipt : {false, true}) {
    call.set_want_receipt(has_receipt);
    call.mutable_prepared()->set_want_brief(true);
    v1::ExecuteResponse brief;
    ASSERT_TRUE(caller_.Execute(call, &brief).ok());

    EXPECT_TRUE(brief.results().empty());
    EXPECT_EQ(brief.has_receipt(), has_receipt);
    const float value = has_receipt ? 13 : 9;
    ASSERT_EQ(brief.payloads_size(), 1);
    EXPECT_THAT(ElementsOf(brief.payloads(0)), Each(value));
    EXPECT_THAT(brief.brief().versions(), ElementsAre(has_receipt ? 4 : 3));
    EXPECT_EQ(brief.brief().device(), whole.results(0).kept().device());
    ASSERT_EQ(brief.brief().kept_size(), 1);
    const v1::BriefTensor& made = brief.brief().kept(0);
    EXPECT_THAT(ElementsOf(calls_.Download(made.handle()).bytes), Each(value - 2));
    EXPECT_GE(made.lease_end().seconds(), whole.results(2).kept().lease_end().seconds());
  }

  // The rest is known.
  ASSERT_EQ(prepared.results_size(), whole.results_size());
  for (int i = 0; i < whole.results_size(); ++i) {
    v1::Result known = whole.results(i);
    known.clear_kept();
    known.mutable_tensor()->clear_storage();
    EXPECT_EQ(prepared.results(i).DebugString(), known.DebugString());
  }
}

TEST_P(PreparedProgramsTest, ABriefAnswerIsLittleMoreThanPayloads) {
  v1::PrepareRequest request = AddingProgram("Add", 1, kElements);
  const std::string program = Prepare(request);
  const std::string tensor = Upload(1);
  v1::ExecuteRequest call = CallOf(program, tensor, 2);
  call.mutable_prepared()->set_want_brief(true);
  v1::ExecuteResponse expected;
  expected.mutable_brief();
  expected.add_payloads(Filled(3));

  v1::ExecuteResponse unary;
  ASSERT_TRUE(caller_.Execute(call, &unary).ok());
  EXPECT_EQ(unary.SerializeAsString(), expected.SerializeAsString());

  const auto stub = NewStub(daemon_.target());
  TestSession session(*stub);
  ASSERT_TRUE(session.Send(RequestFrame(1, call)));
  const TestFrame frame = session.Receive();
  EXPECT_EQ(frame.kind, kAnswerFrame);
  EXPECT_EQ(frame.body, expected.SerializeAsString());
  session.SendNoMore();
  EXPECT_TRUE(session.Finish().ok());

  v1::ExecuteStreamRequest sent;
  sent.set_id(1);
  *sent.mutable_request() = call;
  sent.mutable_payloads()->Swap(sent.mutable_request()->mutable_payloads());
  TestStream stream(*stub);
  ASSERT_TRUE(stream.Send(sent));
  const v1::ExecuteStreamResponse answer = stream.Receive();
  EXPECT_TRUE(answer.response().has_brief());
  EXPECT_TRUE(answer.response().results().empty());
  ASSERT_EQ(answer.payloads_size(), 1);
  EXPECT_EQ(answer.payloads(0), Filled(3));
  stream.SendNoMore();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_P(PreparedProgramsTest, ARepetitionHasTheFirstAnswersForm) {
  const std::string program = Prepare(Step(1));
  for (const bool is_brief : {false, true}) {
    const std::string tensor = Upload(1);
    v1::ExecuteRequest request = CallOf(program, tensor, 2);
    request.mutable_identity()->set_client(std::string(16, is_brief ? 'b' : 'w'));
    request.mutable_identity()->set_number(1);
    for (const bool is_asked : {is_brief, is_brief, !is_brief}) {
      request.mutable_prepared()->set_want_brief(is_asked);
      v1::ExecuteResponse response;
      ASSERT_TRUE(caller_.Execute(request, &response).ok());
      EXPECT_EQ(response.has_brief(), is_brief);
      EXPECT_EQ(is_brief ? response.brief().versions(0) : response.results(0).kept().version(), 2u);
    }
    EXPECT_THAT(ElementsOf(calls_.Download(tensor).bytes), Each(3));
  }
}

// Calls that are sent before the first of them is answered. The device is slow with that one, so
// that the others wait for it.
TEST_P(PreparedProgramsTest, ACallThatIsSentAheadRunsOnlyAfterTheOneBefore) {
  for (const bool is_donated : {false, true}) {
    for (const bool fails : {false, true}) {
      SCOPED_TRACE(absl::StrCat(is_donated ? "in place" : "anew", fails ? ", fails" : ""));
      const std::string program = Prepare(Step(1, is_donated));
      const std::string tensor = Upload(1);
      const std::string kernel = is_donated ? "aclnnInplaceAdd" : "aclnnAdd";
      InjectFaults("kernel=" + kernel + (fails ? ",code=507035" : ",slow=50000"));
      const auto stub = NewStub(daemon_.target());
      TestStream stream(*stub);
      for (uint64_t number = 0; number < 3; ++number) {
        v1::ExecuteStreamRequest sent;
        sent.set_id(number);
        *sent.mutable_request() = CallOf(program, tensor, 2);
        sent.mutable_payloads()->Swap(sent.mutable_request()->mutable_payloads());
        v1::ExpectedVersion* expected = sent.mutable_request()->mutable_prepared()->add_versions();
        expected->set_version(1 + number);
        ASSERT_TRUE(stream.Send(sent));
      }
      for (int i = 0; i < 3; ++i) {
        const v1::ExecuteStreamResponse answer = stream.Receive();
        if (!fails) {
          ASSERT_TRUE(answer.has_response()) << answer.DebugString();
          EXPECT_EQ(answer.response().results(0).kept().version(), 2 + answer.id());
          EXPECT_THAT(ElementsOf(answer.payloads(0)), Each(3 + 2 * answer.id()));
        } else {
          ASSERT_FALSE(answer.has_response()) << answer.DebugString();
        }
      }
      stream.SendNoMore();
      EXPECT_TRUE(stream.Finish().ok());
      ClearFaults();
      if (!fails) {
        EXPECT_EQ(ReasonOfCall(CallOf(program, tensor, 2)), "");
      } else if (!is_donated) {
        EXPECT_THAT(ElementsOf(calls_.Download(tensor).bytes), Each(1));
      } else {
        EXPECT_EQ(DetailOf(calls_.Download(tensor).status).reason(), "tensor_lost");
      }
    }
  }
}

TEST_P(PreparedProgramsTest, AnswersThatTheClientHasTakeNoRoom) {
  Config config = InProcessDaemon::DefaultConfig();
  config.idempotency_cache_bytes = 16 << 10;
  InProcessDaemon daemon(config);
  TensorCalls calls(daemon.target());
  DoorCaller caller(daemon.target(), GetParam());
  const auto uploaded = calls.Upload({.bytes = Filled(0)});
  v1::PrepareResponse prepared;
  ASSERT_TRUE(calls.Prepare(Step(1), &prepared).ok());
  v1::ExecuteRequest request = CallOf(prepared.handle(), uploaded.response.handle(), 1);
  request.mutable_identity()->set_client(std::string(16, 'c'));
  v1::ExecuteResponse response;
  for (int i = 1; i <= 100; ++i) {
    request.mutable_identity()->set_number(i);
    request.mutable_identity()->set_answered_below(i);
    const grpc::Status status = caller.Execute(request, &response);
    ASSERT_TRUE(status.ok()) << i << ToStatus(status);
  }
  EXPECT_THAT(ElementsOf(response.payloads(0)), Each(100));
  daemon.EndLeases();
}

TEST_P(PreparedProgramsTest, AProgramOutlivesAFailureAndAResetOfItsDevice) {
  const std::string program = Prepare(Step(1));
  const std::string lost = Upload(1);
  v1::ExecuteResponse response;
  InjectFaults("device=0,lost");
  EXPECT_FALSE(caller_.Execute(CallOf(program, lost, 2), &response).ok());
  ClearFaults();
  daemon_.AwaitReady();

  EXPECT_EQ(ReasonOfCall(CallOf(program, lost, 2)), "tensor_lost");
  const std::string tensor = Upload(5);
  const grpc::Status status = caller_.Execute(CallOf(program, tensor, 2), &response);
  ASSERT_TRUE(status.ok()) << ToStatus(status);
  EXPECT_THAT(ElementsOf(response.payloads(0)), Each(7));
}

// More programs than the limit allows, so that handles are evicted while others use them.
TEST_P(PreparedProgramsTest, CallersPrepareRunAndReleaseAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 40;
  const uint32_t seed = TestSeed(0);
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([this, seed, number] {
      TensorCalls calls{daemon_.target()};
      DoorCaller caller(daemon_.target(), GetParam());
      std::mt19937 random(seed + static_cast<uint32_t>(number));
      const auto uploaded = calls.Upload({.bytes = Filled(0)});
      ASSERT_TRUE(uploaded.status.ok());
      const std::string& tensor = uploaded.response.handle();
      float expected = 0;
      std::string program;
      int count = 1;
      for (int step = 0; step < kSteps; ++step) {
        if (program.empty() || random() % 4 == 0) {
          count = 1 + static_cast<int>(random() % 3);
          v1::PrepareResponse prepared;
          ASSERT_TRUE(calls.Prepare(Step(count), &prepared).ok());
          program = prepared.handle();
        }
        v1::ExecuteResponse response;
        const grpc::Status status = caller.Execute(CallOf(program, tensor, 1), &response);
        if (status.ok()) {
          expected += static_cast<float>(count);
          EXPECT_THAT(ElementsOf(response.payloads(0)), Each(expected));
        } else {
          EXPECT_EQ(DetailOf(status).reason(), "program_unknown") << ToStatus(status);
          program.clear();
        }
        if (random() % 5 == 0 && !program.empty()) {
          v1::ReleaseProgramsRequest release;
          release.add_handles(program);
          v1::ReleaseProgramsResponse released;
          EXPECT_TRUE(calls.ReleasePrograms(release, &released).ok());
          program.clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  PreparedPrograms& programs = daemon_.daemon().prepared();
  EXPECT_LE(programs.UsageOfAll().handles, 2u);
  programs.Expire(absl::InfiniteFuture());
  EXPECT_EQ(programs.UsageOfAll().handles, 0u);
  EXPECT_EQ(programs.UsageOfAll().bytes, 0u);
  EXPECT_EQ(programs.count(PreparedPrograms::kPrepared) + programs.count(PreparedPrograms::kShared),
            programs.count(PreparedPrograms::kReleased) +
                programs.count(PreparedPrograms::kEvicted) +
                programs.count(PreparedPrograms::kExpired));
}

INSTANTIATE_TEST_SUITE_P(Doors, PreparedProgramsTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
