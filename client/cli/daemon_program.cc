#include "client/cli/daemon_program.h"

#include <filesystem>
#include <system_error>

namespace opserve::cli {

std::string DaemonProgram() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = own.parent_path() / "opserved";
  return !error && std::filesystem::exists(beside, error) ? beside.string() : "opserved";
}

}  // namespace opserve::cli
