// The frames of a session as proto/SESSION.md has them, read from contiguous bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace opserve::fuzz {

struct PlainFrame {
  uint64_t kind = 0;
  uint64_t number = 0;
  absl::string_view body;
};

inline uint64_t NumberAt(absl::string_view bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i > 0; --i) number = number << 8 | static_cast<uint8_t>(bytes[at + i - 1]);
  return number;
}

// The content of a message's only field.
inline std::optional<absl::string_view> PlainField(absl::string_view message) {
  if (message.empty()) return message;
  if (message[0] != '\x0a') return std::nullopt;
  unsigned __int128 size = 0;
  for (size_t i = 1; i < message.size() && i <= 10; ++i) {
    const auto byte = static_cast<uint8_t>(message[i]);
    size |= static_cast<unsigned __int128>(byte & 0x7f) << (7 * (i - 1));
    if (byte >= 0x80) continue;
    if (size != message.size() - i - 1) return std::nullopt;
    return message.substr(i + 1);
  }
  return std::nullopt;
}

// The next frame is taken off `frames`. Nothing: there is none, or it is wrong.
inline std::optional<PlainFrame> PlainNext(absl::string_view* frames) {
  if (frames->size() < 16) return std::nullopt;
  const uint64_t size = NumberAt(*frames, 0, 4);
  const PlainFrame frame = {NumberAt(*frames, 4, 1), NumberAt(*frames, 8, 8),
                            frames->substr(16, size)};
  const bool is_right = frame.kind >= 1 && frame.kind <= 12 && NumberAt(*frames, 5, 3) == 0 &&
                        frame.body.size() == size;
  if (!is_right) return std::nullopt;
  frames->remove_prefix(16 + size);
  return frame;
}

}  // namespace opserve::fuzz
