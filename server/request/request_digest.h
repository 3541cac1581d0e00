// The digest by which two requests are told apart.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/codec/payloads.h"

namespace opserve::server {

using RequestDigest = std::array<uint8_t, 32>;

// SHA-256 over the request's fields (GivenRequest::fields) and its payloads, as these come. Equal
// requests have equal digests whatever message they came in, within one run of the daemon. Takes
// about 1 ms per MiB without SHA instructions. Not thread-safe.
class RequestDigester {
 public:
  // `payload_bytes`: the size of each payload.
  RequestDigester(absl::string_view fields, absl::Span<const uint64_t> payload_bytes);

  // The next bytes of the payloads, one after the other.
  void Add(absl::string_view bytes);
  // Called once, after the last byte.
  RequestDigest Finish();

 private:
  struct Deleter {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  void AddNumber(uint64_t number);

  std::unique_ptr<EVP_MD_CTX, Deleter> context_;
};

// The same of payloads that are all there.
RequestDigest DigestOf(absl::string_view fields, absl::Span<const codec::Payload> payloads);

}  // namespace opserve::server
