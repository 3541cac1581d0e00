#include "server/request/request_digest.h"

#include <new>

#include "absl/container/inlined_vector.h"

namespace opserve::server {

RequestDigester::RequestDigester(absl::string_view fields, absl::Span<const uint64_t> payload_bytes)
    : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw std::bad_alloc();
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  // Lengths stand in front, so that no bytes can move from one part to the next.
  AddNumber(fields.size());
  Add(fields);
  AddNumber(payload_bytes.size());
  for (const uint64_t bytes : payload_bytes) AddNumber(bytes);
}

void RequestDigester::Add(absl::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

void RequestDigester::AddNumber(uint64_t number) {
  EVP_DigestUpdate(context_.get(), &number, sizeof(number));
}

RequestDigest RequestDigester::Finish() {
  RequestDigest digest;
  EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
  return digest;
}

RequestDigest DigestOf(absl::string_view fields, absl::Span<const codec::Payload> payloads) {
  absl::InlinedVector<uint64_t, 8> payload_bytes;
  for (const codec::Payload& payload : payloads) payload_bytes.push_back(payload.size);
  RequestDigester digester(fields, payload_bytes);
  // Only the bytes count, and not the pieces in which they came.
  for (const codec::Payload& payload : payloads) {
    for (const absl::string_view piece : payload.pieces) digester.Add(piece);
  }
  return digester.Finish();
}

}  // namespace opserve::server
