#include "client/cli/command_admin.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/proto_json.h"
#include "client/cpp/admin_client.h"

namespace opserve::cli {
namespace {

constexpr char kFooter[] =
    R"(The daemon answers these on a socket of its own, which only its user can reach.

Examples:
  opserve admin drain 0 --timeout=5m     before the device is serviced
  opserve admin resume 0                 afterwards, or to end a quarantine
  opserve admin snapshot 0 --format=json

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

constexpr char kUnreachableHint[] =
    "start the daemon with \"opserved\", or say where it listens for administrators with "
    "--admin-target";

struct AdminArguments {
  std::string target = {};  // "": as --target says
  uint32_t device = 0;
};

Failure AdminFailure(const Session& session, const AdminArguments& arguments,
                     const AdminClient& client, const absl::Status& status) {
  Failure failure = CallFailure(session, arguments.target, client.IsConnected(), status);
  if (failure.exit_code == ExitCode::kUnreachable) failure.hint = kUnreachableHint;
  return failure;
}

// The result of a command: a sentence for people, a document for programs.
struct Outcome {
  std::string text;
  nlohmann::ordered_json json;
};

absl::StatusOr<Outcome> Drain(AdminClient& client, uint32_t device, absl::Duration timeout) {
  const absl::StatusOr<uint32_t> moved = client.DrainDevice(device, timeout);
  if (!moved.ok()) return moved.status();
  return Outcome{absl::StrCat("device ", device, " is drained; ", *moved,
                              " of its requests went to other devices\n"),
                 {{"device", device}, {"moved_requests", *moved}}};
}

absl::StatusOr<Outcome> Resume(AdminClient& client, uint32_t device, absl::Duration timeout) {
  if (absl::Status status = client.ResumeDevice(device, timeout); !status.ok()) return status;
  return Outcome{absl::StrCat("device ", device, " is ready\n"), {{"device", device}}};
}

absl::StatusOr<Outcome> Trim(AdminClient& client, uint32_t device, absl::Duration timeout) {
  const absl::StatusOr<uint64_t> trimmed = client.TrimPool(device, timeout);
  if (!trimmed.ok()) return trimmed.status();
  return Outcome{
      absl::StrCat("the pool of device ", device, " gave back ", FormatBytes(*trimmed), "\n"),
      {{"device", device}, {"trimmed_bytes", *trimmed}}};
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

absl::StatusOr<Outcome> Snapshot(AdminClient& client, uint32_t device, absl::Duration timeout) {
  const absl::StatusOr<v1::PoolSnapshot> snapshot = client.GetPoolSnapshot(device, timeout);
  if (!snapshot.ok()) return snapshot.status();
  return Outcome{FormatSnapshot(*snapshot), ToJson(*snapshot)};
}

using Action = absl::StatusOr<Outcome> (*)(AdminClient&, uint32_t device, absl::Duration timeout);

std::optional<Failure> RunAdmin(Action action, const AdminArguments& arguments, Session& session) {
  const auto client = AdminClient::Connect(arguments.target);
  if (!client.ok()) return UsageFailure(client.status(), "see \"opserve help admin\"");
  const absl::StatusOr<Outcome> outcome = action(**client, arguments.device, session.timeout);
  if (!outcome.ok()) return AdminFailure(session, arguments, **client, outcome.status());
  if (session.format == OutputFormat::kJson) {
    WriteJson(session.terminal.out, outcome->json);
  } else {
    session.terminal.out << outcome->text;
  }
  return std::nullopt;
}

struct AdminCommand {
  const char* name;
  const char* summary;
  const char* footer;
  Action action;
};

constexpr AdminCommand kCommands[] = {
    {"drain", "Take a device out of service without losing requests", kDrainFooter, &Drain},
    {"resume", "Put a device back into service", kResumeFooter, &Resume},
    {"trim", "Give the idle memory of a device's pool back", kTrimFooter, &Trim},
    {"snapshot", "Show the memory of a device's pool, block by block", kSnapshotFooter, &Snapshot},
};

}  // namespace

void AddAdminCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<AdminArguments>();
  CLI::App* admin = app.add_subcommand("admin", "Administer devices");
  admin->require_subcommand(1);
  for (const AdminCommand& kind : kCommands) {
    CLI::App* nested = admin->add_subcommand(kind.name, kind.summary);
    nested->add_option("DEVICE", arguments->device, "Number of the device; see \"opserve status\"")
        ->required();
    nested
        ->add_option("--admin-target", arguments->target,
                     "Where the daemon listens for administrators; default: the path of --target's "
                     "socket with .admin behind it")
        ->type_name("unix:PATH|HOST:PORT");
    nested->footer(kind.footer);
    nested->callback([arguments, command, action = kind.action] {
      *command = [arguments, action](Session& session) {
        if (arguments->target.empty()) arguments->target = AdminTargetOf(session.target);
        return RunAdmin(action, *arguments, session);
      };
    });
  }
  admin->footer(kFooter);  // after the commands, which would inherit it
}

}  // namespace opserve::cli
