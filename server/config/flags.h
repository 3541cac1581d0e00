// The daemon's command line. Its flags have the names of ServerConfig's fields; one that is given
// overrides the configuration file.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/server_config.pb.h"

namespace opserve::server {

// Reads the flags of main's arguments and gives what else there is, the program's name first.
// Several
// --listen=... are one with the addresses of all. Ends the program for --help, --version
// and flags that it does not understand.
std::vector<char*> ParseFlags(int argc, char** argv);

// After ParseFlags: --config (empty: none), --validate_config, and --self_test with its format
// ("text" or "json", or what was given instead).
std::string ConfigPath();
bool ShouldOnlyValidate();
bool ShouldOnlyTestItself();
std::string SelfTestFormat();

// Sets the fields whose flags were given. kInvalidArgument: a text that is not a list of numbers.
absl::Status ApplyFlags(config::ServerConfig* values);

// Makes --help print the daemon's flags with a text that explains them, and --version the version.
void SetUsage();

}  // namespace opserve::server
