// The configuration file: what is accepted keeps to the stated bounds, and what is printed of it
// reads back as the same configuration.
//
// Input: the file.
#include "server/config/config_text.h"

#include <string>

#include "google/protobuf/stubs/logging.h"
#include "server/config/config.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::server {
namespace {

using fuzz::Check;

void CheckBounds(const Config& config) {
  Check(!config.listen.empty(), "it listens somewhere");
  Check(!config.tenants.tenants.empty(), "there is a tenant");
  Check(config.streams_per_device >= 1 && config.streams_per_device <= 64, "lanes are bounded");
  Check(config.max_message_bytes <= INT32_MAX, "a message's size fits gRPC's int");
  Check(config.default_deadline > absl::ZeroDuration() &&
            config.default_deadline < absl::InfiniteDuration(),
        "every wait has an end");
  Check(config.longest_recovery_wait >= config.recovery_wait, "waits grow");
  for (const TenantConfig& tenant : config.tenants.tenants) {
    Check(!tenant.name.empty() && tenant.name.size() <= 63, "names are short");
    Check(tenant.weight >= 1 && tenant.weight <= 1000, "weights are bounded");
    Check(tenant.device_memory.reserved_bytes <= tenant.device_memory.soft_bytes &&
              tenant.device_memory.soft_bytes <= tenant.device_memory.hard_bytes,
          "zones are in order");
  }
}

void CheckReadsBack(const config::ServerConfig& values) {
  const auto again = ParseConfig(ToText(values), "printed");
  Check(again.ok(), "what is printed can be read");
  Check(again->SerializeAsString() == values.SerializeAsString(), "and says the same");
  Check(FieldsThatNeedRestart(values, *again).empty(), "and nothing needs a restart");
}

void Read(absl::string_view text) {
  absl::StatusOr<config::ServerConfig> values = ParseConfig(std::string(text), "file");
  if (!values.ok()) {
    Check(values.status().code() == absl::StatusCode::kInvalidArgument, "it is the file's fault");
    return;
  }
  CheckReadsBack(*values);
  const absl::StatusOr<Config> config = ConfigFrom(*values);
  Check(config.ok() || !config.status().message().empty(), "a refusal says why");
  FillDefaults(&*values);
  CheckReadsBack(*values);
  const absl::StatusOr<Config> complete = ConfigFrom(*values);
  Check(config.ok() == complete.ok(), "defaults that are written out change nothing");
  if (!config.ok()) return;
  CheckBounds(*config);
  Check(config->listen == complete->listen && config->admin_listen == complete->admin_listen,
        "nor do they change the listeners");
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of its warnings
  static_cast<void>(quiet);
  opserve::server::Read(opserve::fuzz::ToText(data, size));
  return 0;
}
