// Programs of the C++ client against a daemon: builder, prepared programs, and programs in files.
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cpp/program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/run/prepared_programs.h"
#include "tests/await.h"
#include "tests/integration/await_session.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/unit/client/command_line_fixture.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve {
namespace {

using server::InProcessDaemon;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Floats(const Result& result) {
  const auto values = result.values<float>();
  return values.ok() ? std::vector<float>(values->begin(), values->end()) : std::vector<float>();
}

Tensor Vector(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::Owning<float>({count}, std::move(values));
}

class ProgramsFixture : public ::testing::Test {
 protected:
  virtual Client& client() { return daemon_.client(); }

  ResidentTensor Upload(std::vector<float> values) {
    return client().Upload(Vector(std::move(values))).value();
  }
  std::vector<float> Download(const ResidentTensor& tensor) {
    return Floats(client().Download(tensor.handle).value());
  }
  uint32_t Prepared() { return client().GetServerStatus().value().prepared_programs(); }

  InProcessDaemon daemon_;
};

// By calls, and by a session.
class ClientProgramsTest : public ProgramsFixture, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    client_ =
        *Client::Connect(daemon_.target(), {.retry = {.max_attempts = 1}, .session = GetParam()});
    if (GetParam()) server::AwaitSession(daemon_, *client_);
  }
  Client& client() override { return *client_; }

 private:
  std::unique_ptr<Client> client_;
};
INSTANTIATE_TEST_SUITE_P(Ways, ClientProgramsTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Session" : "Calls");
});

TEST_P(ClientProgramsTest, ValuesOfEachKindAreInputs) {
  const ResidentTensor resident = Upload({100, 200});
  Program p;
  const OutputOf sum = p.Add(Vector({1, 2}), Program::LiteralOf<float>({2}, {{10, 20}}));
  const OutputOf more = p.Add(p.Add(sum, resident), Program::Full<float>({2}, 1000));
  const View reversed_rows{
      .base = resident, .dtype = kFloat, .shape = {1}, .strides = {1}, .offset = 1};
  const OutputOf all = p.Cat({more, reversed_rows}, {.dim = 0});
  p.Return(all);

  const absl::StatusOr<Response> response = client().Execute(p.request());

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(Floats(response->results[0]), ElementsAre(1111, 1222, 200));
}

TEST_P(ClientProgramsTest, ResultsAreKeptReplacedAndGivenUp) {
  const ResidentTensor changed = Upload({1, 2});
  const ResidentTensor given_up = Upload({3, 4});
  Program p;
  const OutputOf sum = p.Add(changed, given_up);
  p.Keep(p.Neg(sum));
  p.Replace(changed, sum, /*version=*/1);
  p.Donate(given_up);

  const absl::StatusOr<Response> response = client().Execute(p.request());

  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->kept.size(), 2u);
  EXPECT_THAT(Download(response->kept[0]), ElementsAre(-4, -6));
  EXPECT_EQ(response->kept[1].handle, changed.handle);
  EXPECT_EQ(response->kept[1].version, 2u);
  EXPECT_THAT(Download(changed), ElementsAre(4, 6));
  EXPECT_EQ(client().Download(given_up.handle).status().code(), absl::StatusCode::kNotFound);

  const absl::StatusOr<Response> again = client().Execute(p.request());

  EXPECT_FALSE(again.ok());  // another version, and a tensor that is gone
  EXPECT_THAT(Download(changed), ElementsAre(4, 6));
}

// x + 3 w, where 3 is a tensor that comes from this process with each call.
Program Step() {
  Program p;
  const InputOf x = p.Input(kFloat, {2});
  const InputOf w = p.Input(kFloat, {2});
  p.Return(p.Add(x, p.Mul(w, Vector({3, 3}))));
  return p;
}

TEST_P(ClientProgramsTest, APreparedProgramIsCalledLikeAFunction) {
  const absl::StatusOr<PreparedProgram> step = client().Prepare(Step().request());
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(Prepared(), 0u);  // nothing was sent

  for (const float value : {1.0f, 2.0f}) {
    const absl::StatusOr<Response> response = (*step)({Vector({value, 5}), Vector({10, 20})});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_THAT(Floats(response->results[0]), ElementsAre(value + 30, 65));
  }
  EXPECT_EQ(Prepared(), 1u);
  const absl::StatusOr<Response> mixed = (*step)({Vector({1, 5}), Upload({10, 20})});
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_THAT(Floats(mixed->results[0]), ElementsAre(31, 65));
  EXPECT_EQ(Prepared(), 2u);  // for inputs that come in another way
  EXPECT_EQ(step->prepared_again(), 0u);
}

TEST_P(ClientProgramsTest, ACallOfAPreparedProgramTellsWhatStays) {
  const ResidentTensor total = Upload({0, 0});
  Program p;
  const InputOf x = p.Input(kFloat, {2});
  const InputOf w = p.Input(kFloat, {2});
  const OutputOf sum = p.Add(x, w);
  p.Return(sum);
  p.Keep(p.Neg(sum));
  p.Replace(w, sum);
  p.Replace(total, p.Add(total, x));
  const PreparedProgram step = client().Prepare(p.request()).value();
  const ResidentTensor changed = Upload({10, 20});

  for (const float count : {1.0f, 2.0f}) {
    const absl::StatusOr<Response> response = step({Vector({1, 2}), changed});

    ASSERT_TRUE(response.ok()) << response.status();
    ASSERT_EQ(response->results.size(), 1u);
    EXPECT_THAT(Floats(response->results[0]), ElementsAre(10 + count, 20 + 2 * count));
    ASSERT_EQ(response->kept.size(), 3u);
    for (const ResidentTensor& one : response->kept) {
      EXPECT_EQ(one.dtype, kFloat);
      EXPECT_THAT(one.shape, ElementsAre(2));
      EXPECT_EQ(one.device, changed.device);
    }
    EXPECT_EQ(response->kept[0].version, 1u);
    EXPECT_GT(response->kept[0].lease_end, absl::Now());
    EXPECT_THAT(Download(response->kept[0]), ElementsAre(-10 - count, -20 - 2 * count));
    EXPECT_EQ(response->kept[1].handle, changed.handle);
    EXPECT_EQ(response->kept[1].version, 1 + static_cast<uint64_t>(count));
    EXPECT_EQ(response->kept[2].handle, total.handle);
    EXPECT_EQ(response->kept[2].version, 1 + static_cast<uint64_t>(count));
  }
  EXPECT_THAT(Download(changed), ElementsAre(12, 24));
  EXPECT_THAT(Download(total), ElementsAre(2, 4));
}

TEST_P(ClientProgramsTest, LargeTensorsOfTheCallersAreSentAndGivenBack) {
  constexpr int64_t kCount = 1 << 20;
  Program p;
  p.Return(p.Neg(p.Input(kFloat, {kCount})));
  const PreparedProgram step = client().Prepare(p.request()).value();
  const std::vector<float> borrowed(kCount, 2);

  const absl::StatusOr<Response> response = step({Tensor::Of<float>({kCount}, borrowed)});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(Floats(response->results[0]), testing::Each(-2));
}

TEST_P(ClientProgramsTest, TheSameTensorMayBeSeveralInputs) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  const Tensor twice = Vector({10, 20});

  const absl::StatusOr<Response> response = step({twice, twice});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(Floats(response->results[0]), ElementsAre(40, 80));
}

TEST_P(ClientProgramsTest, AttributesChangeFromCallToCall) {
  Program p;
  p.Return(p.Adds(p.Input(kFloat, {1}), {.other = 1.0}));
  const PreparedProgram step = client().Prepare(p.request()).value();

  for (const double other : {2.0, 3.0}) {
    const absl::StatusOr<Response> response = step(
        {Vector({0})},
        {.attributes = {{.invocation = 0, .attribute = {"other", other}}}, .want_receipt = true});
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_THAT(Floats(response->results[0]), ElementsAre(other));
    EXPECT_TRUE(response->receipt.has_value());
  }
}

TEST_P(ClientProgramsTest, AProgramThatTheDaemonLostIsPreparedAgainOnce) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  ASSERT_TRUE(step({Vector({1, 2}), Vector({3, 4})}).ok());
  daemon_.daemon().prepared().Expire(absl::Now() + absl::Hours(1000));

  ASSERT_TRUE(step({Vector({1, 2}), Vector({3, 4})}).ok());

  EXPECT_EQ(step.prepared_again(), 1u);
}

TEST_P(ClientProgramsTest, CallsBesideTheirCallerHaveTheSameResults) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  std::vector<std::future<absl::StatusOr<Response>>> responses;
  for (int i = 0; i < 100; ++i) {
    responses.push_back(step.CallAsync({Vector({static_cast<float>(i), 5}), Vector({10, 20})}));
  }

  for (int i = 0; i < 100; ++i) {
    const absl::StatusOr<Response> response = responses[i].get();
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_THAT(Floats(response->results[0]), ElementsAre(static_cast<float>(i) + 30, 65));
  }
  EXPECT_EQ(Prepared(), 1u);
}

TEST_P(ClientProgramsTest, ACallbackMayMakeTheNextCall) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  std::promise<absl::StatusOr<Response>> last;
  step.CallAsync({Vector({1, 2}), Vector({3, 4})}, [&](absl::StatusOr<Response> first) {
    if (!first.ok()) return last.set_value(std::move(first));
    const absl::StatusOr<Response> inside =
        step({Vector(Floats(first->results[0])), Vector({0, 0})});
    if (!inside.ok()) return last.set_value(inside);
    step.CallAsync({Vector(Floats(inside->results[0])), Vector({1, 1})},
                   [&](absl::StatusOr<Response> second) { last.set_value(std::move(second)); });
  });

  const absl::StatusOr<Response> response = last.get_future().get();

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(Floats(response->results[0]), ElementsAre(1 + 9 + 3, 2 + 12 + 3));
}

TEST_P(ClientProgramsTest, AProgramThatIsLostWithCallsInFlightIsPreparedAgainOnce) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  ASSERT_TRUE(step.PrepareFor({Vector({1, 2}), Vector({3, 4})}).ok());
  daemon_.daemon().prepared().Expire(absl::Now() + absl::Hours(1000));

  std::vector<std::future<absl::StatusOr<Response>>> responses;
  for (int i = 0; i < 8; ++i) {
    responses.push_back(step.CallAsync({Vector({1, 2}), Vector({3, 4})}));
  }

  for (auto& response : responses) {
    const absl::StatusOr<Response> answer = response.get();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(Floats(answer->results[0]), ElementsAre(10, 14));
  }
  EXPECT_EQ(step.prepared_again(), 1u);
}

TEST_P(ClientProgramsTest, MistakesOfACallBesideItsCallerAreToldAtOnce) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  const struct {
    std::vector<PreparedProgram::Input> inputs;
    PreparedCallOptions options;
    const char* problem;
  } kMistakes[] = {
      {{Vector({1, 2})}, {}, "1 inputs given; the program has 2"},
      {{Vector({1, 2}), Vector({3})}, {}, "input 1 is FLOAT [1]; expected FLOAT [2]"},
      {{Vector({1, 2}), Vector({3, 4})},
       {.versions = {{.input = 1, .version = 1}}},
       "a version of input 1, which is no resident tensor"},
      {{Vector({1, 2}), Vector({3, 4})},
       {.versions = {{.input = 2, .version = 1}}},
       "a version of input 2, which is no resident tensor"},
  };
  for (const auto& mistake : kMistakes) {
    absl::Status status;
    step.CallAsync(
        mistake.inputs,
        [&](const absl::StatusOr<Response>& response) { status = response.status(); },
        mistake.options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), mistake.problem);
  }
  EXPECT_EQ(Prepared(), 0u);
}

TEST_P(ClientProgramsTest, TheDaemonForgetsProgramsThatNobodyHas) {
  {
    const PreparedProgram step = client().Prepare(Step().request()).value();
    const PreparedProgram copy = step;
    ASSERT_TRUE(copy({Vector({1, 2}), Vector({3, 4})}).ok());
  }
  EXPECT_EQ(Prepared(), 1u);

  const PreparedProgram next = client().Prepare(Step().request()).value();

  EXPECT_EQ(Prepared(), 0u);
}

TEST_P(ClientProgramsTest, WrongInputsAreNamed) {
  const PreparedProgram step = client().Prepare(Step().request()).value();
  const auto message = [&step](const std::vector<PreparedProgram::Input>& inputs) {
    return std::string(step(inputs).status().message());
  };

  EXPECT_EQ(message({Vector({1, 2})}), "1 inputs given; the program has 2");
  EXPECT_EQ(message({Vector({1, 2}), Vector({1})}), "input 1 is FLOAT [1]; expected FLOAT [2]");
  EXPECT_EQ(message({Tensor::Owning<int64_t>({2}, {1, 2}), Vector({1, 2})}),
            "input 0 is INT64 [2]; expected FLOAT [2]");

  Program unused;
  unused.Input(kFloat, {2});
  unused.Return(unused.Neg(unused.Input(kFloat, {2})));
  EXPECT_EQ(client().Prepare(unused.request()).status().message(),
            "input 0 of the program is used by nothing");
}

// w += x, beside its caller in a session.
class StepsInFlightTest : public ProgramsFixture {
 protected:
  StepsInFlightTest() {
    server::AwaitSession(daemon_, client());
    Program p;
    const InputOf x = p.Input(kFloat, {2});
    const InputOf w = p.Input(kFloat, {2});
    p.Replace(w, p.Add(w, x));
    step_.emplace(client().Prepare(p.request()).value());
  }

  std::optional<PreparedProgram> step_;
};

TEST_F(StepsInFlightTest, RunInTheOrderInWhichTheyWereSent) {
  const ResidentTensor total = Upload({0, 0});
  std::vector<std::future<absl::StatusOr<Response>>> responses;
  for (uint64_t i = 0; i < 50; ++i) {
    responses.push_back(
        step_->CallAsync({Vector({1, 2}), total}, {.versions = {{.input = 1, .version = 1 + i}}}));
  }

  for (uint64_t i = 0; i < 50; ++i) {
    const absl::StatusOr<Response> response = responses[i].get();
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->kept[0].version, 2 + i);
  }
  EXPECT_THAT(Download(total), ElementsAre(50, 100));
}

TEST_F(StepsInFlightTest, DoNothingAfterOneThatFailed) {
  const ResidentTensor total = Upload({0, 0});
  auto first =
      step_->CallAsync({Vector({1, 2}), total}, {.versions = {{.input = 1, .version = 1}}});
  auto wrong =
      step_->CallAsync({Vector({1, 2}), total}, {.versions = {{.input = 1, .version = 7}}});
  auto next = step_->CallAsync({Vector({1, 2}), total}, {.versions = {{.input = 1, .version = 3}}});

  EXPECT_TRUE(first.get().ok());
  for (auto* failed : {&wrong, &next}) {
    const absl::Status status = failed->get().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(ErrorDetailOf(status)->reason(), "tensor_version");
  }
  EXPECT_THAT(Download(total), ElementsAre(1, 2));
}

TEST(PreparedProgramTest, ACallBesideItsCallerCanBeCancelled) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  const std::vector<PreparedProgram::Input> inputs = {Vector({1, 2}), Vector({3, 4})};
  for (const bool has_session : {false, true}) {
    const auto client = *Client::Connect(daemon.target(), {.session = has_session});
    if (has_session) server::AwaitSession(daemon, *client);
    for (const bool is_lost : {false, true}) {
      const PreparedProgram step = client->Prepare(Step().request()).value();
      ASSERT_TRUE(step(inputs).ok());
      if (is_lost) daemon.daemon().prepared().Expire(absl::Now() + absl::Hours(1000));
      const int64_t launches = server::HostCount(OPSERVE_HOST_LAUNCHES);
      server::InjectFaults("kernel=*,slow=1000000");
      auto slow = client->ExecuteAsync(
          {.invocations = {{.operator_name = "Neg", .inputs = {{"self", Vector({1})}}}}});
      EXPECT_TRUE(Await([&] { return server::HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));

      std::promise<absl::StatusCode> end;
      const CallHandle handle =
          step.CallAsync(inputs, [&](const absl::StatusOr<Response>& response) {
            end.set_value(response.status().code());
          });
      EXPECT_TRUE(Await([&] { return step.prepared_again() == (is_lost ? 1u : 0u); }));
      handle.Cancel();

      EXPECT_EQ(end.get_future().get(), absl::StatusCode::kCancelled);
      server::ClearFaults();
      EXPECT_TRUE(slow.get().ok());
      handle.Cancel();  // does nothing
    }
  }
}

TEST(PreparedProgramTest, ACallAfterTheClientsEndIsCancelled) {
  InProcessDaemon daemon;
  std::unique_ptr<Client> client = *Client::Connect(daemon.target());
  const PreparedProgram step = client->Prepare(Step().request()).value();
  ASSERT_TRUE(step.PrepareFor({Vector({1, 2}), Vector({3, 4})}).ok());
  client.reset();

  EXPECT_EQ(step.CallAsync({Vector({1, 2}), Vector({3, 4})}).get().status().code(),
            absl::StatusCode::kCancelled);
}

// The client goes while its thread makes a call of the program in a callback.
TEST(PreparedProgramTest, AClientMayGoWhileACallbackCallsTheProgram) {
  InProcessDaemon daemon;
  for (int i = 0; i < 20; ++i) {
    std::unique_ptr<Client> client = *Client::Connect(daemon.target());
    const PreparedProgram step = client->Prepare(Step().request()).value();
    std::promise<void> begun;
    std::promise<absl::StatusCode> last;
    step.CallAsync({Vector({1, 2}), Vector({3, 4})}, [&](const absl::StatusOr<Response>&) {
      begun.set_value();
      // One that waits, and one that is in flight or not begun when the client goes.
      step({Vector({1, 2}), Vector({3, 4})}).IgnoreError();
      step.CallAsync({Vector({1, 2}), Vector({3, 4})},
                     [&](const absl::StatusOr<Response>& response) {
                       last.set_value(response.status().code());
                     });
    });
    begun.get_future().wait();
    client.reset();

    EXPECT_THAT(last.get_future().get(),
                testing::AnyOf(absl::StatusCode::kOk, absl::StatusCode::kCancelled));
  }
}

class ProgramCommandTest : public ProgramsFixture {
 protected:
  void SetUp() override {
    std::ofstream(Path("step")) << R"(
      inputs { dtype: DATA_TYPE_FLOAT shape: 3 }
      inputs { dtype: DATA_TYPE_FLOAT shape: 3 }
      program {
        invocations {
          operator: "Add"
          inputs { name: "self" tensor { program_input: 0 } }
          inputs { name: "other" tensor { program_input: 1 } }
        }
        results { output: "out" }
        results { output: "out" replace { program_input: 1 } }
      })";
  }
  std::string Path(const std::string& name) {
    return absl::StrCat(testing::TempDir(), "/program_command_", getpid(), "_", name);
  }
  cli::Output Run(const std::string& command) {
    std::vector<std::string> arguments = absl::StrSplit(command, ' ', absl::SkipEmpty());
    arguments.push_back("--target=" + daemon_.target());
    return cli::RunProgram(arguments);
  }
};

TEST_F(ProgramCommandTest, RunsAFileWithAndWithoutPreparation) {
  const std::string input = cli::Fixture("f4_vector");
  for (const std::string flag : {"", " --prepare"}) {
    const cli::Output run =
        Run(absl::StrCat("program run ", Path("step"), " --repeat=3 --format=json",
                         " --input 0=", input, " --input 1=", input, flag));

    ASSERT_EQ(run.exit_code, cli::ExitCode::kOk) << run.err;
    const auto document = nlohmann::json::parse(run.out);
    EXPECT_EQ(document["results"][0]["dtype"], "FLOAT");
    EXPECT_EQ(document["results"][0]["shape"], nlohmann::json({3}));
    EXPECT_EQ(document["kept"].size(), 1u);
    EXPECT_EQ(document["times"]["more_runs"], 2);
    EXPECT_EQ(document["times"].contains("prepare_ms"), !flag.empty());
  }
  EXPECT_EQ(client().ListTensors().value().size(), 0u);  // those that it uploaded are released
}

TEST_F(ProgramCommandTest, TheInputMayBeResidentOrRandom) {
  const ResidentTensor tensor = Upload({1, 2, 3});
  std::string handle;
  for (const unsigned char byte : tensor.handle) handle += absl::StrFormat("%02x", byte);

  const cli::Output run =
      Run(absl::StrCat("program run ", Path("step"), " --prepare --input 1=tensor:", handle,
                       " --output 0=", Path("sum.npy")));

  ASSERT_EQ(run.exit_code, cli::ExitCode::kOk) << run.err;
  EXPECT_THAT(run.out, HasSubstr("written to"));
  EXPECT_THAT(run.out, HasSubstr("version 2"));
  EXPECT_THAT(run.out, HasSubstr("prepared in"));
  EXPECT_THAT(Download(tensor), testing::Each(testing::Gt(1)));
}

TEST_F(ProgramCommandTest, DrawsTheProgram) {
  const cli::Output run =
      Run(absl::StrCat("program run ", Path("step"), " --dot=", Path("step.dot")));

  ASSERT_EQ(run.exit_code, cli::ExitCode::kOk) << run.err;
  std::ifstream file(Path("step.dot"));
  const std::string drawing((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(drawing, R"(digraph program {
  node [fontname="sans-serif"];
  input0 [label="input 0\nFLOAT [3]", shape=box];
  input1 [label="input 1\nFLOAT [3]", shape=box];
  call0 [label="Add\n0", shape=oval];
  input0 -> call0 [label="self"];
  input1 -> call0 [label="other"];
  result0 [label="result 0\nreturned", shape=box];
  call0 -> result0 [label="out"];
  result1 [label="result 1\nreplaced", shape=box];
  call0 -> result1 [label="out"];
  result1 -> input1 [label="replaces"];
}
)");
}

TEST_F(ProgramCommandTest, MistakesAreNamed) {
  std::ofstream(Path("broken")) << "program {\n  invocation { }\n}";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {absl::StrCat("program run ", Path("broken")), ":2:14: "},
      {absl::StrCat("program run ", Path("none")), "program_command_"},
      {absl::StrCat("program run ", Path("step"), " --input 2=random:3"),
       "the program has 2 inputs"},
      {absl::StrCat("program run ", Path("step"), " --input 0=random:4"),
       "input 0 is FLOAT [4]; the program takes FLOAT [3]"},
      {absl::StrCat("program run ", Path("step"), " --input x=random:4"), "expected NUMBER=VALUE"},
      {absl::StrCat("program run ", Path("step"), " --output 1=", Path("x.npy")),
       "the program returns 1 results"},
  };
  for (const auto& [command, complaint] : cases) {
    const cli::Output run = Run(command);
    EXPECT_EQ(run.exit_code, cli::ExitCode::kUsage) << command;
    EXPECT_THAT(run.err, HasSubstr(complaint)) << command;
  }
}

}  // namespace
}  // namespace opserve
