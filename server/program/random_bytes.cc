#include "server/program/random_bytes.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "server/observability/log.h"

namespace opserve::server {

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  ssize_t got = 0;
  do {
    got = getrandom(bytes.data(), bytes.size(), 0);
  } while (got < 0 && errno == EINTR);
  // Handles and keys are secrets: a daemon without randomness must not go on.
  if (got != static_cast<ssize_t>(count)) {
    LogError("no_random_bytes", {{"error", std::strerror(errno)}});
    std::abort();
  }
  return bytes;
}

}  // namespace opserve::server
