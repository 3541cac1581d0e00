#include "server/net/connection_limits.h"

#include <algorithm>

namespace opserve::server {

ConnectionSlots::Limits ConnectionLimits(const Config& config, size_t listeners) {
  const uint32_t most = config.max_connections;
  const auto limit = [](uint32_t configured, uint32_t otherwise) {
    return configured != 0 ? configured : std::max<uint32_t>(otherwise, 1);
  };
  return {.total = most,
          // The other listeners always have room, even if a flood fills one.
          .per_listener =
              limit(config.max_connections_per_listener, listeners > 1 ? most - most / 4 : most),
          .per_user = limit(config.max_connections_per_user, most / 2),
          .per_address = limit(config.max_connections_per_address, most / 2),
          .silence = config.first_call_timeout};
}

}  // namespace opserve::server
