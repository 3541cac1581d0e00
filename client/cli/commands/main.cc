#include <cstdlib>
#include <string>
#include <vector>

#include "client/cli/commands/command_line.h"

int main(int argc, char** argv) {
  // gRPC would log each failed handshake, of which the command's own error tells once.
  setenv("GRPC_VERBOSITY", "NONE", /*replace=*/0);
  opserve::cli::Terminal terminal = opserve::cli::ProcessTerminal();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(opserve::cli::RunCommandLine(arguments, terminal));
}
