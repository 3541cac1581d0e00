// The digest by which two requests are told apart.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/codec/payloads.h"

namespace opserve::server {

using RequestDigest = std::array<uint8_t, 32>;

// SHA-256 over the request's fields (GivenRequest::fields) and its payloads. Equal requests have
// equal digests whatever message they came in, within one run of the daemon. Reads every payload
// once, at about 1 ms per MiB without SHA instructions.
RequestDigest DigestOf(absl::string_view fields, absl::Span<const codec::Payload> payloads);

}  // namespace opserve::server
