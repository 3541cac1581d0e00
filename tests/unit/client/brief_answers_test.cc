// Calls of prepared programs whose answers leave out what the client knows, and of daemons that do
// not know such answers.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using ::testing::ElementsAre;

// An answer, or what Prepare says of it.
v1::Result& AddResult(uint32_t invocation, const std::string& output, v1::ExecuteResponse* answer) {
  v1::Result& result = *answer->add_results();
  result.mutable_source()->set_invocation(invocation);
  result.mutable_source()->set_output(output);
  result.mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
  result.mutable_tensor()->add_shape(2);
  return result;
}

// Of the program below: a result that is sent, a kept one, and two that replace tensors.
v1::ExecuteResponse KnownAnswer() {
  v1::ExecuteResponse answer;
  for (uint32_t invocation = 0; invocation < 4; ++invocation) {
    AddResult(invocation, "out", &answer);
  }
  return answer;
}

void AddPayload(v1::ExecuteResponse* answer) {
  const float values[] = {3, 4};
  answer->add_payloads(reinterpret_cast<const char*>(values), sizeof(values));
}

v1::ExecuteResponse WholeAnswer() {
  v1::ExecuteResponse answer = KnownAnswer();
  answer.mutable_results(0)->mutable_tensor()->set_payload(0);
  const char* const handles[] = {"", "made", "given", "named"};
  for (int i = 1; i < 4; ++i) {
    v1::Result& result = *answer.mutable_results(i);
    result.mutable_tensor()->set_resident_tensor(handles[i]);
    result.mutable_kept()->set_device(1);
    result.mutable_kept()->set_version(i == 1 ? 1 : 5 + i);
  }
  answer.mutable_results(1)->mutable_kept()->mutable_lease_end()->set_seconds(1000);
  AddPayload(&answer);
  return answer;
}

v1::ExecuteResponse BriefAnswer() {
  v1::ExecuteResponse answer;
  v1::BriefResults& brief = *answer.mutable_brief();
  brief.set_device(1);
  brief.add_versions(7);
  brief.add_versions(8);
  brief.add_kept()->set_handle("made");
  brief.mutable_kept(0)->mutable_lease_end()->set_seconds(1000);
  AddPayload(&answer);
  return answer;
}

class BriefAnswersTest : public ::testing::Test {
 protected:
  // The daemon prepares programs so, and answers calls so.
  absl::StatusOr<Response> Call(const v1::ExecuteResponse& known,
                                const v1::ExecuteResponse& answer) {
    server_.set_prepare([known](const v1::PrepareRequest&, v1::PrepareResponse* response) {
      response->set_handle("a program");
      *response->mutable_results() = known.results();
    });
    server_.set_execute(
        [answer](grpc::ServerContext*, const v1::ExecuteRequest&, v1::ExecuteResponse* response) {
          *response = answer;
          return grpc::Status::OK;
        });
    Program p;
    const InputOf x = p.Input(kFloat, {2});
    const InputOf w = p.Input(kFloat, {2});
    const InputOf given = p.Input(kFloat, {2});
    p.Return(p.Add(x, w));
    p.Keep(p.Neg(x));
    p.Replace(given, p.Neg(given));
    p.Replace(ResidentTensor{.handle = "named"}, p.Exp(x));
    const PreparedProgram step = client_->Prepare(p.request()).value();
    return step({Tensor::Owning<float>({2}, {1, 2}), ResidentTensor{.handle = "another"},
                 ResidentTensor{.handle = "given"}});
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = Client::Connect(server_.target(), {.session = false}).value();
};

TEST_F(BriefAnswersTest, AreReadAsWholeOnes) {
  const struct {
    const char* name;
    v1::ExecuteResponse known;
    v1::ExecuteResponse answer;
    bool wants_brief;
  } cases[] = {
      {"a daemon that does not know them", {}, WholeAnswer(), false},
      {"one that does", KnownAnswer(), BriefAnswer(), true},
      {"one that does not and has the program of one that does", KnownAnswer(), WholeAnswer(),
       true},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);

    const absl::StatusOr<Response> response = Call(c.known, c.answer);

    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(server_.last_request().prepared().want_brief(), c.wants_brief);
    ASSERT_EQ(response->results.size(), 1u);
    EXPECT_THAT(response->results[0].values<float>().value(), ElementsAre(3, 4));
    EXPECT_EQ(response->results[0].source().output, "out");
    ASSERT_EQ(response->kept.size(), 3u);
    for (const ResidentTensor& tensor : response->kept) {
      EXPECT_EQ(tensor.dtype, kFloat);
      EXPECT_THAT(tensor.shape, ElementsAre(2));
      EXPECT_EQ(tensor.device, 1u);
    }
    const ResidentTensor& made = response->kept[0];
    EXPECT_EQ(made.handle, "made");
    EXPECT_EQ(made.version, 1u);
    EXPECT_EQ(made.lease_end, absl::FromUnixSeconds(1000));
    EXPECT_EQ(response->kept[1].handle, "given");
    EXPECT_EQ(response->kept[1].version, 7u);
    EXPECT_EQ(response->kept[2].handle, "named");
    EXPECT_EQ(response->kept[2].version, 8u);
    EXPECT_EQ(response->kept[2].lease_end, response->kept[1].lease_end);
  }
}

TEST_F(BriefAnswersTest, ThatDoNotFitTheProgramAreRefused) {
  using Change = std::function<void(v1::ExecuteResponse*)>;
  const std::pair<const char*, Change> cases[] = {
      {"no handle", [](auto* answer) { answer->mutable_brief()->clear_kept(); }},
      {"two handles", [](auto* answer) { answer->mutable_brief()->add_kept(); }},
      {"a version too few",
       [](auto* answer) { answer->mutable_brief()->mutable_versions()->RemoveLast(); }},
      {"a version too many", [](auto* answer) { answer->mutable_brief()->add_versions(1); }},
      {"no payload", [](auto* answer) { answer->clear_payloads(); }},
      {"two payloads", [](auto* answer) { AddPayload(answer); }},
      {"a payload of another size", [](auto* answer) { answer->set_payloads(0, "1234"); }},
  };
  for (const auto& [name, change] : cases) {
    SCOPED_TRACE(name);
    v1::ExecuteResponse answer = BriefAnswer();
    change(&answer);
    EXPECT_EQ(Call(KnownAnswer(), answer).status().code(), absl::StatusCode::kInternal);
  }
  // Of a daemon that has not described the results.
  EXPECT_EQ(Call({}, BriefAnswer()).status().code(), absl::StatusCode::kInternal);
  v1::ExecuteResponse fewer = KnownAnswer();
  fewer.mutable_results()->RemoveLast();
  EXPECT_EQ(Call(fewer, BriefAnswer()).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace opserve
