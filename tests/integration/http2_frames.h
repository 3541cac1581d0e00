// Frames of HTTP/2 as bytes, right or wrong.
#pragma once

#include <cstdint>
#include <string>

namespace opserve {

inline const std::string kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// RFC 9113, 6.
inline constexpr uint8_t kHttp2Data = 0;
inline constexpr uint8_t kHttp2Headers = 1;
inline constexpr uint8_t kHttp2Priority = 2;
inline constexpr uint8_t kHttp2ResetStream = 3;
inline constexpr uint8_t kHttp2Settings = 4;
inline constexpr uint8_t kHttp2Ping = 6;
inline constexpr uint8_t kHttp2WindowUpdate = 8;
inline constexpr uint8_t kHttp2Continuation = 9;
inline constexpr uint8_t kHttp2EndStream = 1;
inline constexpr uint8_t kHttp2EndHeaders = 4;

inline std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

inline std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream,
                              const std::string& payload) {
  return BigEndian(payload.size(), 3) + BigEndian(type, 1) + BigEndian(flags, 1) +
         BigEndian(stream, 4) + payload;
}

// RFC 7541, 6.2.2: a literal, not indexed, with a new name; short enough for lengths of one byte.
inline std::string Http2Header(const std::string& name, const std::string& value) {
  return BigEndian(0, 1) + BigEndian(name.size(), 1) + name + BigEndian(value.size(), 1) + value;
}

}  // namespace opserve
