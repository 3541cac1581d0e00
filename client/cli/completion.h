// Completion of commands in shells.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/session.h"

namespace CLI {
class App;
}

namespace opserve::cli {

// Names of the operators, or nothing if that takes long.
using OperatorNames = std::function<std::vector<std::string>()>;

// What the last of `words` (those behind "opserve"; it may be empty) may be meant to be: flags and
// commands that begin with it, a flag's choices, names of operators. Sorted; nothing where a file
// or a free text is expected.
std::vector<std::string> Complete(const CLI::App& app, const std::vector<std::string>& words,
                                  const OperatorNames& operators);

// The script that makes a shell complete by `opserve complete`. kInvalidArgument: not bash, zsh or
// fish.
absl::StatusOr<std::string> CompletionScript(const std::string& shell);

// Adds `opserve completion`, and `opserve complete`, which its scripts call.
void AddCompletionCommands(CLI::App& app, Command* command);

}  // namespace opserve::cli
