#include "server/net/client_hello.h"

namespace opserve::server {
namespace {

// RFC 8446, 5.1 and 4: type, version (2 bytes) and length (2) of the record; type and length (3) of
// the message; its version (2); the number.
constexpr uint8_t kHandshakeRecord = 22;
constexpr uint8_t kMajorVersion = 3;
constexpr uint8_t kClientHello = 1;
constexpr size_t kRecordHeaderBytes = 5;
constexpr size_t kRandomAt = 11;

}  // namespace

ClientHelloReader::State ClientHelloReader::Read(absl::string_view bytes) {
  for (size_t i = 0; i < bytes.size() && state_ == State::kReading; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const size_t at = read_++;
    const bool is_wrong = (at == 0 && byte != kHandshakeRecord) ||
                          (at == 1 && byte != kMajorVersion) ||
                          (at == kRecordHeaderBytes && byte != kClientHello);
    if (at == 3 || at == 4) record_bytes_ = record_bytes_ << 8 | byte;
    const bool is_short =
        at == kRecordHeaderBytes && record_bytes_ < kRandomAt + random_.size() - kRecordHeaderBytes;
    if (is_wrong || is_short) state_ = State::kMalformed;
    if (at >= kRandomAt) random_[at - kRandomAt] = byte;
    if (read_ == kRandomAt + random_.size()) state_ = State::kDone;
  }
  return state_;
}

}  // namespace opserve::server
