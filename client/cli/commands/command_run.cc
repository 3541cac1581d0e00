#include "client/cli/commands/commands.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "client/cli/arrays/array_file.h"
#include "client/cli/arrays/array_text.h"
#include "client/cli/arrays/run_arguments.h"
#include "client/cli/arrays/verification.h"
#include "client/cli/commands/handle_lookup.h"
#include "client/cli/commands/large_results.h"
#include "client/cli/commands/reference_daemon.h"
#include "client/cli/commands/shared_arena.h"
#include "client/cli/text/result_report.h"
#include "client/cli/text/tensor_text.h"
#include "client/cli/text/time_text.h"
#include "client/cpp/tensor_layout.h"
#include "proto/dtypes/dtype.h"

namespace opserve::cli {
namespace {

constexpr char kRunFooter[] =
    R"(An input is one of
  FILE.npy                 an array of $0
                           from NumPy (bfloat16 as the ml_dtypes package saves it)
  -                        a .npy file that another program writes to this one
  FILE.npz[:ARRAY]         the array of an archive, if not the only one or the one
                           with the input's name
  FILE.safetensors[:NAME]  likewise of $1
  random:SHAPE[:DTYPE]     random numbers from 0.25 to 1, e.g. random:256,1024:BF16;
                           of integers and BOOL, 0 and 1
  random:ints(LOW,HIGH):SHAPE[:DTYPE]
                           random integers from LOW on, below HIGH, in INT64 if
                           not said, such as class indices: random:ints(0,10):64
                           (in quotes, as shells have their own use for brackets)
  tensor:HANDLE            what the daemon has already, with the handle that
                           "opserve tensor upload" gave, or its first digits
With :bf16 at its end, a NumPy array of uint16 is read as bfloat16. An output is
written as .npy, with - to standard output (what else is said then goes to
standard error). The tensors of an input that is a list are NAME.0, NAME.1 and so
on, as are those of an output; optional inputs may be left out. Attributes that
are lists are written [1,2], dtypes as BF16 or bfloat16, scalars as numbers, with
a dtype where it matters (2:INT32). Operators, and the names of their inputs and
attributes, are listed by "opserve ops".

Inputs and results of any size travel in chunks. On one machine with an opserved
--enable_shm they go through shared memory with --shm. A daemon of an earlier release
takes messages of at most its --max_message_bytes (64 MiB): larger inputs are uploaded
before ("opserve help tensor upload").

An output named by --keep is not sent: it stays in the device's memory for --lease,
as a resident tensor, for "opserve tensor download" and --input NAME=tensor:HANDLE.
Of the others, those named by --output are sent then. All named outputs are kept or,
if the call fails, none.

--verify starts an opserved of its own on this machine's processor, which computes
in float64, or float32 for operators without it. A result is right if each element
is within a tolerance of that, relative to the element and to the largest one:
$2. Integers and BOOL have to be the same.

Examples:
  opserve run KlDivBackward --input grad_output=g.npy --input self=x.npy \
      --input target=t.npy --attr reduction=batchmean --output out.npy
  opserve run KlDivBackward --input grad_output=random:scalar \
      --input self=random:64,1000 --input target=random:64,1000 --verify
  opserve run LogSoftmaxBackward --input grad_output=g.npy \
      --input output=y.npy --attr dim=-1 --receipt
  opserve run L1LossBackward --input grad_output=g.npy --input self=x.npy:bf16 \
      --input target=t.npy:bf16 --output-dtype BF16 --output out.npy
  opserve run KlDivBackward --input grad_output=g.npy \
      --input self=tensor:5f1c09a2 --input target=t.npy --output out.npy
  opserve run KlDivBackward --input grad_output=random:scalar \
      --input self=tensor:5f1c09a2 --input target=tensor:77aa0b31 \
      --keep out --lease=1h
  opserve run LogSoftmaxBackward --shm --input grad_output=g.npy \
      --input output=y.npy --output grad.npy)";

// The formats and tolerances are those of the table of dtypes, so the text cannot disagree with it.
std::string RunFooter() {
  std::vector<std::string> tolerances;
  for (const DtypeFacts& facts : AllDtypes()) {
    if (facts.tolerance == 0) continue;
    tolerances.push_back(absl::StrCat(facts.tolerance, " for ", facts.name));
  }
  return absl::Substitute(kRunFooter, DtypeNamesIn(&DtypeFacts::torch),
                          DtypeNamesIn(&DtypeFacts::safetensors), absl::StrJoin(tolerances, ", "));
}

using Json = nlohmann::ordered_json;
using OutputFiles = std::vector<OutputFile>;

// Where the result goes; null: nowhere.
const std::string* PathOf(const Result& result, const OutputFiles& files) {
  for (const OutputFile& file : files) {
    if (file.output == result.source().output) return &file.path;
  }
  return nullptr;
}

Json ComparisonToJson(const Comparison& comparison) {
  return {{"output", comparison.output},
          {"reference_dtype", std::string(DataTypeName(comparison.reference_dtype))},
          {"tolerance", comparison.tolerance},
          {"num_elements", comparison.num_elements},
          {"num_wrong", comparison.num_wrong},
          {"largest_error", comparison.largest_error},
          {"largest_value", comparison.largest_value}};
}

// "within 1e-05 of", "equal to"
std::string Closeness(double tolerance) {
  if (tolerance == 0) return "equal to";
  return absl::StrFormat("within %.0e of", tolerance);
}

void WriteComparison(const Comparison& comparison, Terminal& terminal) {
  terminal.out << comparison.output << (comparison.num_wrong == 0 ? " is right: " : " is WRONG: ")
               << absl::StrFormat("largest error %.3g, largest value %.3g; ",
                                  comparison.largest_error, comparison.largest_value)
               << comparison.num_elements - comparison.num_wrong << " of "
               << comparison.num_elements << " " << Closeness(comparison.tolerance)
               << " the reference in " << DataTypeName(comparison.reference_dtype) << "\n";
}

using Comparisons = std::vector<Comparison>;
using KeptOutputs = std::vector<KeptOutput>;

// The results to be sent: all, or beside outputs that are kept only those that go to a file.
std::vector<OutputOf> ResultsBeside(const KeptOutputs& kept, const OutputFiles& files) {
  std::vector<OutputOf> results;
  // Without kept outputs, none named means all.
  if (kept.empty()) return results;
  for (const OutputFile& file : files) results.push_back({.output = file.output});
  return results;
}

// Compares with a daemon on this machine's processor. A failure: it cannot be done.
std::variant<Comparisons, Failure> CompareWithReference(const v1::OperatorDescriptor& descriptor,
                                                        const Invocation& invocation,
                                                        const Response& response,
                                                        const Session& session) {
  const auto reference = ReferenceDaemon::Start();
  if (!reference.ok()) return Failure{.status = reference.status()};
  auto comparisons =
      Verify(descriptor, invocation, response.results, (*reference)->client(), session.timeout);
  if (!comparisons.ok()) return Failure{.status = comparisons.status()};
  return *std::move(comparisons);
}

std::optional<Failure> Judge(const Comparisons& comparisons) {
  for (const Comparison& comparison : comparisons) {
    if (comparison.num_wrong == 0) continue;
    return Failure{.status = absl::DataLossError(absl::StrCat(
                       comparison.num_wrong, " of ", comparison.num_elements, " elements of ",
                       comparison.output, " are not what the local reference says"))};
  }
  return std::nullopt;
}

// The order of the text is that of the call: results, kept outputs, the comparison, its costs.
void WriteResponse(const Response& response, const OutputFiles& files, const KeptOutputs& kept,
                   const Comparisons& comparisons, OutputFormat format, Terminal& terminal) {
  if (format == OutputFormat::kJson) {
    Json results = Json::array();
    for (const Result& result : response.results) {
      results.push_back(ResultToJson(result, PathOf(result, files)));
    }
    Json document = {{"results", results}};
    for (size_t i = 0; i < kept.size(); ++i) {
      Json tensor = {{"output", kept[i].output.output}};
      tensor.update(ResidentTensorToJson(response.kept[i], BytesOf(response.kept[i])));
      document["kept"].push_back(tensor);
    }
    for (const Comparison& comparison : comparisons) {
      document["verification"].push_back(ComparisonToJson(comparison));
    }
    if (response.receipt) document["receipt"] = ToJson(*response.receipt);
    return WriteJson(terminal.out, document);
  }
  for (const Result& result : response.results) {
    WriteResult(result, PathOf(result, files), terminal);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    terminal.out << "output     " << kept[i].output.output << ", kept by the daemon\n";
    WriteResidentTensor(response.kept[i], BytesOf(response.kept[i]), terminal.out);
  }
  for (const Comparison& comparison : comparisons) WriteComparison(comparison, terminal);
  if (response.receipt) terminal.out << "\n" << FormatReceipt(*response.receipt);
}

// The request of the command line.
struct RunPlan {
  Request request;  // its inputs are in this process's memory
  OutputFiles files;
  std::vector<OutputOf> results;  // as ExecuteWithLargeResults wants them
};

// Mistakes that need no file and no call come first: names of outputs, then of kept ones, then
// standard output; the inputs are read last.
std::variant<RunPlan, Failure> Plan(const v1::OperatorDescriptor& descriptor,
                                    RunArguments arguments, v1::Priority priority, Client& client,
                                    Session& session) {
  const std::string hint = absl::StrCat("see \"opserve ops ", descriptor.name(), "\"");
  absl::StatusOr<OutputFiles> files = BuildOutputFiles(descriptor, arguments);
  if (!files.ok()) return UsageFailure(files.status(), hint);
  absl::StatusOr<KeptOutputs> kept = BuildKeptOutputs(descriptor, arguments);
  if (!kept.ok()) return UsageFailure(kept.status(), hint);
  // Before the inputs are read, which may take long.
  for (const OutputFile& file : *files) {
    if (file.path != kStandardOutput) continue;
    absl::Status status = CheckArrayOutput(session);
    if (!status.ok()) return UsageFailure(status);
  }
  if (auto failure = CompleteHandles(&arguments.inputs, client, session)) return *failure;
  absl::StatusOr<Invocation> invocation = BuildInvocation(descriptor, arguments);
  if (!invocation.ok()) return UsageFailure(invocation.status(), hint);
  RunPlan plan;
  // Kept outputs are not sent, so their results cannot be too large.
  if (kept->empty()) plan.results = ResultNames(descriptor, *invocation, *files);
  plan.request = {.invocations = {*std::move(invocation)},
                  .results = ResultsBeside(*kept, *files),
                  .kept = *std::move(kept),
                  .want_receipt = arguments.want_receipt,
                  .priority = priority,
                  .timeout = session.timeout};
  plan.files = *std::move(files);
  return plan;
}

// The arena lives until the call has ended: the request refers to its memory.
std::variant<Response, Failure> Call(const RunPlan& plan, bool shares_memory, Client& client,
                                     const Session& session) {
  Request request = plan.request;
  std::unique_ptr<SharedArena> arena;
  if (shares_memory) {
    std::vector<NamedInput>& inputs = request.invocations[0].inputs;
    auto made = SharedArena::Make(session, SharedArena::BytesFor(inputs));
    if (!made.ok()) return SharingFailure(session, client, made.status());
    arena = *std::move(made);
    // The inputs move into the arena in the request's copy; the plan keeps its own for --verify.
    arena->Place(&inputs);
  }
  absl::StatusOr<Response> response = ExecuteWithLargeResults(client, request, plan.results);
  if (response.ok()) return *std::move(response);
  Failure failure = CallFailure(session, client, response.status());
  // Of the two limits, shared memory only lifts that of the request.
  if (IsRequestTooLarge(response.status())) {
    failure.hint =
        "--shm takes inputs of any size to an opserved --enable_shm on this machine; for others, "
        "see \"opserve help tensor upload\"";
  } else if (AreResultsTooLarge(response.status()) && plan.results.empty() &&
             request.kept.empty()) {
    // The names of a list's tensors are not known, so that their results cannot be asked for in
    // chunks.
    failure.hint = "name those tensors of a list with --output or --keep that are wanted";
  }
  return failure;
}

// Files are written before the report, so that the report's "written to" is true.
std::optional<Failure> RunRun(const RunArguments& arguments, Session& session) {
  const absl::StatusOr<v1::Priority> priority = ParsePriority(arguments);
  if (!priority.ok()) return UsageFailure(priority.status());
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  auto found = FindOperator(client, session, arguments.operator_name);
  if (auto* failure = std::get_if<Failure>(&found)) return *failure;
  const auto& descriptor = std::get<v1::OperatorDescriptor>(found);
  auto planned = Plan(descriptor, arguments, *priority, client, session);
  if (auto* failure = std::get_if<Failure>(&planned)) return *failure;
  const auto& plan = std::get<RunPlan>(planned);
  auto called = Call(plan, arguments.shares_memory, client, session);
  if (auto* failure = std::get_if<Failure>(&called)) return *failure;
  const auto& response = std::get<Response>(called);

  // Before the comparison: a result that is wrong is worth having as a file.
  for (const Result& result : response.results) {
    const std::string* path = PathOf(result, plan.files);
    if (path == nullptr) continue;
    absl::Status status = WriteArray(*path, result, session.terminal.out);
    if (!status.ok()) return UsageFailure(status);
  }
  Comparisons comparisons;
  if (arguments.should_verify) {
    auto compared =
        CompareWithReference(descriptor, plan.request.invocations[0], response, session);
    if (auto* failure = std::get_if<Failure>(&compared)) return *failure;
    comparisons = std::get<Comparisons>(std::move(compared));
  }
  const bool has_array =
      std::any_of(plan.files.begin(), plan.files.end(),
                  [](const OutputFile& file) { return file.path == kStandardOutput; });
  Terminal reports = ReportsBeside(has_array, session.terminal);
  WriteResponse(response, plan.files, plan.request.kept, comparisons, session.format, reports);
  // Last: a comparison that fails decides the exit code, after everything was written.
  return Judge(comparisons);
}

}  // namespace

void AddRunCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* run = app.add_subcommand("run", "Run an operator on arrays in files");
  run->add_option("OPERATOR", arguments->operator_name, "Operator to run")->required();
  run->add_option("--input", arguments->inputs, "An input; once for each of the operator's")
      ->type_name("NAME=FILE[:ARRAY]|NAME=-|NAME=random:SHAPE[:DTYPE]|NAME=tensor:HANDLE")
      ->allow_extra_args(false);
  run->add_option("--attr", arguments->attributes, "An attribute that is not to have its default")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  run->add_option("--output", arguments->outputs,
                  "Where to write an output (the first, if not named) instead of printing it")
      ->type_name("[NAME=]FILE.npy|-")
      ->allow_extra_args(false);
  run->add_option(
         "--keep", arguments->kept_outputs,
         "An output that stays on the daemon, as a resident tensor whose handle is printed")
      ->type_name("NAME")
      ->allow_extra_args(false);
  AddLeaseFlag(run, &arguments->lease);
  run->add_option("--output-dtype", arguments->output_dtypes,
                  absl::StrCat(DtypeNames(), " for an output, if not its default"))
      ->type_name("[NAME=]DTYPE")
      ->allow_extra_args(false);
  run->add_option("--want", arguments->wanted_outputs,
                  "One of the outputs that may be left out; those not named are. Default: all")
      ->type_name("NAME")
      ->allow_extra_args(false);
  run->add_option("--priority", arguments->priority,
                  "Whether it goes before or after the tenant's other requests; default normal")
      ->type_name("low|normal|high");
  run->add_option("--seed", arguments->seed, "Which random numbers, for random inputs; default 0")
      ->type_name("N");
  run->add_flag("--shm", arguments->shares_memory,
                "Share memory with a daemon on this machine instead of sending the inputs");
  run->add_flag("--verify", arguments->should_verify,
                "Compute it on this machine's processor too, and fail if the results differ");
  run->add_flag("--receipt", arguments->want_receipt, "Show the costs of the call, stage by stage");
  run->footer(RunFooter());
  run->callback([arguments, command] {
    *command = [arguments](Session& session) {
      arguments->standard_input = session.terminal.input;
      return RunRun(*arguments, session);
    };
  });
}

}  // namespace opserve::cli
