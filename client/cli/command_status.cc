#include "client/cli/command_status.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/device_state_text.h"
#include "client/cli/proto_json.h"
#include "client/cli/time_text.h"

namespace opserve::cli {
namespace {

constexpr char kStatusFooter[] = R"(Examples:
  opserve status
  opserve status --target=npu-host:50051 --format=json)";

void WriteStatus(const v1::GetServerStatusResponse& status, std::ostream& out) {
  out << "opserved " << status.version() << " on " << status.runtime() << "\n";
  if (status.has_start_time()) {
    const absl::Time start = absl::FromUnixSeconds(status.start_time().seconds());
    out << "started " << TimeText(start) << "\n";
  }
  std::vector<std::vector<std::string>> rows = {{"DEVICE", "SOC", "STATE", "LANES", "QUEUED",
                                                 "EXECUTING", "COMPLETED", "MEMORY USED",
                                                 "POOL LENT", "RESIDENT TENSORS", "QUARANTINES"}};
  for (const v1::DeviceStatus& device : status.devices()) {
    rows.push_back(
        {absl::StrCat(device.device()), device.soc_name(), StateText(device.state()),
         absl::StrCat(device.lanes()), absl::StrCat(device.queued_requests()),
         absl::StrCat(device.executing_requests()), absl::StrCat(device.completed_requests()),
         absl::StrCat(FormatBytes(device.memory_used_bytes()), " of ",
                      FormatBytes(device.memory_total_bytes())),
         absl::StrCat(FormatBytes(device.pool_allocated_bytes()), " of ",
                      FormatBytes(device.pool_reserved_bytes())),
         absl::StrCat(device.resident_tensors(), " (", FormatBytes(device.resident_bytes()), ")"),
         absl::StrCat(device.quarantines())});
  }
  out << "\n" << FormatTable(rows);
  for (const v1::DeviceStatus& device : status.devices()) {
    if (device.state_reason().empty()) continue;
    out << "device " << device.device() << " is " << StateText(device.state()) << ": "
        << device.state_reason() << "\n";
  }
  for (const v1::DeviceStatus& device : status.devices()) {
    for (const v1::WrongOperator& wrong : device.wrong_operators()) {
      out << "device " << device.device() << " does not offer " << wrong.operator_() << ": "
          << wrong.problem() << "\n";
    }
  }
}

std::optional<Failure> RunStatus(Session& session) {
  auto connection = Connect(session);
  if (auto* failure = std::get_if<Failure>(&connection)) return *failure;
  Client& client = *std::get<std::unique_ptr<Client>>(connection);
  const absl::StatusOr<v1::GetServerStatusResponse> status =
      client.GetServerStatus(session.timeout);
  if (!status.ok()) return CallFailure(session, client, status.status());
  if (session.format == OutputFormat::kJson) {
    WriteJson(session.terminal.out, ToJson(*status));
  } else {
    WriteStatus(*status, session.terminal.out);
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
