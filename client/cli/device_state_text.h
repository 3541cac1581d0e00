// States of devices for people.
#pragma once

#include <string>

#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

// "ready", "quarantined"
std::string StateText(v1::DeviceStatus::State state);

}  // namespace opserve::cli
