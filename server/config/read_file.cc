#include "server/config/read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace opserve::server {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file.peek() != EOF) text << file.rdbuf();  // which takes an empty file for a failure
  if (!file.is_open() || file.bad() || !text) return absl::NotFoundError(std::strerror(errno));
  return text.str();
}

}  // namespace opserve::server
