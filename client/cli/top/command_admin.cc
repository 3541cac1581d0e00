#include "client/cli/commands/commands.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/arrays/handle_text.h"
#include "client/cli/commands/admin_connection.h"
#include "client/cli/text/tensor_text.h"
#include "client/cli/top/top_view.h"
#include "client/cpp/time_message.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr char kAdminFooter[] =
    R"(The daemon answers these on a socket of its own, which only its user can reach:
that beside its Unix socket, or the one that --admin-target names. Every answer
says which daemon it is from. --target is for clients, and refused here.

Examples:
  opserve admin drain 0 --timeout=5m     before the device is serviced
  opserve admin resume 0                 afterwards, or to end a quarantine
  opserve admin snapshot 0 --format=json
  opserve admin tensors --tenant=batch   which resident tensors it has
  opserve admin reload                   after a change of the configuration file

"opserve help admin COMMAND" tells more about each.)";

constexpr char kDrainFooter[] =
    R"(The device takes no new requests; those queued move to other devices or end
here, those running end. Resident tensors move to other devices. Those for which
there is no room stay, but cannot be used until there is some or the device is
resumed. If --timeout passes first, the device goes on draining:
repeat the command to wait for it.

Without its last ready device a daemon serves nothing: you are asked for the
daemon's name first, or say --yes, as scripts must.)";

constexpr char kDrainDaemonFooter[] =
    R"(The daemon does as upon SIGTERM: its health says NOT_SERVING, it takes calls for
drain_delay more, lets those that run end and deposits resident tensors and
prepared programs at the daemon that its configuration names. The command ends
when that is over, with exit code 1 if calls were cut off or tensors are lost.
The process stays until SIGTERM, and then ends at once. If --timeout passes first,
the daemon goes on draining: repeat the command to wait for it.

There is no way back: you are asked for the daemon's name first, or say --yes, as
scripts must. In a cluster it is the pod's preStop hook.)";

constexpr char kResumeFooter[] =
    R"(The device serves again once it has computed known values right. This also ends
a quarantine, without waiting for the daemon's next attempt.)";

constexpr char kTrimFooter[] =
    R"(The pool gets what it needs from the device again, at the price of slower
allocations. Memory lent to requests and resident tensors stays.)";

constexpr char kSnapshotFooter[] =
    R"(Every region that the pool took from the device, block by block. A block is
allocated (lent), idle (free for any lane) or retired (free for the lane that
used it last). STREAM and OWNER are numbers: blocks with the same ones are used in
the order of one stream, and by one tenant. AGE is the time since a block was lent.)";

constexpr char kTensorsFooter[] =
    R"(Resident tensors of all tenants, or those of --tenant, the largest first, with the
first digits of the handles by which their owners know them: enough to talk about
a tensor, not to use it. A lease that is over can still be renewed for a short
while (--resident_grace).)";

constexpr char kAdminStatusFooter[] =
    R"(Devices, tenants, memory and connections at this moment, with rates and shares
as means since the daemon's start. "opserve top" shows them as they change and
explains the columns.)";

constexpr char kLogLevelFooter[] =
    R"(The daemon logs what is of this level or above it: debug, info, warning, error;
off: nothing. This holds until its restart, or a reload, which sets what the
configuration says.

Example: opserve admin log-level debug)";

constexpr char kReloadFooter[] =
    R"(The daemon reads its configuration and TLS files again, as upon SIGHUP: tenants,
their weights and limits, certificates, the log level. Requests that run or
wait go on. If a file is wrong, or changes what only a restart can change, the
message names it and everything stays as it was. So it does if the file has lost
its tenants, or all that are known by tokens, by certificates or by users, and
does not say allow_no_tenants: true.)";

struct AdminArguments {
  std::string target = {};  // "": the default
  uint32_t device = 0;
  bool is_confirmed = false;  // whatever draining means for the daemon
  std::string log_level = {};
  std::string tenant = {};  // "": all
};

// The result of a command: a sentence for people, a document for programs.
struct Outcome {
  std::string text;
  nlohmann::ordered_json json;
};

// The arguments of an action.
struct AdminCall {
  AdminClient& client;
  const AdminArguments& arguments;
  const v1::AdminStatus& status;  // as it was just before
  const std::string& socket;
  Session& session;

  absl::Duration timeout() const { return session.timeout; }
};

// The device that the arguments name; null: there is none, as the daemon will say.
const v1::DeviceStatus* DeviceOf(const AdminCall& call) {
  for (const v1::DeviceStatus& device : call.status.devices()) {
    if (device.device() == call.arguments.device) return &device;
  }
  return nullptr;
}

bool IsReady(const v1::DeviceStatus& device) {
  return device.state() == v1::DeviceStatus::STATE_READY;
}

// "3 resident tensors (1.5 KiB)"
std::string TensorCount(uint64_t tensors, uint64_t bytes) {
  return absl::StrCat(FormatCount(tensors, "resident tensor"), " (", FormatBytes(bytes), ")");
}

std::string ResidentText(const v1::DeviceStatus& device) {
  return TensorCount(device.resident_tensors(), device.resident_bytes());
}

// Asks for the daemon's name before a drain with such a consequence. kFailedPrecondition: the
// answer is another, or there is no person to ask.
// The name and not "yes", which is typed by habit and would drain the wrong daemon.
absl::Status ConfirmDrain(const AdminCall& call, const std::string& consequence) {
  const std::string& name = call.status.daemon();
  Terminal& terminal = call.session.terminal;
  // A script has no person to ask; without a name there is nothing to type.
  if (terminal.answers == nullptr || name.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(consequence, "; nothing has changed. To drain it all the same: --yes"));
  }
  terminal.err << consequence << ".\nTo drain it, type the daemon's name, " << name << ": ";
  terminal.err.flush();
  std::string answer;
  std::getline(*terminal.answers, answer);
  if (absl::StripAsciiWhitespace(answer) == name) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("\"", answer, "\" is not the daemon's name, ", name, "; nothing has changed"));
}

absl::StatusOr<Outcome> Drain(const AdminCall& call) {
  const uint32_t id = call.arguments.device;
  const v1::DeviceStatus* device = DeviceOf(call);
  const auto num_ready =
      std::count_if(call.status.devices().begin(), call.status.devices().end(), &IsReady);
  bool is_confirmed = call.arguments.is_confirmed;
  if (!is_confirmed && device != nullptr && IsReady(*device) && num_ready == 1) {
    OPSERVE_RETURN_IF_ERROR(
        ConfirmDrain(call, absl::StrCat("device ", id, " is the last ready device of the ",
                                        DaemonText(call.status.daemon(), call.socket),
                                        ": until it is resumed the daemon serves nothing, and ",
                                        ResidentText(*device), " cannot be used")));
    is_confirmed = true;
  }
  // Other devices may go between the question and the call; the daemon decides at once.
  OPSERVE_ASSIGN_OR_RETURN(const uint32_t moved,
                           call.client.DrainDevice(id, call.timeout(),
                                                   is_confirmed ? AdminClient::Last::kDrain
                                                                : AdminClient::Last::kSpare));
  Outcome outcome{absl::StrCat("device ", id, " is drained; ", moved,
                               " of its requests went to other devices\n"),
                  {{"device", id}, {"moved_requests", moved}}};
  // A second status, for the tensors that could not move: the first is of before the drain.
  OPSERVE_ASSIGN_OR_RETURN(const v1::AdminStatus after, call.client.GetStatus(call.timeout()));
  for (const v1::DeviceStatus& left : after.devices()) {
    if (left.device() != id) continue;
    outcome.json["resident_tensors"] = left.resident_tensors();
    outcome.json["resident_bytes"] = left.resident_bytes();
    if (left.resident_tensors() == 0) continue;
    absl::StrAppend(&outcome.text, ResidentText(left), " cannot be used until it is resumed\n");
  }
  return outcome;
}

absl::StatusOr<Outcome> DrainDaemon(const AdminCall& call) {
  if (!call.arguments.is_confirmed) {
    OPSERVE_RETURN_IF_ERROR(ConfirmDrain(
        call, absl::StrCat("the ", DaemonText(call.status.daemon(), call.socket),
                           " serves nothing from then on, until it is started again")));
  }
  OPSERVE_ASSIGN_OR_RETURN(const v1::DrainDaemonResponse drained,
                           call.client.DrainDaemon(call.timeout()));
  const v1::DepositStatus& deposit = drained.deposit();
  std::string text = "the daemon is drained and waits for SIGTERM";
  if (drained.has_deposit()) {
    absl::StrAppend(&text, "; ", TensorCount(deposit.moved_tensors(), deposit.moved_bytes()),
                    " and ", FormatCount(deposit.moved_programs(), "prepared program"), " went to ",
                    deposit.address());
  }
  if (drained.cut_off_calls() == 0 && drained.lost_tensors() == 0) {
    return Outcome{absl::StrCat(text, "\n"), ToJson(drained)};
  }
  // A failure, so that a cluster shows it among the pod's events.
  return absl::DataLossError(
      absl::StrCat(text, "; ", FormatCount(drained.lost_tensors(), "resident tensor"), " lost, ",
                   FormatCount(drained.cut_off_calls(), "call"), " cut off"));
}

absl::StatusOr<Outcome> Resume(const AdminCall& call) {
  if (absl::Status status = call.client.ResumeDevice(call.arguments.device, call.timeout());
      !status.ok())
    return status;
  return Outcome{absl::StrCat("device ", call.arguments.device, " is ready\n"),
                 {{"device", call.arguments.device}}};
}

absl::StatusOr<Outcome> Trim(const AdminCall& call) {
  OPSERVE_ASSIGN_OR_RETURN(const uint64_t trimmed,
                           call.client.TrimPool(call.arguments.device, call.timeout()));
  return Outcome{absl::StrCat("the pool of device ", call.arguments.device, " gave back ",
                              FormatBytes(trimmed), "\n"),
                 {{"device", call.arguments.device}, {"trimmed_bytes", trimmed}}};
}

std::string StateName(v1::PoolSnapshot::Block::State state) {
  const std::string& name = v1::PoolSnapshot::Block::State_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "STATE_"));
}

// "" unless it is lent.
std::string AgeOf(const v1::PoolSnapshot::Block& block) {
  return block.has_age() ? AgeText(absl::Seconds(block.age().seconds())) : "";
}

// One row for each block. Empty cells are facts that a block of its state does not have.
std::string FormatSnapshot(const v1::PoolSnapshot& snapshot) {
  std::vector<std::vector<std::string>> rows = {
      {"REGION", "OFFSET", "BYTES", "STATE", "STREAM", "OWNER", "AGE", "REQUESTED"}};
  for (int region = 0; region < snapshot.regions_size(); ++region) {
    for (const v1::PoolSnapshot::Block& block : snapshot.regions(region).blocks()) {
      rows.push_back({absl::StrCat(region), absl::StrCat(block.offset()),
                      absl::StrCat(block.bytes()), StateName(block.state()),
                      block.stream() == 0 ? "" : absl::StrCat(block.stream()),
                      block.has_owner() ? absl::StrCat(block.owner()) : "", AgeOf(block),
                      block.requested_bytes() == 0 ? "" : absl::StrCat(block.requested_bytes())});
    }
  }
  return absl::StrCat(FormatTable(rows), FormatBytes(snapshot.reserved_bytes()),
                      " reserved: ", FormatBytes(snapshot.allocated_bytes()), " allocated, ",
                      FormatBytes(snapshot.idle_bytes()), " idle, ",
                      FormatBytes(snapshot.retired_bytes()), " retired\n");
}

absl::StatusOr<Outcome> Snapshot(const AdminCall& call) {
  OPSERVE_ASSIGN_OR_RETURN(const v1::PoolSnapshot snapshot,
                           call.client.GetPoolSnapshot(call.arguments.device, call.timeout()));
  return Outcome{FormatSnapshot(snapshot), ToJson(snapshot)};
}

absl::StatusOr<Outcome> Tensors(const AdminCall& call) {
  OPSERVE_ASSIGN_OR_RETURN(const v1::ListTensorsResponse response,
                           call.client.ListTensors(call.arguments.tenant, call.timeout()));
  Outcome outcome{.text = "", .json = {{"tensors", nlohmann::ordered_json::array()}}};
  // The daemon's clock, by which the leases were set.
  const absl::Time now = DecodeTime(response.time());
  std::vector<std::vector<std::string>> rows = {
      {"TENANT", "HANDLE", "TENSOR", "SIZE", "DEVICE", "AGE", "LEASE LEFT"}};
  for (const v1::ListTensorsResponse::Tensor& listed : response.tensors()) {
    const v1::TensorSummary& tensor = listed.tensor();
    const std::vector<int64_t> shape(tensor.shape().begin(), tensor.shape().end());
    const absl::Duration age = now - DecodeTime(tensor.creation_time());
    const absl::Time lease_end = DecodeTime(tensor.lease_end());
    rows.push_back({listed.tenant(), FormatHandle(tensor.handle()),
                    TensorText(tensor.dtype(), shape), FormatBytes(tensor.bytes()),
                    absl::StrCat(tensor.device()), AgeText(age), LeaseText(lease_end - now)});
    outcome.json["tensors"].push_back({{"tenant", listed.tenant()},
                                       {"handle_start", FormatHandle(tensor.handle())},
                                       {"dtype", std::string(DataTypeName(tensor.dtype()))},
                                       {"shape", shape},
                                       {"bytes", tensor.bytes()},
                                       {"device", tensor.device()},
                                       {"age_seconds", absl::ToDoubleSeconds(age)},
                                       {"lease_end", TimeToJson(lease_end)}});
  }
  outcome.json["total_tensors"] = response.total_tensors();
  outcome.json["total_bytes"] = response.total_bytes();
  if (!response.tensors().empty()) outcome.text = FormatTable(rows);
  // The daemon lists a limited number, the largest.
  const uint64_t unlisted = response.total_tensors() - response.tensors_size();
  if (unlisted > 0) absl::StrAppend(&outcome.text, "... and ", unlisted, " smaller ones\n");
  absl::StrAppend(&outcome.text, TensorCount(response.total_tensors(), response.total_bytes()),
                  "\n");
  return outcome;
}

absl::StatusOr<Outcome> Status(const AdminCall& call) {
  return Outcome{RenderTop(/*earlier=*/nullptr, call.status, {}, {}), ToJson(call.status)};
}

absl::StatusOr<Outcome> LogLevel(const AdminCall& call) {
  const std::string& level = call.arguments.log_level;
  if (absl::Status status = call.client.SetLogLevel(level, call.timeout()); !status.ok())
    return status;
  return Outcome{absl::StrCat("the log level is ", level, "\n"), {{"log_level", level}}};
}

absl::StatusOr<Outcome> Reload(const AdminCall& call) {
  OPSERVE_ASSIGN_OR_RETURN(const v1::ReloadResponse response, call.client.Reload(call.timeout()));
  std::string text = response.file().empty()
                         ? "the daemon has no configuration file; the TLS files are read again\n"
                         : absl::StrCat(response.file(), " is read again\n");
  for (const std::string& change : response.changes()) absl::StrAppend(&text, "  ", change, "\n");
  if (response.changes().empty() && !response.file().empty()) text += "  nothing has changed\n";
  return Outcome{text,
                 {{"reloaded", true},
                  {"file", response.file()},
                  {"changes", std::vector<std::string>(response.changes().begin(),
                                                       response.changes().end())}}};
}

using Action = absl::StatusOr<Outcome> (*)(const AdminCall&);

// All commands alike: connect, ask which daemon answers, act, and name that daemon in the report.
std::optional<Failure> RunAdmin(Action action, const AdminArguments& arguments, Session& session) {
  auto connected = ConnectAdmin(session, arguments.target);
  if (auto* failure = std::get_if<Failure>(&connected)) return *failure;
  auto& connection = std::get<AdminConnection>(connected);
  // First of all: which daemon is it?
  const absl::StatusOr<v1::AdminStatus> status = connection.client->GetStatus(session.timeout);
  if (!status.ok()) return AdminFailure(session, connection, status.status());
  connection.daemon = status->daemon();
  absl::StatusOr<Outcome> outcome = action({.client = *connection.client,
                                            .arguments = arguments,
                                            .status = *status,
                                            .socket = connection.socket,
                                            .session = session});
  if (!outcome.ok()) return AdminFailure(session, connection, outcome.status());
  if (session.format == OutputFormat::kJson) {
    outcome->json["daemon"] = connection.daemon;
    outcome->json["socket"] = connection.socket;
    WriteJson(session.terminal.out, outcome->json);
  } else {
    session.terminal.out << DaemonText(connection.daemon, connection.socket) << "\n"
                         << outcome->text;
  }
  return std::nullopt;
}

enum class Operand { kNone, kDevice, kLogLevel, kTenant };

struct AdminCommand {
  const char* name;
  const char* summary;
  const char* footer;
  Operand operand;
  Action action;
};

// The name, two texts of help, the argument and the action of each command.
constexpr AdminCommand kCommands[] = {
    {"status", "Show devices, tenants and connections", kAdminStatusFooter, Operand::kNone,
     &Status},
    {"drain", "Take a device out of service without losing requests", kDrainFooter,
     Operand::kDevice, &Drain},
    {"drain-daemon", "End the daemon's service without losing requests or tensors",
     kDrainDaemonFooter, Operand::kNone, &DrainDaemon},
    {"resume", "Put a device back into service", kResumeFooter, Operand::kDevice, &Resume},
    {"trim", "Give the idle memory of a device's pool back", kTrimFooter, Operand::kDevice, &Trim},
    {"snapshot", "Show the memory of a device's pool, block by block", kSnapshotFooter,
     Operand::kDevice, &Snapshot},
    {"tensors", "Show the resident tensors of all tenants, or one", kTensorsFooter,
     Operand::kTenant, &Tensors},
    {"log-level", "Set the daemon's log level", kLogLevelFooter, Operand::kLogLevel, &LogLevel},
    {"reload", "Have the daemon read its configuration again", kReloadFooter, Operand::kNone,
     &Reload},
};

void AddOperand(Operand operand, CLI::App* command, AdminArguments* arguments) {
  switch (operand) {
    case Operand::kNone:
      return;
    case Operand::kDevice:
      command
          ->add_option("DEVICE", arguments->device, "Number of the device; see \"opserve status\"")
          ->required();
      return;
    case Operand::kLogLevel:
      command->add_option("LEVEL", arguments->log_level, "debug, info, warning, error or off")
          ->required();
      return;
    case Operand::kTenant:
      command->add_option("--tenant", arguments->tenant, "Those of this tenant only")
          ->type_name("NAME");
      return;
  }
}

}  // namespace

void AddAdminCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<AdminArguments>();
  CLI::App* admin = app.add_subcommand("admin", "Administer the daemon and its devices");
  admin->require_subcommand(1);
  for (const AdminCommand& kind : kCommands) {
    CLI::App* nested = admin->add_subcommand(kind.name, kind.summary);
    AddOperand(kind.operand, nested, arguments.get());
    if (kind.action == &Drain) {
      nested->add_flag("--yes", arguments->is_confirmed,
                       "Drain it even if it is the last ready device; asks nothing");
    } else if (kind.action == &DrainDaemon) {
      nested->add_flag("--yes", arguments->is_confirmed, "Drain it; asks nothing");
    }
    AddAdminTargetFlag(nested, &arguments->target);
    nested->footer(kind.footer);
    nested->callback([arguments, command, action = kind.action] {
      *command = [arguments, action](Session& session) {
        return RunAdmin(action, *arguments, session);
      };
    });
  }
  admin->footer(kAdminFooter);  // after the commands, which would inherit it
}

}  // namespace opserve::cli
