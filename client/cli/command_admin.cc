#include "client/cli/command_admin.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/admin_connection.h"
#include "client/cli/proto_json.h"
#include "client/cli/top_view.h"

namespace opserve::cli {
namespace {

constexpr char kAdminFooter[] =
    R"(The daemon answers these on a socket of its own, which only its user can reach.

Examples:
  opserve admin drain 0 --timeout=5m     before the device is serviced
  opserve admin resume 0                 afterwards, or to end a quarantine
  opserve admin snapshot 0 --format=json
  opserve admin reload                   after a change of the configuration file

"opserve help admin COMMAND" tells more about each.)";

constexpr char kDrainFooter[] =
    R"(The device takes no new requests; those queued move to other devices or end
here, those running end. Resident tensors stay, but cannot be used until the
device is resumed. If --timeout passes first, the device goes on draining:
repeat the command to wait for it.)";

constexpr char kResumeFooter[] =
    R"(The device serves again once it has computed known values right. This also ends
a quarantine, without waiting for the daemon's next attempt.)";

constexpr char kTrimFooter[] =
    R"(The pool gets what it needs from the device again, at the price of slower
allocations. Memory lent to requests and resident tensors stays.)";

constexpr char kSnapshotFooter[] =
    R"(Every region that the pool took from the device, block by block. A block is
allocated (lent), idle (free for any lane) or retired (free for the lane that
used it last).)";

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
  std::string target = {};  // "": as --target says
  uint32_t device = 0;
  std::string log_level = {};
};

// The result of a command: a sentence for people, a document for programs.
struct Outcome {
  std::string text;
  nlohmann::ordered_json json;
};

absl::StatusOr<Outcome> Drain(AdminClient& client, const AdminArguments& arguments,
                              absl::Duration timeout) {
  const absl::StatusOr<uint32_t> moved = client.DrainDevice(arguments.device, timeout);
  if (!moved.ok()) return moved.status();
  return Outcome{absl::StrCat("device ", arguments.device, " is drained; ", *moved,
                              " of its requests went to other devices\n"),
                 {{"device", arguments.device}, {"moved_requests", *moved}}};
}

absl::StatusOr<Outcome> Resume(AdminClient& client, const AdminArguments& arguments,
                               absl::Duration timeout) {
  if (absl::Status status = client.ResumeDevice(arguments.device, timeout); !status.ok())
    return status;
  return Outcome{absl::StrCat("device ", arguments.device, " is ready\n"),
                 {{"device", arguments.device}}};
}

absl::StatusOr<Outcome> Trim(AdminClient& client, const AdminArguments& arguments,
                             absl::Duration timeout) {
  const absl::StatusOr<uint64_t> trimmed = client.TrimPool(arguments.device, timeout);
  if (!trimmed.ok()) return trimmed.status();
  return Outcome{absl::StrCat("the pool of device ", arguments.device, " gave back ",
                              FormatBytes(*trimmed), "\n"),
                 {{"device", arguments.device}, {"trimmed_bytes", *trimmed}}};
}

std::string StateName(v1::PoolSnapshot::Block::State state) {
  const std::string& name = v1::PoolSnapshot::Block::State_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "STATE_"));
}

std::string FormatSnapshot(const v1::PoolSnapshot& snapshot) {
  std::vector<std::vector<std::string>> rows = {
      {"REGION", "OFFSET", "BYTES", "STATE", "REQUESTED"}};
  for (int region = 0; region < snapshot.regions_size(); ++region) {
    for (const v1::PoolSnapshot::Block& block : snapshot.regions(region).blocks()) {
      rows.push_back({absl::StrCat(region), absl::StrCat(block.offset()),
                      absl::StrCat(block.bytes()), StateName(block.state()),
                      block.requested_bytes() == 0 ? "" : absl::StrCat(block.requested_bytes())});
    }
  }
  return absl::StrCat(FormatTable(rows), FormatBytes(snapshot.reserved_bytes()),
                      " reserved: ", FormatBytes(snapshot.allocated_bytes()), " allocated, ",
                      FormatBytes(snapshot.idle_bytes()), " idle, ",
                      FormatBytes(snapshot.retired_bytes()), " retired\n");
}

absl::StatusOr<Outcome> Snapshot(AdminClient& client, const AdminArguments& arguments,
                                 absl::Duration timeout) {
  const absl::StatusOr<v1::PoolSnapshot> snapshot =
      client.GetPoolSnapshot(arguments.device, timeout);
  if (!snapshot.ok()) return snapshot.status();
  return Outcome{FormatSnapshot(*snapshot), ToJson(*snapshot)};
}

absl::StatusOr<Outcome> Status(AdminClient& client, const AdminArguments& /*arguments*/,
                               absl::Duration timeout) {
  const absl::StatusOr<v1::AdminStatus> status = client.GetStatus(timeout);
  if (!status.ok()) return status.status();
  return Outcome{RenderTop(/*earlier=*/nullptr, *status, {}, {}), ToJson(*status)};
}

absl::StatusOr<Outcome> LogLevel(AdminClient& client, const AdminArguments& arguments,
                                 absl::Duration timeout) {
  const std::string& level = arguments.log_level;
  if (absl::Status status = client.SetLogLevel(level, timeout); !status.ok()) return status;
  return Outcome{absl::StrCat("the log level is ", level, "\n"), {{"log_level", level}}};
}

absl::StatusOr<Outcome> Reload(AdminClient& client, const AdminArguments& /*arguments*/,
                               absl::Duration timeout) {
  const absl::StatusOr<v1::ReloadResponse> response = client.Reload(timeout);
  if (!response.ok()) return response.status();
  std::string text = response->file().empty()
                         ? "the daemon has no configuration file; the TLS files are read again\n"
                         : absl::StrCat(response->file(), " is read again\n");
  for (const std::string& change : response->changes()) absl::StrAppend(&text, "  ", change, "\n");
  if (response->changes().empty() && !response->file().empty()) text += "  nothing has changed\n";
  return Outcome{text,
                 {{"reloaded", true},
                  {"file", response->file()},
                  {"changes", std::vector<std::string>(response->changes().begin(),
                                                       response->changes().end())}}};
}

using Action = absl::StatusOr<Outcome> (*)(AdminClient&, const AdminArguments&,
                                           absl::Duration timeout);

std::optional<Failure> RunAdmin(Action action, const AdminArguments& arguments, Session& session) {
  auto connected = ConnectAdmin(session, arguments.target);
  if (auto* failure = std::get_if<Failure>(&connected)) return *failure;
  const auto& connection = std::get<AdminConnection>(connected);
  const absl::StatusOr<Outcome> outcome = action(*connection.client, arguments, session.timeout);
  if (!outcome.ok()) return AdminFailure(session, connection, outcome.status());
  if (session.format == OutputFormat::kJson) {
    WriteJson(session.terminal.out, outcome->json);
  } else {
    session.terminal.out << outcome->text;
  }
  return std::nullopt;
}

enum class Operand { kNone, kDevice, kLogLevel };

struct AdminCommand {
  const char* name;
  const char* summary;
  const char* footer;
  Operand operand;
  Action action;
};

constexpr AdminCommand kCommands[] = {
    {"status", "Show devices, tenants and connections", kAdminStatusFooter, Operand::kNone,
     &Status},
    {"drain", "Take a device out of service without losing requests", kDrainFooter,
     Operand::kDevice, &Drain},
    {"resume", "Put a device back into service", kResumeFooter, Operand::kDevice, &Resume},
    {"trim", "Give the idle memory of a device's pool back", kTrimFooter, Operand::kDevice, &Trim},
    {"snapshot", "Show the memory of a device's pool, block by block", kSnapshotFooter,
     Operand::kDevice, &Snapshot},
    {"log-level", "Set what the daemon logs", kLogLevelFooter, Operand::kLogLevel, &LogLevel},
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
