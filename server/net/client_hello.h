// Reads the random number with which a TLS client begins, by which the bytes of a socket and the
// TLS session that decrypts them are known to be of one connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace opserve::server {

using ClientRandom = std::array<uint8_t, 32>;

// Used by one thread at a time.
class ClientHelloReader {
 public:
  enum class State : uint8_t { kReading, kDone, kMalformed };

  // The next bytes of the connection, cut anywhere; those behind the number are not looked at.
  // kMalformed: no ClientHello, or one that is split into records of less than 38 bytes, which no
  // library does.
  State Read(absl::string_view bytes);
  State state() const { return state_; }

  // After kDone.
  const ClientRandom& random() const { return random_; }

 private:
  State state_ = State::kReading;
  size_t read_ = 0;
  uint32_t record_bytes_ = 0;
  ClientRandom random_ = {};
};

}  // namespace opserve::server
