// The limits on clients' connections that the configuration gives.
#pragma once

#include "server/access/connection_slots.h"
#include "server/config/config.h"

namespace opserve::server {

// `listeners`: how many share max_connections. Limits that are 0 in `config` are what
// server_config.proto says of that.
ConnectionSlots::Limits ConnectionLimits(const Config& config, size_t listeners);

}  // namespace opserve::server
