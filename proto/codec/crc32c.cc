#include "proto/codec/crc32c.h"

#include <algorithm>
#include <climits>

#include "isa-l/crc.h"

namespace opserve::codec {

uint32_t Crc32c(absl::string_view data, uint32_t crc) {
  while (!data.empty()) {
    const auto piece = std::min<size_t>(data.size(), INT_MAX);
    // ISA-L leaves the inversion before and after to its caller, and does not change the data.
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    crc = ~crc32_iscsi(bytes, static_cast<int>(piece), ~crc);
    data.remove_prefix(piece);
  }
  return crc;
}

}  // namespace opserve::codec
