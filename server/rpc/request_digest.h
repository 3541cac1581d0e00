// The digest by which two requests are told apart.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "google/protobuf/message_lite.h"
#include "proto/codec/payload_message.h"

namespace opserve::server {

using RequestDigest = std::array<uint8_t, 32>;

// SHA-256 over the request's fields and its payloads. Equal requests have equal digests however
// they were encoded and whatever message they came in, within one run of the daemon. Reads every
// payload once, at about 1 ms per MiB without SHA instructions.
RequestDigest DigestOf(const google::protobuf::MessageLite& header,
                       absl::Span<const codec::Payload> payloads);

}  // namespace opserve::server
