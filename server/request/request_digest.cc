#include "server/request/request_digest.h"

#include <openssl/evp.h>

#include <memory>
#include <new>

#include "absl/strings/string_view.h"

namespace opserve::server {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    if (context_ == nullptr) throw std::bad_alloc();
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }

  void Add(const void* data, size_t bytes) { EVP_DigestUpdate(context_.get(), data, bytes); }
  // In front of parts of varying length, so that no bytes can move from one part to the next.
  void AddLength(uint64_t length) { Add(&length, sizeof(length)); }

  RequestDigest Finish() {
    RequestDigest digest;
    EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr);
    return digest;
  }

 private:
  struct Deleter {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Deleter> context_;
};

}  // namespace

RequestDigest DigestOf(absl::string_view fields, absl::Span<const codec::Payload> payloads) {
  Sha256 sha;
  sha.AddLength(fields.size());
  sha.Add(fields.data(), fields.size());
  for (const codec::Payload& payload : payloads) {
    // Only the bytes count, and not the pieces in which they came.
    sha.AddLength(payload.size);
    for (absl::string_view piece : payload.pieces) sha.Add(piece.data(), piece.size());
  }
  return sha.Finish();
}

}  // namespace opserve::server
