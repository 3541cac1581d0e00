// Numbers of bytes as people write them.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace opserve::server {

// "512 B", "1.5 GiB".
inline std::string SizeText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 ? 0 : 1, value, kUnits[unit]);
}

}  // namespace opserve::server
