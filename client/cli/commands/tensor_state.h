// Resident tensors to a file, all as they are at one moment, and back: "tensor save" and "tensor
// load".
#pragma once

#include "CLI/App.hpp"
#include "client/cli/commands/session.h"

namespace opserve::cli {

// Each adds a command to `tensor`, as those of commands.h do.
void AddSave(CLI::App* tensor, Command* command);
void AddLoad(CLI::App* tensor, Command* command);

}  // namespace opserve::cli
