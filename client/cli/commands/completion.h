// Completion of commands in shells, and the commands that people see.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "client/cli/commands/session.h"
#include "opserve/v1/operator.pb.h"

namespace opserve::cli {

// Where the words come from that only a daemon knows. Each gives nothing if that takes long.
struct CompletionSource {
  // The operators of these names, or all.
  std::function<std::vector<v1::OperatorDescriptor>(const std::vector<std::string>& names)>
      operators;
  std::function<std::vector<std::string>()> devices;
  // As many digits of each of the caller's tensors as tell them apart, and at least `digits`.
  std::function<std::vector<std::string>(size_t digits)> handles;
};

// Possible completions of the last of `words` (those behind "opserve"; it may be empty): flags and
// commands that begin with it, a flag's choices, operators, their inputs and attributes, devices,
// handles. Sorted; empty where only a file or a free text is expected.
std::vector<std::string> Complete(const CLI::App& app, const std::vector<std::string>& words,
                                  const CompletionSource& source);

// The script that makes a shell complete by `opserve complete`. kInvalidArgument: not bash, zsh or
// fish.
absl::StatusOr<std::string> CompletionScript(const std::string& shell);

// Adds `opserve completion`, and `opserve complete`, which its scripts call.
void AddCompletionCommands(CLI::App& app, Command* command);

// The subcommands of `app`, without those that are there for scripts: these have no group.
inline std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  std::vector<const CLI::App*> visible;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) visible.push_back(command);
  }
  return visible;
}

}  // namespace opserve::cli
