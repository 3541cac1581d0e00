#include "client/cli/commands/commands.h"

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/arrays/array_file.h"
#include "client/cli/arrays/random_tensor.h"
#include "client/cli/arrays/run_arguments.h"
#include "client/cli/commands/handle_lookup.h"
#include "client/cli/commands/program_drawing.h"
#include "client/cli/commands/program_file.h"
#include "client/cli/text/latency_histogram.h"
#include "client/cli/text/result_report.h"
#include "client/cli/text/tensor_text.h"
#include "client/cpp/tensor_layout.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr char kProgramFooter[] =
    R"(A program is several invocations of operators in one call, where outputs of one are
inputs of others. "opserve help program run" tells more.)";

constexpr char kProgramRunFooter[] =
    R"(FILE is protobuf text of the message PrepareRequest (operator_service.proto):

  inputs { dtype: DATA_TYPE_FLOAT shape: 64 shape: 10 }
  program {
    invocations {
      operator: "LogSoftmax"
      inputs { name: "self" tensor { program_input: 0 } }
      attributes { name: "dim" value { int64_value: -1 } }
    }
    invocations {
      operator: "ReduceSum"
      inputs { name: "self" tensor { invocation_output { invocation: 0 } } }
      attributes { name: "dims" value { int64_list { values: 0 } } }
      attributes { name: "dtype" value { dtype_value: DATA_TYPE_FLOAT } }
    }
    results { invocation: 1 }
  }

An input is given by its number, in the forms that "opserve help run" lists. Those
that are not given are random numbers from 0.25 to 1, of integers 0 and 1. Inputs
that the program replaces or donates are resident tensors: tensor:HANDLE, or arrays
that are uploaded first and released at the end.

With --prepare the daemon checks, binds and plans the program once, and each of the
runs names it by a handle; without, each run sends the whole program. --dot writes a
drawing for Graphviz: dot -Tsvg FILE.

Examples:
  opserve program run step.textproto --input 0=x.npy --output 0=y.npy
  opserve program run step.textproto --prepare --repeat=1000
  opserve program run step.textproto --dot=step.dot)";

using Json = nlohmann::ordered_json;

struct ProgramArguments {
  std::string file;
  std::vector<std::string> inputs;   // NUMBER=VALUE
  std::vector<std::string> outputs;  // NUMBER=FILE.npy
  std::string drawing;               // ""
  bool prepares = false;
  bool want_receipt = false;
  uint32_t repeat = 1;
  uint64_t seed = 0;
  std::istream* standard_input = nullptr;
};

using NumberedTexts = std::map<uint32_t, std::string>;

// Takes NUMBER=TEXT arguments apart, none twice.
absl::StatusOr<NumberedTexts> SplitNumbered(absl::string_view flag,
                                            const std::vector<std::string>& arguments) {
  NumberedTexts texts;
  for (const std::string& argument : arguments) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    uint32_t number = 0;
    if (!absl::SimpleAtoi(parts.first, &number) || parts.second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, " \"", argument, "\": expected NUMBER=VALUE"));
    }
    if (!texts.emplace(number, parts.second).second) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " ", number, " is given twice"));
    }
  }
  return texts;
}

// The daemon would refuse it too, but after all bytes were sent.
absl::Status CheckShape(const v1::ProgramInput& wanted, uint32_t number, const Tensor& tensor) {
  const std::vector<int64_t> shape(wanted.shape().begin(), wanted.shape().end());
  if (tensor.dtype() == wanted.dtype() && tensor.shape() == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", number, " is ", TensorText(tensor.dtype(), tensor.shape()),
                   "; the program takes ", TensorText(wanted.dtype(), shape)));
}

// The input of this number: as its text says, or random.
// Resident tensors are not compared with the program: only the daemon knows their dtypes and
// shapes.
absl::StatusOr<PreparedProgram::Input> ReadProgramInput(const v1::PrepareRequest& program,
                                                        uint32_t number, const NumberedTexts& texts,
                                                        const ProgramArguments& arguments) {
  const v1::ProgramInput& wanted = program.inputs(static_cast<int>(number));
  // By the input's number, as for "opserve run".
  std::mt19937_64 random = RandomOf(arguments.seed, number, std::nullopt);
  const auto text = texts.find(number);
  if (text == texts.end()) {
    const std::vector<int64_t> shape(wanted.shape().begin(), wanted.shape().end());
    if (!ContiguousBytes(wanted.dtype(), shape)) {
      return absl::InvalidArgumentError(absl::StrCat("input ", number, " of the program is ",
                                                     TensorText(wanted.dtype(), shape),
                                                     ", which is no tensor"));
    }
    return RandomTensor(wanted.dtype(), shape, random);
  }
  OPSERVE_ASSIGN_OR_RETURN(NamedInput read, ReadInput(absl::StrCat(number), text->second, random,
                                                      arguments.standard_input));
  if (auto* resident = std::get_if<ResidentTensor>(&read.value)) return std::move(*resident);
  OPSERVE_ASSIGN_OR_RETURN(Tensor tensor, MakeContiguous(std::get<Tensor>(read.value)));
  OPSERVE_RETURN_IF_ERROR(CheckShape(wanted, number, tensor));
  return tensor;
}

absl::StatusOr<std::vector<PreparedProgram::Input>> ReadProgramInputs(
    const v1::PrepareRequest& program, const ProgramArguments& arguments,
    const std::vector<std::string>& completed) {
  OPSERVE_ASSIGN_OR_RETURN(const NumberedTexts texts, SplitNumbered("--input", completed));
  const auto num_inputs = static_cast<uint32_t>(program.inputs_size());
  // The map is ordered: its last number decides.
  if (!texts.empty() && texts.rbegin()->first >= num_inputs) {
    return absl::InvalidArgumentError(absl::StrCat("--input ", texts.rbegin()->first,
                                                   ": the program has ", num_inputs, " inputs"));
  }
  std::vector<PreparedProgram::Input> values;
  for (uint32_t i = 0; i < num_inputs; ++i) {
    OPSERVE_ASSIGN_OR_RETURN(PreparedProgram::Input value,
                             ReadProgramInput(program, i, texts, arguments));
    values.push_back(std::move(value));
  }
  return values;
}

// Arrays that were made resident for the time of the command.
class Uploads {
 public:
  explicit Uploads(Client& client) : client_(client) {}
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;
  // The uploads end with the command, also after a failure.
  ~Uploads() {
    // Donated ones are gone already; a handle that cannot be sent ends with its lease.
    if (!handles_.empty()) client_.Release(handles_).IgnoreError();
  }

  // Inputs that the program changes must be resident, since an array in a message has no place for
  // its new contents.
  absl::Status Replace(const std::vector<bool>& changed,
                       std::vector<PreparedProgram::Input>* values) {
    for (size_t i = 0; i < values->size(); ++i) {
      const auto* tensor = std::get_if<Tensor>(&(*values)[i]);
      // A resident tensor is used as it is: the program changes the caller's own.
      if (!changed[i] || tensor == nullptr) continue;
      OPSERVE_ASSIGN_OR_RETURN(ResidentTensor resident, client_.Upload(*tensor));
      handles_.push_back(resident.handle);
      (*values)[i] = std::move(resident);
    }
    return absl::OkStatus();
  }

 private:
  Client& client_;
  std::vector<std::string> handles_;
};

// The runs of a program, and their times.
struct Runs {
  std::optional<absl::Duration> preparation;
  absl::Duration first;
  LatencyHistogram others;
  Response response;  // of the last run
};

absl::StatusOr<Runs> RunOften(const v1::PrepareRequest& program,
                              const std::vector<PreparedProgram::Input>& inputs,
                              const ProgramArguments& arguments, Client& client,
                              absl::Duration timeout) {
  Runs runs;
  // Nothing is sent before PrepareFor or the first call.
  const PreparedProgram prepared = client.Prepare(program);
  DirectRequest direct;
  if (arguments.prepares) {
    const absl::Time begin = absl::Now();
    OPSERVE_RETURN_IF_ERROR(prepared.PrepareFor(inputs, timeout));
    runs.preparation = absl::Now() - begin;
  } else {
    direct = WithInputs(program, inputs);
    direct.header.set_want_receipt(arguments.want_receipt);
  }
  for (uint32_t i = 0; i < arguments.repeat; ++i) {
    const absl::Time begin = absl::Now();
    absl::StatusOr<Response> response =
        arguments.prepares
            ? prepared(inputs, {.want_receipt = arguments.want_receipt, .timeout = timeout})
            : client.Execute(direct.header, direct.payloads, timeout);
    if (!response.ok()) return response.status();
    const absl::Duration latency = absl::Now() - begin;
    // The first run is told apart: it pays for connections, plans and memory.
    if (i == 0) {
      runs.first = latency;
    } else {
      runs.others.Record(latency);
    }
    runs.response = *std::move(response);
  }
  return runs;
}

std::string Milliseconds(absl::Duration time) {
  return absl::StrFormat("%.3f ms", absl::ToDoubleMilliseconds(time));
}

void WriteTimes(const Runs& runs, std::ostream& out) {
  if (runs.preparation) out << "prepared in " << Milliseconds(*runs.preparation) << "\n";
  out << "first run   " << Milliseconds(runs.first) << "\n";
  if (runs.others.count() == 0) return;
  out << FormatCount(runs.others.count(), "more run") << ": min " << Milliseconds(runs.others.min())
      << "  p50 " << Milliseconds(runs.others.Percentile(50)) << "  p99 "
      << Milliseconds(runs.others.Percentile(99)) << "  max " << Milliseconds(runs.others.max())
      << "\n";
}

Json TimesToJson(const Runs& runs) {
  Json json;
  if (runs.preparation) json["prepare_ms"] = absl::ToDoubleMilliseconds(*runs.preparation);
  json["first_ms"] = absl::ToDoubleMilliseconds(runs.first);
  json["more_runs"] = runs.others.count();
  if (runs.others.count() == 0) return json;
  json["min_ms"] = absl::ToDoubleMilliseconds(runs.others.min());
  json["p50_ms"] = absl::ToDoubleMilliseconds(runs.others.Percentile(50));
  json["p99_ms"] = absl::ToDoubleMilliseconds(runs.others.Percentile(99));
  json["max_ms"] = absl::ToDoubleMilliseconds(runs.others.max());
  return json;
}

const std::string* PathOf(uint32_t number, const NumberedTexts& files) {
  const auto file = files.find(number);
  return file == files.end() ? nullptr : &file->second;
}

// Results and kept tensors of the last run only: all runs have the same inputs.
void WriteRuns(const Runs& runs, const NumberedTexts& files, OutputFormat format,
               Terminal& terminal) {
  const Response& response = runs.response;
  if (format == OutputFormat::kJson) {
    Json document = {{"results", Json::array()}, {"kept", Json::array()}};
    for (uint32_t i = 0; i < response.results.size(); ++i) {
      Json result = {{"invocation", response.results[i].source().invocation}};
      result.update(ResultToJson(response.results[i], PathOf(i, files)));
      document["results"].push_back(std::move(result));
    }
    for (const ResidentTensor& tensor : response.kept) {
      document["kept"].push_back(ResidentTensorToJson(tensor, BytesOf(tensor)));
    }
    document["times"] = TimesToJson(runs);
    if (response.receipt) document["receipt"] = ToJson(*response.receipt);
    return WriteJson(terminal.out, document);
  }
  for (uint32_t i = 0; i < response.results.size(); ++i) {
    terminal.out << "invocation " << response.results[i].source().invocation << ", ";
    WriteResult(response.results[i], PathOf(i, files), terminal);
  }
  for (const ResidentTensor& tensor : response.kept) {
    terminal.out << "kept or replaced, version " << tensor.version << "\n";
    WriteResidentTensor(tensor, BytesOf(tensor), terminal.out);
  }
  WriteTimes(runs, terminal.out);
  if (response.receipt) terminal.out << "\n" << FormatReceipt(*response.receipt);
}

absl::Status WriteDrawing(const std::string& path, const v1::PrepareRequest& program) {
  std::ofstream file(path, std::ios::binary);
  file << DrawProgram(program);
  file.close();
  return file ? absl::OkStatus()
              : absl::InvalidArgumentError(absl::StrCat(path, ": it cannot be written"));
}

absl::Status WriteOutputs(const Response& response, const NumberedTexts& files,
                          Terminal& terminal) {
  // Only now is the number of results known: a program may return lists.
  if (!files.empty() && files.rbegin()->first >= response.results.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--output ", files.rbegin()->first,
                                                   ": the program returns ",
                                                   response.results.size(), " results"));
  }
  for (const auto& [number, path] : files) {
    OPSERVE_RETURN_IF_ERROR(WriteArray(path, response.results[number], terminal.out));
  }
  return absl::OkStatus();
}

std::optional<Failure> RunProgram(ProgramArguments arguments, Session& session) {
  const absl::StatusOr<v1::PrepareRequest> program = ReadProgramFile(arguments.file);
  if (!program.ok()) return UsageFailure(program.status(), "see \"opserve help program run\"");
  const absl::StatusOr<NumberedTexts> files = SplitNumbered("--output", arguments.outputs);
  if (!files.ok()) return UsageFailure(files.status());
  // Known before the run, as it decides where reports go.
  bool has_array = false;  // on standard output
  for (const auto& [number, path] : *files) {
    has_array |= path == kStandardOutput;
  }
  absl::Status status = has_array ? CheckArrayOutput(session) : absl::OkStatus();
  if (!status.ok()) return UsageFailure(status);
  // Before the connection, so that a drawing needs no daemon.
  if (!arguments.drawing.empty()) {
    status = WriteDrawing(arguments.drawing, *program);
    if (!status.ok()) return UsageFailure(status);
  }
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  std::vector<std::string> inputs = arguments.inputs;
  // Before the inputs are read: short handles are looked up once for all.
  if (auto failure = CompleteHandles(&inputs, client, session)) return *failure;
  absl::StatusOr<std::vector<PreparedProgram::Input>> values =
      ReadProgramInputs(*program, arguments, inputs);
  if (!values.ok()) return UsageFailure(values.status());
  Uploads uploads(client);
  status = uploads.Replace(ChangedInputs(*program), &*values);
  if (!status.ok()) return CallFailure(session, client, status);
  const absl::StatusOr<Runs> runs = RunOften(*program, *values, arguments, client, session.timeout);
  if (!runs.ok()) return CallFailure(session, client, runs.status());
  status = WriteOutputs(runs->response, *files, session.terminal);
  if (!status.ok()) return UsageFailure(status);
  Terminal reports = ReportsBeside(has_array, session.terminal);
  WriteRuns(*runs, *files, session.format, reports);
  return std::nullopt;
}

void AddRun(CLI::App* program, Command* command) {
  auto arguments = std::make_shared<ProgramArguments>();
  CLI::App* run = program->add_subcommand("run", "Run the program of a file");
  run->add_option("FILE", arguments->file, "The program, as protobuf text")->required();
  run->add_option("--input", arguments->inputs, "An input of the program, by its number")
      ->type_name("NUMBER=FILE[:ARRAY]|NUMBER=-|NUMBER=random:SHAPE[:DTYPE]|NUMBER=tensor:HANDLE")
      ->allow_extra_args(false);
  run->add_option("--output", arguments->outputs,
                  "Where to write a returned result, by its number, instead of printing it")
      ->type_name("NUMBER=FILE.npy|-")
      ->allow_extra_args(false);
  run->add_flag("--prepare", arguments->prepares, "Prepare it once, and run it by its handle");
  run->add_option("--repeat", arguments->repeat, "How often to run it; default 1")
      ->type_name("N")
      ->check(CLI::Range(1u, 1'000'000u));
  run->add_option("--dot", arguments->drawing, "Write a drawing for Graphviz before it runs")
      ->type_name("FILE");
  run->add_option("--seed", arguments->seed, "Which random numbers, for random inputs; default 0")
      ->type_name("N");
  run->add_flag("--receipt", arguments->want_receipt,
                "Show the costs of the last run, stage by stage");
  run->footer(kProgramRunFooter);
  run->callback([arguments, command] {
    *command = [arguments](Session& session) {
      arguments->standard_input = session.terminal.input;
      return RunProgram(*arguments, session);
    };
  });
}

}  // namespace

void AddProgramCommand(CLI::App& app, Command* command) {
  CLI::App* program = app.add_subcommand("program", "Run several operators in one call");
  program->require_subcommand(1);
  AddRun(program, command);
  program->footer(kProgramFooter);  // after the command, which would inherit it
}

}  // namespace opserve::cli
