#include "client/cli/commands/commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/commands/admin_connection.h"
#include "client/cli/text/time_text.h"
#include "client/cli/top/live_screen.h"
#include "client/cli/top/top_view.h"

namespace opserve::cli {
namespace {

constexpr char kTopFooter[] =
    R"(On a terminal the view is drawn in place; press s, n, p or m to sort tenants by
share, name, pending or memory, and q to quit. Elsewhere, or with --plain, each
sample is a table of its own.

LANES     requests that run, of those that can run at once
POOL      memory lent to requests and tensors, of what the pool took from the device
REQ/S     requests ended between two samples; in the first, since the start
SHARE     a tenant's part of the lane time that all tenants had; under load it
          comes close to its part of the weights of those that want lanes
PENDING   requests let in and not answered, of which QUEUED wait for a lane
LATENCY   mean time from receipt to answer of requests with success
BYTES/S   of requests and of their answers
LAG       lane time that a tenant is behind its share; negative: ahead

Examples:
  opserve top --sort=pending
  opserve top --plain --interval=10s >> load.txt
  opserve top --format=json --count=60 | jq '.tenants[] | {name, requests}'

Colors are left out if NO_COLOR is set. --format=json writes one object a line.)";

constexpr absl::Duration kShortestInterval = absl::Milliseconds(100);
constexpr absl::Duration kLongestInterval = absl::Hours(1);

struct TopArguments {
  std::string target = {};  // "": the default
  absl::Duration interval = absl::Seconds(1);
  uint64_t count = 0;  // of samples; 0: no end
  TopOrder order = TopOrder::kShare;
  bool is_plain = false;
};

std::string ReadInterval(const std::string& text, absl::Duration* interval) {
  if (std::string error = ReadTime(text, interval); !error.empty()) return error;
  if (*interval >= kShortestInterval && *interval <= kLongestInterval) return "";
  return absl::StrCat("\"", text, "\" is not between ", absl::FormatDuration(kShortestInterval),
                      " and ", absl::FormatDuration(kLongestInterval));
}

std::string ReadOrder(const std::string& text, TopOrder* order) {
  const std::optional<TopOrder> named = TopOrderNamed(text);
  if (!named) return absl::StrCat("\"", text, "\" is not share, name, pending or memory");
  *order = *named;
  return "";
}

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool CanDraw(const Terminal& terminal) {
  const char* kind = std::getenv("TERM");
  // Dumb terminals cannot move the cursor.
  return terminal.out_is_terminal && kind != nullptr && std::string(kind) != "dumb";
}

// Samples one after the other, until the reader has enough or goes away.
// One call for all samples: the daemon sends them at the interval, without a request each.
absl::Status WriteSamples(const TopArguments& arguments, OutputFormat format,
                          const AdminConnection& connection, std::ostream& out) {
  std::optional<v1::AdminStatus> earlier;
  uint64_t samples = 0;
  return connection.client->Watch(arguments.interval, [&](const v1::AdminStatus& status) {
    if (format == OutputFormat::kJson) {
      nlohmann::ordered_json sample = ToJson(status);
      sample["socket"] = connection.socket;
      WriteJsonLine(out, sample);
    } else {
      out << (earlier ? "\n" : "")
          << RenderTop(earlier ? &*earlier : nullptr, status, {},
                       {.order = arguments.order, .socket = connection.socket});
      earlier = status;
    }
    out.flush();
    // The reader of a pipe may go at any time; that ends the watch.
    return out.good() && ++samples != arguments.count;
  });
}

// Shows one sample until the next is due, in the order that the keys say; false: quit.
bool Show(const v1::AdminStatus* earlier, const v1::AdminStatus& status, absl::Time until,
          TopOptions* options, LiveScreen* screen) {
  // Each key draws again at once; without one the loop ends with the interval.
  do {
    screen->Draw(RenderTop(earlier, status, screen->size(), *options));
    const std::optional<char> key =
        screen->WaitForKey(std::max(until - absl::Now(), absl::ZeroDuration()));
    if (key == kQuitKey) return false;
    if (key) options->order = TopOrderOfKey(*key).value_or(options->order);
  } while (absl::Now() < until);
  return true;
}

// Asks for each sample instead of watching: a watcher takes one of the daemon's few threads for
// good, and between two of its samples no key would be heard.
absl::Status DrawSamples(const TopArguments& arguments, absl::Duration timeout,
                         const AdminConnection& connection) {
  AdminClient& client = *connection.client;
  TopOptions options{
      .order = arguments.order, .has_colors = !IsSet("NO_COLOR"), .socket = connection.socket};
  absl::StatusOr<v1::AdminStatus> status = client.GetStatus(timeout);
  if (!status.ok()) return status.status();  // with the screen as it was
  LiveScreen screen(STDIN_FILENO, STDOUT_FILENO);
  std::optional<v1::AdminStatus> earlier;
  for (uint64_t samples = 1;; ++samples) {
    const absl::Time next = absl::Now() + arguments.interval;
    if (!Show(earlier ? &*earlier : nullptr, *status, next, &options, &screen) ||
        samples == arguments.count) {
      return absl::OkStatus();
    }
    // Kept for the rates of the next sample.
    earlier = *std::move(status);
    status = client.GetStatus(timeout);
    if (!status.ok()) return status.status();
  }
}

std::optional<Failure> RunTop(const TopArguments& arguments, Session& session) {
  auto connected = ConnectAdmin(session, arguments.target);
  if (auto* failure = std::get_if<Failure>(&connected)) return *failure;
  const auto& connection = std::get<AdminConnection>(connected);
  const bool is_live =
      session.format == OutputFormat::kText && !arguments.is_plain && CanDraw(session.terminal);
  const absl::Status status =
      is_live ? DrawSamples(arguments, session.timeout, connection)
              : WriteSamples(arguments, session.format, connection, session.terminal.out);
  if (!status.ok()) return AdminFailure(session, connection, status);
  return std::nullopt;
}

}  // namespace

void AddTopCommand(CLI::App& app, Command* command) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* top = app.add_subcommand("top", "Watch devices and tenants at work");
  top->add_option("--sort", "Order of the tenants; default share")
      ->type_name("share|name|pending|memory")
      ->check([arguments](const std::string& text) { return ReadOrder(text, &arguments->order); });
  top->add_option("--interval", "Time between two samples, 100ms to 1h; default 1s")
      ->type_name("TIME")
      ->check([arguments](const std::string& text) {
        return ReadInterval(text, &arguments->interval);
      });
  top->add_option("--count", arguments->count, "Exit after so many samples")
      ->type_name("N")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  top->add_flag("--plain", arguments->is_plain, "One table for each sample; nothing moves");
  AddAdminTargetFlag(top, &arguments->target);
  top->footer(kTopFooter);
  top->callback([arguments, command] {
    *command = [arguments](Session& session) { return RunTop(*arguments, session); };
  });
}

}  // namespace opserve::cli
