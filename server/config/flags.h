// The daemon's command line. Its flags are the fields of config::Command and the scalar fields of
// config::ServerConfig, with their types, bounds and help: a new field is a new flag.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "server/config/server_config.pb.h"

namespace opserve::server {

// Flags that were given. Immutable.
class CommandLine {
 public:
  // `arguments`: those of main, without the program's name. A flag is --name=VALUE or --name VALUE;
  // of a boolean --name, --name=true, --name=false, --noname or --no-name. Dashes and underscores
  // in names are the same. Of a flag that is given twice the last one counts, of a list (elements
  // separated by commas) all do. kInvalidArgument: an unknown flag, with the name that was probably
  // meant; a value that is not of the flag's type; an argument that is no flag.
  static absl::StatusOr<CommandLine> Parse(absl::Span<const char* const> arguments);

  const config::Command& command() const { return command_; }

  // Replaces the fields of `values` whose flags were given, whatever their values are: an empty
  // list empties a list of the file, a flag with its default's value replaces another value.
  void Override(config::ServerConfig* values) const;

 private:
  config::Command command_;
  config::ServerConfig values_;
  std::vector<const google::protobuf::FieldDescriptor*> given_;  // of ServerConfig
};

// Fields of a message that are flags, in their order.
std::vector<const google::protobuf::FieldDescriptor*> FlagsOf(
    const google::protobuf::Descriptor& message);

}  // namespace opserve::server
