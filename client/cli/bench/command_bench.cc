#include "client/cli/commands/commands.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/bench/bench_arguments.h"
#include "client/cli/bench/bench_load.h"
#include "client/cli/bench/bench_report.h"
#include "client/cli/bench/bench_sender.h"
#include "client/cli/bench/interruptible_clock.h"
#include "client/cli/commands/shared_arena.h"
#include "client/cli/text/progress_bar.h"
#include "proto/dtypes/dtype.h"

namespace opserve::cli {
namespace {

constexpr char kBenchFooter[] =
    R"(Inputs are random numbers from 0.25 to 1 (0 and 1, if they are integers), the same
with every run; each has the shape and dtype given without a name, unless there is
one with its own. Lists have two tensors; optional inputs are left out unless a
flag names them.

Without --rate a request follows when another has ended (closed loop). With it
requests are due at random times (Poisson, the same with every run), whatever the
daemon does (open loop), and latency counts from when a request was due: one that
had to wait because --concurrency others were in flight waited all the same.

REQUESTS/S  answers that came in the measured time; SENT/S and RECEIVED/S are
            the bytes of their tensors, sent or shared
ANSWERED    requests that were due in the measured time and succeeded
REFUSED     for overload: rates, full queues or memory, hopeless deadlines
FAILED      otherwise. Both are counted in the warm-up too, and never repeated.
UNSENT      due, but never sent; their latency is what they waited to the end
OUTSIDE     a call's time that was not the daemon's: the way there and back

Ctrl-C ends early: what is in flight is awaited, and what was measured is shown.
The exit code is 0 if no request failed (refused ones aside) and one succeeded.

Examples:
  opserve bench KlDivBackward --concurrency=1,4,16
  opserve bench LogSoftmaxBackward --shape=4096,4096 --dtype=BF16 --transport=unary
  opserve bench KlDivBackward --shape=4096,4096 --transport=shm
  opserve bench Add --shape=256 --prepare --concurrency=64
  opserve bench KlDivBackward --shape=1024,1024 --shape grad_output=scalar \
      --attr reduction=batchmean --rate=500 --duration=30s
  opserve bench L1LossBackward --format=json | jq '.runs[].latency_ns.p99')";

// The bar ends with the run, before the next one begins its own.
LoadResult RunWithProgress(const LoadOptions& options, const SendRequest& send, LoadClock& clock,
                           Session& session) {
  ProgressBar bar(session.terminal, absl::StrCat("concurrency ", options.concurrency), absl::Now());
  return RunLoad(options, send, clock, [&bar](const LoadProgress& progress) {
    bar.Update(progress.share,
               absl::StrCat(progress.answered, " answered, ", progress.failed, " failed"),
               absl::Now());
  });
}

Failure SenderFailure(BenchTransport transport, const Session& session, const Client& client,
                      const absl::Status& status) {
  return transport == BenchTransport::kSharedMemory ? SharingFailure(session, client, status)
                                                    : CallFailure(session, client, status);
}

// One run after another, until the user or the daemon ends it.
std::optional<Failure> RunLoads(const BenchArguments& arguments, const BenchPlan& plan,
                                Client& client, Session& session, std::vector<BenchRun>* runs) {
  InterruptibleClock clock;
  for (const uint32_t concurrency : ConcurrencyOf(arguments)) {
    const absl::StatusOr<SendRequest> send = MakeSender(plan, concurrency, session, client);
    if (!send.ok()) return SenderFailure(plan.transport, session, client, send.status());
    LoadResult result = RunWithProgress({.concurrency = concurrency,
                                         .rate = arguments.rate,
                                         .warmup = arguments.warmup,
                                         .duration = arguments.duration},
                                        *send, clock, session);
    const bool has_ended_early = result.was_interrupted || result.gave_up;
    runs->push_back({.concurrency = concurrency, .result = std::move(result)});
    // The user's or the daemon's end holds for the runs that were to follow.
    if (has_ended_early) break;
  }
  return std::nullopt;
}

// The failure of the runs as a whole, if there is one.
// Failures decide before refusals: a daemon under overload refuses as it should, but must not fail.
std::optional<Failure> Judge(const std::vector<BenchRun>& runs, const Session& session,
                             const Client& client) {
  bool has_answers = false;
  uint64_t failed = 0;
  const LoadError* first_failure = nullptr;
  const LoadError* first_error = nullptr;
  for (const BenchRun& run : runs) {
    has_answers |= run.result.answered + run.result.answers_in_time > 0;
    for (const LoadError& error : run.result.errors) {
      if (first_error == nullptr) first_error = &error;
      if (error.is_refusal) continue;
      if (first_failure == nullptr) first_failure = &error;
      failed += error.count;
    }
  }
  if (first_failure == nullptr && has_answers) return std::nullopt;
  if (first_failure == nullptr && first_error == nullptr) {
    return Failure{.status = absl::CancelledError("no request was answered in the measured time"),
                   .hint = "measure longer, see --duration"};
  }
  const absl::Status& status = (first_failure != nullptr ? first_failure : first_error)->first;
  Failure failure = CallFailure(session, client, status);
  if (has_answers) failure.exit_code = ExitCode::kFailed;  // it was there, at times
  const std::string what =
      first_failure != nullptr
          ? absl::StrCat(failed, failed == 1 ? " request failed" : " requests failed")
          : "every request was refused";
  failure.status =
      absl::Status(status.code(), absl::StrCat(what, "; the first: ", failure.status.message()));
  return failure;
}

// Whether to measure though the first call failed with `status`: under overload others may succeed.
// Shared memory needs to know from a result how much of it to share.
bool CanGoOn(BenchTransport transport, const absl::Status& status) {
  return IsOverloadRefusal(status) && transport != BenchTransport::kSharedMemory;
}

std::optional<Failure> RunBench(const BenchArguments& arguments, Session& session) {
  if (arguments.prepare && arguments.transport != BenchTransport::kUnary &&
      arguments.transport != BenchTransport::kSession) {
    return UsageFailure(
        absl::InvalidArgumentError("--prepare is for --transport=session and --transport=unary"),
        "leave one of them out");
  }
  session.connection.retry = {.max_attempts = 1, .budget = 0};  // would hide refusals
  session.connection.session = arguments.transport != BenchTransport::kUnary;
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  auto found = FindOperator(client, session, arguments.operator_name);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  const auto& descriptor = std::get<v1::OperatorDescriptor>(found);
  absl::StatusOr<Invocation> invocation = BuildBenchInvocation(descriptor, arguments);
  if (!invocation.ok()) {
    return UsageFailure(invocation.status(),
                        absl::StrCat("see \"opserve ops ", descriptor.name(), "\""));
  }
  BenchPlan plan = {
      .request = {.invocations = {*std::move(invocation)}, .timeout = session.timeout},
      .transport = arguments.transport,
      .prepare = arguments.prepare};

  // A call that can never succeed is told of now, not after a run of failures.
  const absl::StatusOr<Response> probed = client.Execute(plan.request);
  if (!probed.ok() && !CanGoOn(plan.transport, probed.status())) {
    return CallFailure(session, client, probed.status());
  }
  // Their sizes are known only now, from the probe.
  if (probed.ok() && plan.transport == BenchTransport::kSharedMemory) {
    for (const Result& result : probed->results) {
      plan.request.results.push_back(result.source());
      plan.result_bytes.push_back(result.num_bytes());
    }
  }

  BenchReport report = {.operator_name = descriptor.name(),
                        .inputs = plan.request.invocations[0].inputs,
                        .transport = TransportText(plan.transport),
                        .prepared = plan.prepare,
                        .rate = arguments.rate,
                        .warmup = arguments.warmup,
                        .duration = arguments.duration};
  const auto failure = RunLoads(arguments, plan, client, session, &report.runs);
  // Without a report: sharing memory or opening a stream failed before any load.
  if (failure) return failure;
  if (session.format == OutputFormat::kJson) {
    WriteJson(session.terminal.out, BenchToJson(report));
  } else {
    session.terminal.out << FormatBench(report, session.terminal.width);
  }
  return Judge(report.runs, session, client);
}

}  // namespace

void AddBenchCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* bench = app.add_subcommand("bench", "Measure the daemon under load");
  bench->add_option("OPERATOR", arguments->operator_name, "Operator to run")->required();
  bench
      ->add_option("--shape", arguments->shapes,
                   "Shape of an input (all, if not named); default 256,1024")
      ->type_name("[NAME=]EXTENT,...|[NAME=]scalar")
      ->allow_extra_args(false);
  bench
      ->add_option("--dtype", arguments->dtypes,
                   absl::StrCat(DtypeNames(),
                                " for an input (all, if not named); default FLOAT, or "
                                "a dtype of the input"))
      ->type_name("[NAME=]DTYPE")
      ->allow_extra_args(false);
  bench->add_option("--attr", arguments->attributes, "An attribute that is not to have its default")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  // Each is read by its check, while the command line is parsed: a wrong text is an error of usage.
  struct TextFlag {
    const char* name;
    const char* type;
    const char* help;
    std::function<std::string(const std::string&)> read;
  };
  const TextFlag kFlags[] = {
      {"--concurrency", "N[,N...]",
       "Requests in flight: always so many (default 1), with --rate at most (default 64); several "
       "numbers are run one after another",
       [arguments](const std::string& text) {
         return ReadConcurrency(text, &arguments->concurrency);
       }},
      {"--rate", "R", "Requests that are due per second, instead of one when another has ended",
       [arguments](const std::string& text) { return ReadRate(text, &arguments->rate); }},
      {"--transport", "unary|session|shm",
       "Each request as a call of its own, or all in one session (one daemon; requests above its "
       "limit travel in parts), or in a session with tensors in memory shared with the daemon; "
       "default session",
       [arguments](const std::string& text) { return ReadTransport(text, &arguments->transport); }},
      {"--duration", "TIME", "How long to measure, for each number of --concurrency; default 10s",
       [arguments](const std::string& text) { return ReadDuration(text, &arguments->duration); }},
      {"--warmup", "TIME", "Load before anything is measured; default 1s",
       [arguments](const std::string& text) { return ReadWarmup(text, &arguments->warmup); }},
  };
  for (const TextFlag& flag : kFlags) {
    bench->add_option(flag.name, flag.help)->type_name(flag.type)->check(flag.read);
  }
  bench->add_flag("--prepare", arguments->prepare,
                  "Each request runs a prepared program of this one operator; with --transport="
                  "session or unary");
  bench->footer(kBenchFooter);
  bench->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunBench(*arguments, session); };
  });
}

}  // namespace opserve::cli
