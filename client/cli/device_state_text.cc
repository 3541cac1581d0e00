#include "client/cli/device_state_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"

namespace opserve::cli {

std::string StateText(v1::DeviceStatus::State state) {
  const std::string& name = v1::DeviceStatus::State_Name(state);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "STATE_"));
}

}  // namespace opserve::cli
