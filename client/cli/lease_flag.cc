#include "client/cli/lease_flag.h"

#include <string>

#include "client/cli/time_text.h"

namespace opserve::cli {

CLI::Option* AddLeaseFlag(CLI::App* command, absl::Duration* lease) {
  return command
      ->add_option("--lease", "How long the tensor is kept: 90s, 12h; default: the daemon's (10m)")
      ->type_name("TIME")
      ->check([lease](const std::string& text) { return ReadTime(text, lease); });
}

}  // namespace opserve::cli
