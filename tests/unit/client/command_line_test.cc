#include "client/cli/commands/command_line.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/arrays/npy.h"
#include "client/cli/commands/session.h"
#include "client/cli/text/result_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/command_line_fixture.h"
#include "tests/unit/client/test_server.h"

namespace opserve::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// `opserve run Scale` with both inputs from this file.
class RunCommandTest : public CommandLineTest {
 protected:
  Output RunScale(const std::string& fixture, const std::string& flags) {
    return RunHere(absl::StrCat("run Scale --input x=", Fixture(fixture),
                                " --input y=", Fixture("f8_scalar"), " ", flags));
  }

  TemporaryDirectory directory_;
};

TEST_F(CommandLineTest, OpsListsAndDescribes) {
  const Output list = RunHere("ops");
  EXPECT_EQ(list.exit_code, ExitCode::kOk);
  EXPECT_THAT(list.out, HasSubstr("Scale     yes        Multiplies x by a factor.\n"));
  EXPECT_THAT(list.out, HasSubstr("Absent    no\n"));

  const Output details = RunHere("ops Scale");
  EXPECT_THAT(details.out,
              AllOf(StartsWith("Scale\n  Multiplies x by a factor.\n"),
                    HasSubstr("\n      out = factor * x + 0 * y\n"),
                    HasSubstr("  x  FLOAT, BF16\n      The operand x.\n"),
                    HasSubstr("  mode  none (0), mean (1) or an integer from 0 up to 3; "
                              "default mean (1)\n"),
                    HasSubstr("  factor  a number; default 1.5\n"),
                    HasSubstr("  opserve run Scale \\\n      --input x=x.npy \\\n")));

  const Output json = RunHere("ops Scale --format=json");
  const auto document = nlohmann::json::parse(json.out);
  EXPECT_EQ(document["operators"].size(), 1u);
  EXPECT_EQ(document["operators"][0]["attributes"][1]["names"][1]["name"], "mean");
}

TEST_F(CommandLineTest, OpsDescribesEachKindOfInputAttributeAndOutput) {
  server_.add_operator(R"(
    name: "Mix"
    inputs { name: "weight" dtypes: DATA_TYPE_FLOAT optional: true }
    inputs { name: "tensors" dtypes: DATA_TYPE_INT64 dtypes: DATA_TYPE_BOOL list: true }
    inputs { name: "state" dtypes: DATA_TYPE_FLOAT in_place: true }
    attributes { name: "dims" type: TYPE_INT64S required: true minimum: -8 maximum: 7 }
    attributes { name: "alpha" type: TYPE_SCALAR
                 default_value { scalar_value { dtype: DATA_TYPE_FLOAT int64_value: 1 } } }
    attributes { name: "mode" type: TYPE_TEXT texts: "a" texts: "b"
                 default_value { text_value: "b" } }
    attributes { name: "to" type: TYPE_DTYPE dtypes: DATA_TYPE_BF16 dtypes: DATA_TYPE_INT8 }
    outputs { name: "state" dtypes: DATA_TYPE_FLOAT in_place: true }
    outputs { name: "grad_weight" dtypes: DATA_TYPE_FLOAT masked: true }
    outputs { name: "parts" dtypes: DATA_TYPE_INT64 list: true })");
  const Output details = RunHere("ops Mix");
  for (const char* line : {
           "  weight  FLOAT; optional\n",
           "  tensors  INT64, BOOL; a list: tensors.0, tensors.1, ...\n",
           "  state  FLOAT; what becomes of it is an output\n",
           "  dims  a list of integers such as [1,2] from -8 up to 7; required\n",
           "  alpha  a number, true or false, or NUMBER:DTYPE; default 1:FLOAT\n",
           "  mode  a, b; default b\n",
           "  to  BF16, INT8; optional\n",
           "  state  FLOAT; begins as the input\n",
           "  grad_weight  FLOAT; may be left out (--want)\n",
           "  parts  INT64; a list: parts.0, parts.1, ...\n",
           "run Mix \\\n      --input tensors.0=tensors.0.npy \\\n",
           "--input tensors.1=tensors.1.npy \\\n      --input state=state.npy \\\n",
           "--attr dims='[-8]' \\\n",
       }) {
    EXPECT_THAT(details.out, HasSubstr(line));
  }
  EXPECT_EQ(nlohmann::json::parse(
                RunHere("ops Mix --format=json").out)["operators"][0]["inputs"][1]["list"],
            true);
}

TEST_F(CommandLineTest, RunShowsIntegersExactly) {
  const Output output = RunHere(
      "run Scale --input x=random:ints(9007199254740993,9007199254740994):2 --input y=random:1");
  EXPECT_THAT(output.out, StartsWith("out  INT64 [2]  16 B\n"
                                     "min 9007199254740993  max 9007199254740993  mean "));
  EXPECT_THAT(output.out, HasSubstr("\n[9007199254740993, 9007199254740993]\n"));
  EXPECT_THAT(output.out, testing::Not(HasSubstr("nan")));
  const Output json =
      RunHere("run Scale --input x=random:ints(1,2):1:BOOL --input y=random:1 --format=json");
  const auto result = nlohmann::json::parse(json.out)["results"][0];
  EXPECT_EQ(result["values"].dump(), "[true]");
  EXPECT_EQ(result["min"], true);
}

TEST_F(CommandLineTest, StatusShowsTheDevices) {
  const Output text = RunHere("status");
  EXPECT_EQ(text.exit_code, ExitCode::kOk);
  EXPECT_THAT(
      text.out,
      AllOf(HasSubstr("opserved 1.2.3 on host CANN\n"),
            HasSubstr("started 2023-11-14 22:13:20 UTC\n"),
            HasSubstr("DEV  STATE        LANES  QUEUED  COMPLETED    MEMORY"),
            HasSubstr("\n  0  ready          0/4       7      12345  "), HasSubstr("/64 GiB"),
            HasSubstr("         3\n"), HasSubstr("\ndevice 1 is quarantined: lost (507899)\n"),
            HasSubstr("\ndevice 1 was taken out of service for faults 2 times\n"),
            HasSubstr("\ndevice 0 does not offer Scale: golden case: element 0 is 3, must "
                      "be 1\n"),
            Not(HasSubstr("STOPPING"))));

  const auto json = nlohmann::json::parse(RunHere("status --format json").out);
  EXPECT_EQ(json["devices"][0]["state"], "READY");
  EXPECT_EQ(json["devices"][0]["resident_bytes"], 1536);
  EXPECT_EQ(json["devices"][1]["state_reason"], "lost (507899)");
  EXPECT_EQ(json["devices"][0]["wrong_operators"][0]["operator"], "Scale");
}

TEST_F(CommandLineTest, StatusShowsTheCallersTensorsAndProgramsAndTheSessions) {
  EXPECT_THAT(RunHere("status").out,
              AllOf(Not(HasSubstr("your tenant")), Not(HasSubstr("session"))));
  v1::GetServerStatusResponse status;
  status.set_sessions(3);
  status.set_resident_tensors(1);
  status.set_resident_bytes(1536);
  status.set_prepared_programs(2);
  status.set_prepared_bytes(3 << 20);
  server_.set_status(status);

  EXPECT_THAT(RunHere("status").out,
              HasSubstr("\nyour tenant has 1 resident tensor (1.5 KiB) and 2 prepared programs "
                        "(3 MiB)\nthe daemon has 3 open sessions\n"));

  status.set_arriving_requests(1);
  status.set_departing_requests(2);
  server_.set_status(status);
  EXPECT_THAT(RunHere("status").out,
              HasSubstr("\nthe daemon has 3 open sessions; the payloads of 1 request are arriving; "
                        "the\nresults of 2 requests are leaving\n"));
}

TEST_F(CommandLineTest, StatusFitsEightyColumnsAndTellsADaemonThatStops) {
  v1::GetServerStatusResponse status;
  status.set_version("10.20.30");
  status.set_runtime("host CANN (this machine's processor), as Ascend910B3 8.5.0.alpha001");
  status.set_stopping(true);
  for (uint32_t id : {0u, 15u}) {
    v1::DeviceStatus* device = status.add_devices();
    device->set_device(id);
    device->set_state(id == 0 ? v1::DeviceStatus::STATE_DRAINED
                              : v1::DeviceStatus::STATE_QUARANTINED);
    device->set_state_reason(
        "a kernel of LogSoftmaxBackward did not end within 30s; the stream was "
        "aborted, and the device is reset");
    device->set_soc_name("Ascend910B3");
    device->set_lanes(16);
    device->set_executing_requests(16);
    device->set_queued_requests(8192);
    device->set_completed_requests(9876543210);
    device->set_memory_used_bytes((uint64_t{63} << 30) + (uint64_t{1} << 29));
    device->set_memory_total_bytes(uint64_t{64} << 30);
    device->set_pool_allocated_bytes(uint64_t{30} << 30);
    device->set_pool_reserved_bytes((uint64_t{31} << 30) + (uint64_t{1} << 29));
    device->set_resident_tensors(16384);
  }
  server_.set_status(status);

  const Output text = RunHere("status");

  EXPECT_EQ(text.exit_code, ExitCode::kOk) << text.err;
  for (const absl::string_view line : absl::StrSplit(text.out, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(text.out, AllOf(HasSubstr("\nSTOPPING: the daemon drains"),
                              HasSubstr("\n  0  drained "), HasSubstr("\n 15  quarantined ")));
}

TEST_F(RunCommandTest, RunSendsWhatItWasTold) {
  const Output output = RunScale(
      "f4_fortran", "--attr mode=mean --attr factor=2 --attr negate=true --output-dtype bf16");

  EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
  const v1::ExecuteRequest request = server_.last_request();
  const v1::Invocation& invocation = request.invocations(0);
  EXPECT_EQ(invocation.operator_(), "Scale");
  EXPECT_EQ(invocation.inputs(0).name(), "x");
  EXPECT_THAT(invocation.inputs(0).tensor().strides(), testing::ElementsAre(1, 2));
  EXPECT_EQ(invocation.inputs(1).tensor().dtype(), kDouble);
  EXPECT_EQ(invocation.attributes(0).value().name(), "mean");
  EXPECT_EQ(invocation.attributes(1).value().double_value(), 2);
  EXPECT_TRUE(invocation.attributes(2).value().bool_value());
  EXPECT_EQ(invocation.outputs(0).name(), "out");
  EXPECT_EQ(invocation.outputs(0).dtype(), kBf16);
  EXPECT_FALSE(request.want_receipt());
}

TEST_F(RunCommandTest, RunSaysHowUrgentItIs) {
  struct Case {
    const char* flag;
    v1::Priority priority;
  };
  for (const Case& c : {Case{"", v1::PRIORITY_NORMAL}, Case{"--priority=low", v1::PRIORITY_LOW},
                        Case{"--priority high", v1::PRIORITY_HIGH}}) {
    EXPECT_EQ(RunScale("f4_vector", c.flag).exit_code, ExitCode::kOk) << c.flag;
    EXPECT_EQ(server_.last_request().priority(), c.priority) << c.flag;
  }
  const Output refused = RunScale("f4_vector", "--priority=urgent");
  EXPECT_EQ(refused.exit_code, ExitCode::kUsage);
  EXPECT_THAT(refused.err, HasSubstr("--priority \"urgent\": expected low, normal or high"));
}

TEST_F(RunCommandTest, RunPrintsValuesAndReceipt) {
  const Output output = RunScale("f4_vector", "--receipt");

  EXPECT_THAT(output.out, StartsWith("out  FLOAT [3]  12 B\n"
                                     "min 0.1  max 0.1  mean 0.1\n"
                                     "1 of 3 finite, 1 nan\n"
                                     "[ 0.1,  nan, -inf]\n"));
  EXPECT_THAT(output.out, AllOf(HasSubstr("execute   1.5 us   50.0 %\n"),
                                HasSubstr("plan cache: 1 hits, 0 misses; device memory 2 KiB, a "
                                          "block this lane used before\n")));

  const auto json = nlohmann::json::parse(RunScale("f4_vector", "--receipt --format=json").out);
  EXPECT_EQ(json["results"][0]["values"][1], "nan");
  EXPECT_EQ(json["results"][0]["dtype"], "FLOAT");
  EXPECT_EQ(json["receipt"]["execute_ns"], 1500);
  EXPECT_EQ(json["receipt"]["pool_outcome"], "HIT");
}

TEST(ReceiptTextTest, SaysThatAnAnswerWasNotRemembered) {
  v1::Receipt receipt;
  EXPECT_THAT(FormatReceipt(receipt), Not(HasSubstr("not remembered")));
  receipt.set_not_remembered(true);
  EXPECT_THAT(FormatReceipt(receipt), HasSubstr("\nnot remembered: the daemon has no room"));
}

TEST(ReceiptTextTest, CountsCopiesOfViews) {
  v1::Receipt receipt;
  EXPECT_THAT(FormatReceipt(receipt), Not(HasSubstr("contiguous")));
  receipt.set_contiguous_copies(1);
  EXPECT_THAT(FormatReceipt(receipt), HasSubstr(" misses; 1 view copied to be contiguous; device"));
  receipt.set_contiguous_copies(2);
  EXPECT_THAT(FormatReceipt(receipt), HasSubstr("; 2 views copied to be contiguous; "));
}

TEST_F(RunCommandTest, RunWritesFilesThatNumpyReads) {
  for (const char* name : {"f2", "f4_empty", "bf16_ml_dtypes"}) {
    const std::string path = directory_.File("out.npy");

    const Output output = RunScale(name, "--output " + path);

    EXPECT_EQ(output.exit_code, ExitCode::kOk) << output.err;
    EXPECT_THAT(output.out, HasSubstr("written to " + path));
    const auto written = ReadNpy(path);
    ASSERT_TRUE(written.ok()) << written.status();
    EXPECT_EQ(written->dtype(), ReadNpy(Fixture(name))->dtype());
    EXPECT_EQ(written->shape(), ReadNpy(Fixture(name))->shape());
  }
  const std::string named = directory_.File("named.npy");
  EXPECT_EQ(RunScale("f2", "--output out=" + named).exit_code, ExitCode::kOk);
  EXPECT_TRUE(ReadNpy(named).ok());
}

class PipedTest : public CommandLineTest {
 protected:
  // Runs a command whose standard input has these bytes.
  Output RunPiped(const std::string& command, const std::string& bytes) {
    std::vector<std::string> arguments = absl::StrSplit(command, ' ', absl::SkipEmpty());
    arguments.push_back("--target=" + server_.target());
    std::ostringstream out;
    std::ostringstream err;
    std::istringstream input(bytes);
    Terminal terminal{.out = out, .err = err, .out_is_terminal = is_terminal_, .input = &input};
    const ExitCode exit_code = RunCommandLine(arguments, terminal);
    return {exit_code, out.str(), err.str()};
  }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  bool is_terminal_ = false;
};

TEST_F(PipedTest, ArraysComeFromAndGoToOtherPrograms) {
  const std::string array = Contents(Fixture("f4_vector"));
  const std::string y = absl::StrCat(" --input y=", Fixture("f8_scalar"));

  const Output run = RunPiped("run Scale --input x=- --output -" + y, array);
  EXPECT_EQ(run.exit_code, ExitCode::kOk) << run.err;
  EXPECT_EQ(run.out, array);
  EXPECT_THAT(run.err, HasSubstr("out  FLOAT [3]  12 B\n"));

  EXPECT_EQ(RunPiped("tensor upload -", array).exit_code, ExitCode::kOk);
  const Output download = RunPiped("tensor download 74656e736f722d30 --output -", "");
  EXPECT_EQ(download.out, array);
  EXPECT_THAT(download.err, HasSubstr("FLOAT [3]  12 B\n"));
}

TEST_F(PipedTest, WhatCannotBePipedIsRefused) {
  const std::string array = Contents(Fixture("f4_vector"));
  const std::string run = absl::StrCat("run Scale --input x=- --input y=", Fixture("f8_scalar"));
  for (const std::string& bytes : {std::string(), std::string("PK"), array.substr(0, 100)}) {
    const Output output = RunPiped(run, bytes);
    EXPECT_EQ(output.exit_code, ExitCode::kUsage);
    EXPECT_THAT(output.err, HasSubstr("input \"x\": standard input: "));
  }
  EXPECT_THAT(RunPiped(run + " --output - --format=json", array).err,
              HasSubstr("--output=- and --format=json would both write to standard output"));
  is_terminal_ = true;
  const Output shown = RunPiped(run + " --output -", array);
  EXPECT_EQ(shown.exit_code, ExitCode::kUsage);
  EXPECT_THAT(shown.err, HasSubstr("standard output is a terminal"));
  EXPECT_THAT(shown.out, IsEmpty());
}

TEST_F(CommandLineTest, RunReadsTwoByteArraysAsBf16IfTold) {
  const Output output = RunHere(
      absl::StrCat("run Scale --input x=", Fixture("u2"), ":bf16", " --input y=", Fixture("f2")));
  EXPECT_THAT(output.out, HasSubstr("out  BF16 [2]  4 B\nmin -2  max 1  mean -0.5\n"));
}

TEST_F(CommandLineTest, MistakesAreExplainedBeforeAnythingRuns) {
  const std::string x = absl::StrCat(" --input x=", Fixture("f2"));
  const std::string xy = absl::StrCat(x, " --input y=", Fixture("f2"));
  struct Case {
    std::string command;
    std::string complaint;
  };
  const Case kCases[] = {
      {"run Scael" + xy, "unknown operator \"Scael\"; did you mean Scale?"},
      {"ops Nope", "unknown operator \"Nope\"; known: Scale, Absent"},
      {"run Scale" + x, "input \"y\" is missing; Scale takes x, y"},
      {"run Scale" + xy + " --input z=a.npy", "unknown input \"z\"; known: x, y"},
      {"run Scale" + xy + x, "input \"x\" is given twice"},
      {"run Scale --input x", "--input \"x\": expected NAME=VALUE"},
      {"run Scale" + xy + " --attr mdoe=1", "unknown attribute \"mdoe\"; did you mean mode?"},
      {"run Scale" + xy + " --attr mode=max", "\"max\" is not none (0), mean (1) or an integer"},
      {"run Scale" + xy + " --attr negate=2", "\"2\" is not true or false"},
      {"run Scale" + xy + " --output-dtype int4",
       "\"int4\" is not FLOAT, FLOAT16, BF16, DOUBLE, INT8"},
      {"run Scale" + x + " --input y=none.npy", "input \"y\": none.npy: no such file"},
      {"run Scale" + xy + " --output /none/out.npy", "/none/out.npy"},
      {"run", "OPERATOR is required"},
      {"statsu", "unknown command \"statsu\"; did you mean status?"},
      {"help statsu", "unknown command \"statsu\"; did you mean status?"},
      {"help tensor uplaod", "unknown command \"uplaod\"; did you mean upload?"},
      {"tensor", "\"opserve tensor\" takes a command: upload, list, download, renew, release"},
      {"tensor uplaod a.npy", "unknown command \"uplaod\"; did you mean upload?"},
      {"tensor upload", "FILE is required"},
      {"tensor upload none.npy", "none.npy: no such file"},
      {"tensor upload a.npy --lease=long", "\"long\" is not a time"},
      {"tensor download 00", "--output is required"},
      {"tensor download xy --output a.npy", "\"xy\" is not a handle"},
      {"tensor renew 00 000", "has a handle that begins with \"000\""},
      {"tensor release", "HANDLE is required"},
      {"run Scale" + x + " --input y=tensor:none", "input \"y\": \"none\" is not a handle"},
      {"admin drian 0", "unknown command \"drian\"; did you mean drain?"},
      {"admin drain first", "DEVICE = first"},
      {"status --timeout=fast", "\"fast\" is not a time"},
      {"status --timeout=-1s", "\"-1s\" is not a time"},
      {"status --format=yaml", "\"yaml\" is not text or json"},
      {"status --nope", "--nope"},
      {"status --target=nowhere", "--target"},
      {"run Scale" + xy + " --output out.pt", "out.pt: arrays are written as .npy"},
      {"run Scale" + xy + " --output out.npz", "out.npz: arrays are written as .npy"},
      {"run Scale" + x + " --input y=y.pt", "input \"y\": y.pt: files of torch.save are not read"},
      {"run Scale --input x=- --input y=-:bf16", "2 inputs are \"-\""},
      {"run Scale" + x + " --input y=-", "input \"y\": -: standard input is a terminal"},
      {"run Scale" + xy + " --output - --output -", "given twice"},
      {"run Scale" + xy + " --keep otu", "--keep: unknown output \"otu\"; known: out"},
      {"run Scale" + xy + " --keep out --keep out", "--keep \"out\" is given twice"},
      {"run Scale" + xy + " --lease=1h",
       "--lease is that of outputs that stay; name one with --keep"},
      {"run Scale" + xy + " --keep out --lease=long", "\"long\" is not a time"},
      {"run Scale" + xy + " --keep out --verify", "--keep leaves them with the daemon"},
      {"run Scale" + xy + " --output out=- --format=text --output=-", "given twice"},
      {"tensor upload x.pth", "numpy.save(\"x.npy\", torch.load(\"x.pth\").numpy())"},
      {"tensor download 00 --output x.safetensors", "x.safetensors: arrays are written as .npy"},
      {"", "no command"},
  };
  for (const Case& c : kCases) {
    const Output output = RunHere(c.command);
    EXPECT_EQ(output.exit_code, ExitCode::kUsage) << c.command;
    EXPECT_THAT(output.err, AllOf(StartsWith("opserve: error: "), HasSubstr(c.complaint)));
    EXPECT_THAT(output.out, IsEmpty()) << c.command;
  }
}

TEST_F(RunCommandTest, RefusalsOfTheDaemonAreReported) {
  server_.set_execute([](grpc::ServerContext* context, const auto&, auto*) {
    v1::ErrorDetail detail;
    detail.set_reason("queue_full");
    detail.set_aclnn_status(161002);
    v1::StatusDetails details;
    details.add_details()->PackFrom(detail);
    context->AddTrailingMetadata("grpc-retry-pushback-ms", "90000");
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "come back later",
                        details.SerializeAsString());
  });

  const Output text = RunScale("f2", "");
  EXPECT_EQ(text.exit_code, ExitCode::kFailed);
  EXPECT_EQ(
      text.err,
      "opserve: error: UNAVAILABLE: come back later (after 1 attempt; the next would be beyond "
      "the deadline)\n"
      "  reason: queue_full, aclnn status: 161002\n"
      "  hint: try again in 1m30s\n");

  const Output json = RunScale("f2", "--format=json");
  const auto error = nlohmann::json::parse(json.err)["error"];
  EXPECT_EQ(error["code"], "UNAVAILABLE");
  EXPECT_EQ(error["exit_code"], 1);
  EXPECT_EQ(error["detail"]["reason"], "queue_full");
}

TEST(UnreachableTest, SaysWhereItLookedAndHowToStartTheDaemon) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("none");

  for (const char* command : {"status", "ops"}) {
    const Output output = RunProgram({command, "--target", target});
    EXPECT_EQ(output.exit_code, ExitCode::kUnreachable);
    EXPECT_THAT(output.err,
                AllOf(HasSubstr("cannot reach the daemon at " + target), HasSubstr("opserved")));
  }
  const Output json = RunProgram({"--format", "json", "--target", target, "status"});
  EXPECT_EQ(nlohmann::json::parse(json.err)["error"]["exit_code"], 3);
}

TEST(UnreachableTest, SaysOnATerminalThatItWaits) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("none");
  for (const bool is_terminal : {true, false}) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{.out = out, .err = err, .err_is_terminal = is_terminal};
    // The last attempt may end with the deadline or before it.
    EXPECT_NE(RunCommandLine({"tensor", "list", "--target", target, "--timeout=2s"}, terminal),
              ExitCode::kOk);
    const std::string word =
        absl::StrCat("opserve: waiting for the daemon at ", target, ", at most --timeout=2s (");
    if (is_terminal) {
      EXPECT_THAT(err.str(), HasSubstr(word));
    } else {
      EXPECT_THAT(err.str(), Not(HasSubstr("waiting for the daemon")));
    }
  }
}

TEST(HelpTest, TeachesWithoutADaemon) {
  struct Case {
    std::vector<std::string> arguments;
    const char* text;
  };
  const Case kCases[] = {
      {{"--help"}, "Usage: opserve [OPTIONS]"},
      {{"help"}, "Usage: opserve [OPTIONS]"},
      {{"help", "run"}, "Usage: opserve run"},
      {{"run", "--help"}, "Usage: opserve run"},
      {{"help", "status"}, "opserve status --targ"},
      {{"help", "ops"}, "opserve ops KlDivBackward"},
      {{"help", "tensor"}, "opserve tensor renew"},
      {{"help", "tensor", "upload"}, "Usage: opserve tensor upload"},
      {{"help", "tensor", "rm"}, "Usage: opserve tensor release"},
      {{"tensor", "renew", "--help"}, "Usage: opserve tensor renew"},
      {{"help", "admin", "drain"}, "repeat the command to wait"},
      {{"admin", "--help"}, "Usage: opserve admin"},
      {{"help", "bench"}, "opserve bench KlDivBackward --concurrency=1,4,16"},
      {{"help", "top"}, "opserve top --sort=pending"},
      {{"help", "admin", "log-level"}, "opserve admin log-level debug"},
      {{"--version"}, "opserve "},
  };
  for (const Case& c : kCases) {
    const Output output = RunProgram(c.arguments);
    EXPECT_EQ(output.exit_code, ExitCode::kOk) << c.arguments[0];
    EXPECT_THAT(output.out, HasSubstr(c.text));
    EXPECT_THAT(output.err, IsEmpty());
  }
}

TEST(HelpTest, TheNameAloneListsTheCommands) {
  const Output output = RunProgram({});
  EXPECT_EQ(output.exit_code, ExitCode::kUsage);
  for (const char* line : {"\nrun         Run an operator on arrays in files\n", "\nstatus ",
                           "\nhelp ", "\"opserve help COMMAND\" tells more"}) {
    EXPECT_THAT(output.err, HasSubstr(line));
  }
  EXPECT_THAT(output.err, AllOf(Not(HasSubstr("\ncomplete ")), Not(HasSubstr("\nmanual "))));
}

TEST(HelpTest, UsageErrorsAreJsonIfAsked) {
  const Output output = RunProgram({"run", "--format", "json"});
  EXPECT_EQ(output.exit_code, ExitCode::kUsage);
  EXPECT_EQ(nlohmann::json::parse(output.err)["error"]["code"], "INVALID_ARGUMENT");
}

TEST(DefaultTargetTest, EnvironmentDecides) {
  ASSERT_EQ(setenv("OPSERVE_TARGET", "host:1", 1), 0);
  ASSERT_EQ(setenv("XDG_RUNTIME_DIR", "/run/user/7", 1), 0);
  EXPECT_EQ(FindDefaultTarget().target, "host:1");
  EXPECT_EQ(FindDefaultTarget().source, TargetSource::kEnvironment);
  ASSERT_EQ(setenv("OPSERVE_TARGET", "", 1), 0);
  EXPECT_EQ(FindDefaultTarget().target, "unix:/run/user/7/opserve/opserve.sock");
  EXPECT_EQ(FindDefaultTarget().source, TargetSource::kDefault);
  ASSERT_EQ(unsetenv("XDG_RUNTIME_DIR"), 0);
  EXPECT_THAT(FindDefaultTarget().target,
              testing::MatchesRegex("unix:/tmp/opserve-[0-9]+/opserve.sock"));
}

}  // namespace
}  // namespace opserve::cli
