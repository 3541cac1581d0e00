// The limits on clients' connections that the configuration gives.
#pragma once

#include "server/config/config.h"
#include "server/net/connection_slots.h"

namespace opserve::server {

// `listeners`: the number that share max_connections. A limit of 0 in `config` becomes its default,
// which server_config.proto describes.
ConnectionSlots::Limits ConnectionLimits(const Config& config, size_t listeners);

}  // namespace opserve::server
