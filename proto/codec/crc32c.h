// CRC32C (Castagnoli), which guards the chunks of uploads and downloads.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace opserve::codec {

// Extends `crc`, the checksum of some bytes, to these bytes followed by `data`. Start with 0:
// Crc32c("") is 0, Crc32c("123456789") is 0xe3069283.
uint32_t Crc32c(absl::string_view data, uint32_t crc = 0);

}  // namespace opserve::codec
