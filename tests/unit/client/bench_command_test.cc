#include <atomic>
#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/client/command_line_fixture.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

grpc::Status Refusal(const std::string& reason) {
  v1::ErrorDetail detail;
  detail.set_reason(reason);
  detail.set_retry_pushback_ms(10);
  v1::StatusDetails details;
  details.add_details()->PackFrom(detail);
  return {grpc::StatusCode::RESOURCE_EXHAUSTED, "not now", details.SerializeAsString()};
}

class BenchCommandTest : public CommandLineTest {
 protected:
  Output Bench(const std::string& flags, const std::string& duration = "300ms") {
    return RunHere(
        absl::StrCat("bench Scale --shape=3,4 --warmup=0 --duration=", duration, " ", flags));
  }

  // The first run of the document that a command writes.
  static nlohmann::json FirstRun(const Output& output) {
    return nlohmann::json::parse(output.out)["runs"][0];
  }
};

TEST_F(BenchCommandTest, MeasuresCallsAndShowsIt) {
  const Output output = Bench("--concurrency=1,3 --attr mode=mean --dtype=BF16");

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  EXPECT_THAT(output.err, IsEmpty());
  EXPECT_THAT(output.out,
              AllOf(StartsWith("Scale of x BF16 [3, 4], y BF16 [3, 4]; 48 B in a request\n"
                               "closed loop"),
                    HasSubstr("\nCONCURRENCY  REQUESTS/S  "), HasSubstr("\n          3  "),
                    HasSubstr("\nCONCURRENCY  "), HasSubstr(" receipts\n")));
  const v1::Invocation invocation = server_.last_request().invocations(0);
  EXPECT_EQ(invocation.attributes(0).value().name(), "mean");
  EXPECT_EQ(invocation.inputs(1).tensor().dtype(), kBf16);
}

TEST_F(BenchCommandTest, JsonIsOneDocument) {
  for (const char* flags :
       {"--transport=unary", "--transport=session", "--rate=5000", "--concurrency=8"}) {
    const Output output = Bench(absl::StrCat(flags, " --format=json"));
    EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
    const nlohmann::json run = FirstRun(output);
    EXPECT_GT(run["answered"], 0) << flags;
    EXPECT_EQ(run["failed"], 0);
    EXPECT_GE(run["latency_ns"]["max"], run["latency_ns"]["min"]);
    EXPECT_EQ(run["receipts"]["mean_stages"]["execute_ns"], 1500);
    EXPECT_EQ(run["errors"].size(), 0u);
  }
}

TEST_F(BenchCommandTest, MeasuresCallsOfAPreparedProgram) {
  server_.set_prepare([](const v1::PrepareRequest& request, v1::PrepareResponse* response) {
    EXPECT_EQ(request.program().invocations(0).operator_(), "Scale");
    response->set_handle("scaling");
  });
  std::atomic<int> others = 0;
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    if (request.prepared().program() != "scaling") {
      ++others;
      return TestServer::Echo(context, request, response);
    }
    response->mutable_receipt()->set_execute_ns(1500);
    return grpc::Status::OK;
  });
  for (const char* transport : {"unary", "session"}) {
    others = 0;
    const Output output = Bench(absl::StrCat("--prepare --format=json --transport=", transport));
    EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
    EXPECT_EQ(others, 1);  // the first, which shows that the request is right
    EXPECT_EQ(nlohmann::json::parse(output.out)["prepared"], true);
    EXPECT_GT(FirstRun(output)["answered"], 0) << transport;
  }
}

TEST_F(BenchCommandTest, PreparedProgramsHaveTwoTransports) {
  const Output output = Bench("--prepare --transport=shm");
  EXPECT_EQ(output.exit_code, ExitCode::kUsage);
  EXPECT_THAT(output.err, HasSubstr("--prepare is for --transport=session and --transport=unary"));
}

TEST_F(BenchCommandTest, RefusalsForOverloadAreShownButNoFailure) {
  std::atomic<int> calls = 0;
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    return calls++ % 2 == 0 ? Refusal("queue_full") : TestServer::Echo(context, request, response);
  });

  const Output output = Bench("--format=json");

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  const nlohmann::json run = FirstRun(output);
  EXPECT_GT(run["refused"], 0);
  EXPECT_GT(run["answered"], 0);
  EXPECT_EQ(run["errors"][0]["reason"], "queue_full");
}

TEST_F(BenchCommandTest, ItFailsIfAllAreRefused) {
  server_.set_execute([](auto*, const auto&, auto*) { return Refusal("rate_limited"); });

  const Output output = Bench("");

  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_THAT(output.out, HasSubstr("x RESOURCE_EXHAUSTED (rate_limited), refused for overload"));
  EXPECT_THAT(output.err, HasSubstr("every request was refused; the first: not now"));
}

TEST_F(BenchCommandTest, OneFailureIsEnoughToFail) {
  std::atomic<int> calls = 0;
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    if (++calls == 2) return grpc::Status(grpc::StatusCode::INTERNAL, "a kernel failed");
    return TestServer::Echo(context, request, response);
  });

  const Output output = Bench("");

  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_THAT(output.out, HasSubstr("concurrency 1: 1 x INTERNAL: a kernel failed\n"));
  EXPECT_THAT(output.err, HasSubstr("INTERNAL: 1 request failed; the first: a kernel failed"));
}

TEST_F(BenchCommandTest, ADaemonThatTakesNoneIsNotAskedForLong) {
  std::atomic<int> calls = 0;
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    if (++calls > 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "going");
    return TestServer::Echo(context, request, response);
  });

  const Output output = Bench("--concurrency=4,8", "1h");

  EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
  EXPECT_THAT(output.out, HasSubstr("concurrency 4: given up, as nothing but failures came"));
  EXPECT_THAT(output.err, HasSubstr("going"));
}

TEST_F(BenchCommandTest, CtrlCEndsItAndShowsWhatWasMeasured) {
  std::atomic<int> calls = 0;
  server_.set_execute([&](auto* context, const auto& request, auto* response) {
    if (++calls == 10) raise(SIGINT);
    return TestServer::Echo(context, request, response);
  });

  const Output output = Bench("--concurrency=1,2", "1h");

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  EXPECT_THAT(output.out, HasSubstr("concurrency 1: interrupted, measured "));
  EXPECT_EQ(calls, 10);
}

TEST_F(BenchCommandTest, MistakesAreExplainedBeforeAnythingRuns) {
  struct Case {
    const char* command;
    const char* complaint;
    const char* hint;
  };
  const Case kCases[] = {
      {"bench", "OPERATOR is required", "opserve help bench"},
      {"bench Scael", "unknown operator \"Scael\"; did you mean Scale?", "opserve ops"},
      {"bench Scale --shape=2,x", "--shape \"2,x\": expected up to 8 extents", "opserve ops Scale"},
      {"bench Scale --dtype=DOUBLE", "input \"x\" takes FLOAT, BF16, not DOUBLE", "ops Scale"},
      {"bench Scale --attr mode=max", "\"max\" is not none (0), mean (1)", "opserve ops Scale"},
      {"bench Scale --rate=0", "\"0\" is not a number of requests per second", "help bench"},
      {"bench Scale --concurrency=1,0", "\"1,0\" is not a number from 1 to 1024", "help bench"},
      {"bench Scale --transport=tcp", "\"tcp\" is not unary, session or shm", "help bench"},
      {"bench Scale --duration=long", "\"long\" is not a time", "help bench"},
      {"bench Scale --warmup=-1s", "\"-1s\" is not a time", "help bench"},
  };
  for (const Case& c : kCases) {
    const Output output = RunHere(c.command);
    EXPECT_EQ(output.exit_code, ExitCode::kUsage) << c.command;
    EXPECT_THAT(output.err, AllOf(HasSubstr(c.complaint), HasSubstr(c.hint)));
    EXPECT_THAT(output.out, IsEmpty()) << c.command;
  }
}

TEST_F(BenchCommandTest, ACallThatCannotSucceedIsToldOfAtOnce) {
  server_.set_execute([](auto*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "dim: 7 is outside [-2, 1]");
  });

  const Output output = Bench("", "1h");

  EXPECT_EQ(output.exit_code, ExitCode::kFailed);
  EXPECT_THAT(output.err, HasSubstr("INVALID_ARGUMENT: dim: 7 is outside"));
  EXPECT_THAT(output.out, IsEmpty());
}

}  // namespace
}  // namespace opserve::cli
