// The limits on clients' connections that the configuration gives.
#pragma once

#include "server/access/connection_slots.h"
#include "server/config/config.h"

namespace opserve::server {

// `listeners`: the number that share max_connections. A limit of 0 in `config` becomes its default,
// which server_config.proto describes.
ConnectionSlots::Limits ConnectionLimits(const Config& config, size_t listeners);

}  // namespace opserve::server
