#include "client/cli/commands/commands.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/text/time_text.h"

namespace opserve::cli {
namespace {

constexpr char kStopping[] =
    "STOPPING: the daemon drains, and ends once the calls that run have ended";

constexpr char kStatusFooter[] = R"(LANES      requests that run, of those that can run at once
COMPLETED  requests that ended; an upload or a download is one
MEMORY     of the device, in use by any program
POOL       memory lent to requests and tensors, of what the daemon's pool has
RESIDENT   resident tensors; see "opserve tensor list"

A device is draining while requests are left on it, or resident tensors that
another device can take, and drained without any.
--format=json has more, such as the chips and bytes of resident tensors.

Examples:
  opserve status
  opserve status --target=npu-host:50051 --format=json)";

// Of a device, beyond its row of the table.
std::vector<std::string> Remarks(const v1::DeviceStatus& device) {
  const std::string name = absl::StrCat("device ", device.device());
  std::vector<std::string> remarks;
  if (!device.state_reason().empty()) {
    remarks.push_back(
        absl::StrCat(name, " is ", StateText(device.state()), ": ", device.state_reason()));
  }
  if (device.quarantines() > 0) {
    remarks.push_back(absl::StrCat(name, " was taken out of service for faults ",
                                   FormatCount(device.quarantines(), "time")));
  }
  if (device.captured_programs() > 0) {
    remarks.push_back(absl::StrCat(name, " keeps ", FormatBytes(device.captured_bytes()), " for ",
                                   FormatCount(device.captured_programs(), "captured run"),
                                   " of programs"));
  }
  for (const v1::WrongOperator& wrong : device.wrong_operators()) {
    remarks.push_back(
        absl::StrCat(name, " does not offer ", wrong.operator_(), ": ", wrong.problem()));
  }
  return remarks;
}

// The refusal's reason is short here; its full text is in the daemon's log.
std::string PackRemark(const v1::OperatorPackStatus& pack) {
  const std::string subject =
      absl::StrCat("operator pack ", pack.name(), ": ", FormatCount(pack.operators(), "operator"));
  if (pack.refusal().empty()) return subject;
  return absl::StrCat(subject, ", not served: refused (", pack.refusal(),
                      "); the daemon's log says why, or opserve ops --check");
}

std::string DepositRemark(const v1::DepositStatus& deposit) {
  // Two states: not yet reached, and moving.
  if (!deposit.connected()) {
    return absl::StrCat("resident tensors wait for a connection to ", deposit.address(), ": ",
                        FormatCount(deposit.left_tensors(), "tensor"), " of ",
                        FormatBytes(deposit.left_bytes()));
  }
  std::string remark = absl::StrCat(
      "resident tensors go to ", deposit.address(), ": ",
      FormatCount(deposit.moved_tensors(), "tensor"), " of ", FormatBytes(deposit.moved_bytes()),
      " moved, ", deposit.left_tensors(), " of ", FormatBytes(deposit.left_bytes()), " left");
  if (deposit.moved_programs() > 0) {
    absl::StrAppend(&remark, ", ", FormatCount(deposit.moved_programs(), "prepared program"),
                    " moved");
  }
  if (deposit.lost_tensors() > 0) {
    absl::StrAppend(&remark, ", ", deposit.lost_tensors(), " lost; the daemon's log names them");
  }
  return remark;
}

// The table has a row for each device. Anything that has no column, or rarely a value, follows as a
// sentence.
void WriteStatus(const v1::GetServerStatusResponse& status, Terminal& terminal) {
  std::ostream& out = terminal.out;
  out << Wrap(absl::StrCat("opserved ", status.version(), " on ", status.runtime()), terminal.width,
              /*indent=*/0);
  if (status.has_start_time()) {
    const absl::Time start = absl::FromUnixSeconds(status.start_time().seconds());
    out << "started " << TimeText(start) << "\n";
  }
  if (status.stopping()) out << kStopping << "\n";
  if (status.has_deposit()) {
    out << Wrap(DepositRemark(status.deposit()), terminal.width, /*indent=*/0);
  }
  std::vector<std::vector<std::string>> rows = {
      {"DEV", "STATE", "LANES", "QUEUED", "COMPLETED", "MEMORY", "POOL", "RESIDENT"}};
  for (const v1::DeviceStatus& device : status.devices()) {
    rows.push_back({absl::StrCat(device.device()), StateText(device.state()),
                    absl::StrCat(device.executing_requests(), "/", device.lanes()),
                    absl::StrCat(device.queued_requests()),
                    absl::StrCat(device.completed_requests()),
                    FormatPartOf(device.memory_used_bytes(), device.memory_total_bytes()),
                    FormatPartOf(device.pool_allocated_bytes(), device.pool_reserved_bytes()),
                    absl::StrCat(device.resident_tensors())});
  }
  out << "\n" << FormatTable(rows);
  // A tenant without tensors or programs gets no line.
  if (status.resident_tensors() > 0 || status.prepared_programs() > 0) {
    out << Wrap(
        absl::StrCat("your tenant has ", FormatCount(status.resident_tensors(), "resident tensor"),
                     " (", FormatBytes(status.resident_bytes()), ") and ",
                     FormatCount(status.prepared_programs(), "prepared program"), " (",
                     FormatBytes(status.prepared_bytes()), ")"),
        terminal.width, /*indent=*/0);
  }
  if (status.sessions() > 0) {
    std::string line =
        absl::StrCat("the daemon has ", FormatCount(status.sessions(), "open session"));
    if (status.arriving_requests() > 0) {
      absl::StrAppend(&line, "; the payloads of ",
                      FormatCount(status.arriving_requests(), "request"), " are arriving");
    }
    if (status.departing_requests() > 0) {
      absl::StrAppend(&line, "; the results of ",
                      FormatCount(status.departing_requests(), "request"), " are leaving");
    }
    out << Wrap(line, terminal.width, /*indent=*/0);
  }
  for (const v1::OperatorPackStatus& pack : status.operator_packs()) {
    out << Wrap(PackRemark(pack), terminal.width, /*indent=*/0);
  }
  for (const v1::DeviceStatus& device : status.devices()) {
    for (const std::string& remark : Remarks(device)) {
      out << Wrap(remark, terminal.width, /*indent=*/0);
    }
  }
}

std::optional<Failure> RunStatus(Session& session) {
  session.connection.retry.waits_for_daemon = false;  // whether it is there is the question
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  const absl::StatusOr<v1::GetServerStatusResponse> status =
      client.GetServerStatus(session.timeout);
  if (!status.ok()) return CallFailure(session, client, status.status());
  if (session.format == OutputFormat::kJson) {
    WriteJson(session.terminal.out, ToJson(*status));
  } else {
    WriteStatus(*status, session.terminal);
  }
  return std::nullopt;
}

}  // namespace

void AddStatusCommand(CLI::App& app, Command* command) {
  CLI::App* status = app.add_subcommand("status", "Show the daemon and its devices");
  status->footer(kStatusFooter);
  status->callback([command] { *command = RunStatus; });
}

}  // namespace opserve::cli
