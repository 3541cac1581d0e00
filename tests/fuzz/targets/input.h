// Takes an input apart into the values a target needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace opserve::fuzz {

inline absl::string_view ToText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Reads from the front. Past the end there are zeros and empty texts, so that every input is
// complete.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(ToText(data, size)) {}

  bool AtEnd() const { return rest_.empty(); }
  absl::string_view Rest() const { return rest_; }

  uint8_t Byte() {
    const absl::string_view byte = Take(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }

  // Two bytes, little-endian.
  uint16_t Short() {
    const uint16_t low = Byte();
    return static_cast<uint16_t>(low | Byte() << 8);
  }

  // At most `size` bytes.
  absl::string_view Take(size_t size) {
    const absl::string_view taken = rest_.substr(0, std::min(size, rest_.size()));
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  absl::string_view rest_;
};

// A message as gRPC may deliver it: in slices of `slice_bytes` (0: in one piece).
inline grpc::ByteBuffer Delivered(absl::string_view bytes, size_t slice_bytes) {
  if (slice_bytes == 0) slice_bytes = std::max<size_t>(bytes.size(), 1);
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    const absl::string_view piece = bytes.substr(at, slice_bytes);
    slices.emplace_back(piece.data(), piece.size());
  }
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// The reverse.
inline std::string Joined(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices).ok();
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

}  // namespace opserve::fuzz
