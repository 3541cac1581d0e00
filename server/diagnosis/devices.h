// A device, tried out: opened, asked, and made to compute.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "server/device/acl/acl_library.h"
#include "server/diagnosis/report.h"
#include "server/program/operator_table.h"

namespace opserve::server {

struct DeviceTrial {
  const AclLibrary& acl;
  const OperatorTable& operators;
  int32_t device;
  uint32_t streams;                  // that the daemon will have on it
  absl::Duration execution_timeout;  // of one call
};

// Opens the device, runs every operator's golden case on it, and measures copies and launches.
// May never return where a driver's call does not: call it on a thread that can be left behind.
void CheckDevice(const DeviceTrial& trial, Report* report);

}  // namespace opserve::server
