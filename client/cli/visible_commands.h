// Commands as people see them.
#pragma once

#include <vector>

#include "CLI/CLI.hpp"

namespace opserve::cli {

// The subcommands of `app`, without those that are there for scripts: these have no group.
inline std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  std::vector<const CLI::App*> visible;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) visible.push_back(command);
  }
  return visible;
}

}  // namespace opserve::cli
