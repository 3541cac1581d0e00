#include "client/cli/top/top_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/commands/admin_connection.h"
#include "client/cli/text/output.h"
#include "client/cli/text/time_text.h"
#include "client/cli/top/status_rates.h"
#include "client/cpp/time_message.h"

namespace opserve::cli {
namespace {

using Lines = std::vector<std::string>;

// From this share of a pool on, its bar is a warning.
constexpr double kNearlyFull = 0.9;

struct NamedOrder {
  TopOrder order;
  const char* name;  // its first letter is its key
};

constexpr std::array<NamedOrder, 4> kOrders = {{{TopOrder::kShare, "share"},
                                                {TopOrder::kName, "name"},
                                                {TopOrder::kPending, "pending"},
                                                {TopOrder::kMemory, "memory"}}};

// An empty whole counts as unused, not as an error.
double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string RateText(double per_second) {
  return absl::StrFormat("%.*f", per_second < 10000 ? 1 : 0, per_second);
}

std::string LagText(double seconds) {
  return std::abs(seconds) < 1 ? absl::StrFormat("%.0fms", seconds * 1000)
                               : absl::StrFormat("%.1fs", seconds);
}

// "0.25ms", "31.4ms", "2.5s"
std::string LatencyText(std::optional<absl::Duration> latency) {
  if (!latency) return "-";
  const double milliseconds = absl::ToDoubleMilliseconds(*latency);
  if (milliseconds >= 1000) return absl::StrFormat("%.1fs", milliseconds / 1000);
  return absl::StrFormat("%.*fms", milliseconds < 10 ? 2 : 1, milliseconds);
}

// "3d 04:05:06"
std::string UptimeText(absl::Duration up) {
  const int64_t seconds = absl::ToInt64Seconds(up);
  const std::string clock =
      absl::StrFormat("%02d:%02d:%02d", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds < 86400 ? clock : absl::StrCat(seconds / 86400, "d ", clock);
}

Style StyleOf(v1::DeviceStatus::State state) {
  switch (state) {
    case v1::DeviceStatus::STATE_READY:
      return Style::kGood;
    case v1::DeviceStatus::STATE_STARTING:
    case v1::DeviceStatus::STATE_DRAINING:
    case v1::DeviceStatus::STATE_DRAINED:
      return Style::kWarning;
    default:
      return Style::kBad;
  }
}

// Times are the daemon's, as its counters are; this machine's clock may differ.
Lines Header(const v1::AdminStatus& status, const StatusRates& rates) {
  const absl::Time now = DecodeTime(status.time());
  std::string daemon = absl::StrCat(
      "opserved ", status.version(), " on ", status.runtime(), ", up ",
      UptimeText(std::max(now - DecodeTime(status.start_time()), absl::ZeroDuration())), ", ",
      FormatCount(status.connections(), "connection"));
  if (status.rejected_connections() > 0) {
    absl::StrAppend(&daemon, " (", status.rejected_connections(), " refused)");
  }
  absl::StrAppend(&daemon, ", log level ", status.log_level());
  if (status.stopping()) absl::StrAppend(&daemon, ", STOPPING");
  const std::string period =
      rates.is_since_start
          ? "means since the start"
          : absl::StrFormat("rates over %.1f s", absl::ToDoubleSeconds(rates.interval));
  return {std::move(daemon), absl::StrCat(TimeText(now), ", ", period, ", pinned ",
                                          FormatPartOf(status.pinned_allocated_bytes(),
                                                       status.pinned_reserved_bytes()))};
}

std::string KeyHelp(TopOrder order) {
  return absl::StrCat("keys: ",
                      absl::StrJoin(kOrders, "  ",
                                    [order](std::string* out, const NamedOrder& named) {
                                      absl::StrAppend(out, absl::string_view(named.name, 1), " ",
                                                      named.name, named.order == order ? "*" : "");
                                    }),
                      "  ", absl::string_view(&kQuitKey, 1), " quit");
}

Lines Devices(const v1::AdminStatus& status, const StatusRates& rates, size_t width,
              bool has_colors) {
  std::vector<std::vector<BarCell>> rows;
  for (int i = 0; i < status.devices_size(); ++i) {
    const v1::DeviceStatus& device = status.devices(i);
    const double pool_fill = Ratio(device.pool_allocated_bytes(), device.pool_reserved_bytes());
    rows.push_back(
        {{.text = absl::StrCat(device.device())},
         {.text = StateText(device.state()), .style = StyleOf(device.state())},
         {.text = absl::StrCat(device.executing_requests(), "/", device.lanes()),
          .style = Style::kGood,
          .fill = Ratio(device.executing_requests(), device.lanes())},
         {.text = absl::StrCat(device.queued_requests())},
         {.text = RateText(rates.device_requests_per_second[i])},
         {.text = FormatPartOf(device.pool_allocated_bytes(), device.pool_reserved_bytes()),
          .style = pool_fill < kNearlyFull ? Style::kGood : Style::kWarning,
          .fill = pool_fill},
         {.text = FormatPartOf(device.memory_used_bytes(), device.memory_total_bytes())},
         {.text = absl::StrCat(device.resident_tensors())}});
  }
  return LayOut({{.title = "DEV", .is_number = true},
                 {.title = "STATE"},
                 {.title = "LANES", .is_number = true, .has_bar = true},
                 {.title = "QUEUED", .is_number = true},
                 {.title = "REQ/S", .is_number = true},
                 {.title = "POOL", .is_number = true, .has_bar = true},
                 {.title = "MEMORY", .is_number = true},
                 {.title = "RESIDENT", .is_number = true}},
                rows, width, has_colors);
}

// Sentences below the table of devices, which has no room for them.
Lines Reasons(const v1::AdminStatus& status) {
  Lines lines;
  for (const v1::DeviceStatus& device : status.devices()) {
    if (device.state_reason().empty()) continue;
    lines.push_back(absl::StrCat("device ", device.device(), " is ", StateText(device.state()),
                                 ": ", device.state_reason()));
  }
  return lines;
}

bool ComesFirst(TopOrder order, const TenantRates& a, const TenantRates& b) {
  switch (order) {
    case TopOrder::kShare:
      // Ties by name, so that lines do not change places between samples.
      return std::tie(b.lane_share, a.name) < std::tie(a.lane_share, b.name);
    case TopOrder::kPending:
      return std::tie(b.pending_requests, a.name) < std::tie(a.pending_requests, b.name);
    case TopOrder::kMemory:
      return std::tie(b.device_bytes, a.name) < std::tie(a.device_bytes, b.name);
    case TopOrder::kName:
      break;
  }
  return a.name < b.name;
}

BarCell RequestRateCell(const RequestRates& rates) {
  return {.text = RateText(rates.requests_per_second)};
}

BarCell FailureRateCell(const RequestRates& rates) {
  return {.text = RateText(rates.failures_per_second),
          .style = rates.failures_per_second > 0 ? Style::kBad : Style::kPlain};
}

BarCell ByteRateCell(const RequestRates& rates) {
  return {.text = FormatBytes(static_cast<uint64_t>(rates.bytes_per_second))};
}

Lines Tenants(std::vector<TenantRates> tenants, size_t width, const TopOptions& options) {
  std::sort(tenants.begin(), tenants.end(),
            [&options](const auto& a, const auto& b) { return ComesFirst(options.order, a, b); });
  std::vector<std::vector<BarCell>> rows;
  for (const TenantRates& tenant : tenants) {
    rows.push_back({{.text = tenant.name},
                    {.text = absl::StrCat(tenant.pending_requests)},
                    {.text = absl::StrCat(tenant.queued_requests)},
                    RequestRateCell(tenant.requests),
                    FailureRateCell(tenant.requests),
                    {.text = absl::StrFormat("%.1f%%", 100 * tenant.lane_share),
                     .style = Style::kAccent,
                     .fill = tenant.lane_share},
                    {.text = FormatBytes(tenant.device_bytes)},
                    {.text = LatencyText(tenant.requests.latency)},
                    ByteRateCell(tenant.requests),
                    {.text = LagText(tenant.lag_seconds)},
                    {.text = absl::StrCat(tenant.weight)},
                    {.text = FormatBytes(tenant.resident_bytes)},
                    {.text = absl::StrCat(tenant.prepared_programs)}});
  }
  // On a narrow screen the last ones are left out, not those that tenants are sorted by.
  return LayOut({{.title = "TENANT"},
                 {.title = "PENDING", .is_number = true},
                 {.title = "QUEUED", .is_number = true},
                 {.title = "REQ/S", .is_number = true},
                 {.title = "FAIL/S", .is_number = true},
                 {.title = "SHARE", .is_number = true, .has_bar = true},
                 {.title = "MEMORY", .is_number = true},
                 {.title = "LATENCY", .is_number = true},
                 {.title = "BYTES/S", .is_number = true},
                 {.title = "LAG", .is_number = true},
                 {.title = "WEIGHT", .is_number = true},
                 {.title = "RESIDENT", .is_number = true},
                 {.title = "PREPARED", .is_number = true}},
                rows, width, options.has_colors);
}

// Those that were called, the busiest first; nothing if there are none.
Lines Operators(std::vector<OperatorRates> operators, size_t width, bool has_colors) {
  if (operators.empty()) return {};
  std::sort(operators.begin(), operators.end(), [](const auto& a, const auto& b) {
    return std::tie(b.requests.requests_per_second, a.name) <
           std::tie(a.requests.requests_per_second, b.name);
  });
  std::vector<std::vector<BarCell>> rows;
  for (const OperatorRates& op : operators) {
    rows.push_back({{.text = op.name},
                    RequestRateCell(op.requests),
                    FailureRateCell(op.requests),
                    {.text = LatencyText(op.requests.latency)},
                    ByteRateCell(op.requests)});
  }
  return LayOut({{.title = "OPERATOR"},
                 {.title = "REQ/S", .is_number = true},
                 {.title = "FAIL/S", .is_number = true},
                 {.title = "LATENCY", .is_number = true},
                 {.title = "BYTES/S", .is_number = true}},
                rows, width, has_colors);
}

struct Table {
  Lines lines;
  const char* row;  // "device": of its rows
};

// Leaves at most `room` lines of a table, the last of which counts the rows that are missing.
void Shorten(ScreenSize room, Table* table) {
  Lines& lines = table->lines;
  if (lines.size() <= room.height) return;
  const size_t kept = room.height > 0 ? room.height - 1 : 0;
  const size_t missing = lines.size() - std::max<size_t>(kept, 1);  // the title is no row
  lines.resize(kept);
  if (room.height == 0) return;
  lines.push_back(
      Clip(absl::StrCat("... and ", FormatCount(missing, table->row), " more"), room.width));
}

// Shares `room` lines out: equal parts, and more for a table if others need less.
void ShortenAll(ScreenSize room, std::vector<Table*> tables) {
  // The smallest first: the lines that it leaves go to the others.
  std::sort(tables.begin(), tables.end(),
            [](const Table* a, const Table* b) { return a->lines.size() < b->lines.size(); });
  for (size_t i = 0; i < tables.size(); ++i) {
    Shorten({room.width, room.height / (tables.size() - i)}, tables[i]);
    room.height -= tables[i]->lines.size();
  }
}

void Append(const Lines& from, Lines* to) { to->insert(to->end(), from.begin(), from.end()); }

}  // namespace

std::optional<TopOrder> TopOrderNamed(absl::string_view name) {
  for (const NamedOrder& named : kOrders) {
    if (name == named.name) return named.order;
  }
  return std::nullopt;
}

std::optional<TopOrder> TopOrderOfKey(char key) {
  for (const NamedOrder& named : kOrders) {
    if (key == named.name[0]) return named.order;
  }
  return std::nullopt;
}

// Pure: the same samples and size give the same text, so that tests need no terminal.
std::string RenderTop(const v1::AdminStatus* earlier, const v1::AdminStatus& status,
                      ScreenSize size, const TopOptions& options) {
  const StatusRates rates = RatesOf(earlier, status);
  const bool is_watched = size.height != kUnlimited;
  Lines lines = Header(status, rates);
  if (!options.socket.empty()) {
    lines.insert(lines.begin(), DaemonText(status.daemon(), options.socket));
  }
  // Without a live screen there are no keys to press.
  if (is_watched) lines.push_back(KeyHelp(options.order));
  for (std::string& line : lines) line = Clip(line, size.width);
  if (options.has_colors) lines[0] = Styled(lines[0], Style::kTitle);

  Table devices = {Devices(status, rates, size.width, options.has_colors), "device"};
  Lines reasons = Reasons(status);
  for (std::string& line : reasons) line = Clip(line, size.width);
  Table tenants = {Tenants(rates.tenants, size.width, options), "tenant"};
  Table operators = {Operators(rates.operators, size.width, options.has_colors), "operator"};
  if (is_watched) {
    // Of the lines that the header, the reasons and an empty line before each table leave.
    const size_t used = lines.size() + reasons.size() + (operators.lines.empty() ? 2 : 3);
    const size_t room = size.height - std::min(size.height, used);
    ShortenAll({size.width, room}, {&devices, &tenants, &operators});
  }
  lines.emplace_back();
  Append(devices.lines, &lines);
  Append(reasons, &lines);
  lines.emplace_back();
  Append(tenants.lines, &lines);
  if (!operators.lines.empty()) {
    lines.emplace_back();
    Append(operators.lines, &lines);
  }
  // The header alone may be higher than a very low screen.
  if (lines.size() > size.height) lines.resize(size.height);
  return absl::StrCat(absl::StrJoin(lines, "\n"), "\n");
}

}  // namespace opserve::cli
