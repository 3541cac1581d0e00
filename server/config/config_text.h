// The configuration as text: reading a file, checking values against the rules that
// server_config.proto states, and printing the settings in effect.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/config/server_config.pb.h"

namespace opserve::server {

// Reads a file in protobuf text format.
// kInvalidArgument: line, column and the error there.  kNotFound: there is no such file, or it
// cannot be read.
absl::StatusOr<config::ServerConfig> ReadConfigFile(const std::string& path);

// The same of a text; `name` stands before line and column of its errors.
absl::StatusOr<config::ServerConfig> ParseConfig(const std::string& text, absl::string_view name);

// Checks every value against its rule.
// kInvalidArgument: names the value and its rule.
absl::Status CheckRules(const config::ServerConfig& values);

// Sets each field that is not set to its default, so that printing shows it.
void FillDefaults(config::ServerConfig* values);

// In the format that ReadConfigFile reads.
std::string ToText(const config::ServerConfig& values);

// The fields in which the two differ and which a reload cannot change, separated by commas.
std::string FieldsThatNeedRestart(const config::ServerConfig& a, const config::ServerConfig& b);

// The changes of a reload from `a` to `b`, one entry each: "log_level: info -> debug", "tenant x:
// added", "tenant y: changed (weight, uid)". No entry has a digest. At most 100, of which the last
// one then says how many more there are.
std::vector<std::string> Changes(const config::ServerConfig& a, const config::ServerConfig& b);

// A checked duration's value.
absl::Duration ToDuration(absl::string_view text);

}  // namespace opserve::server
