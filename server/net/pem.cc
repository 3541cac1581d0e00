#include "server/net/pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>

namespace opserve::server {
namespace {

// The daemon has no terminal at which to type a passphrase.
int NoPassphrase(char*, int, int, void*) { return -1; }

Bio ReadOnly(absl::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

template <typename Owner, auto kRead>
std::vector<Owner> ReadAll(absl::string_view text) {
  std::vector<Owner> all;
  const Bio bio = ReadOnly(text);
  while (Owner next{kRead(bio.get(), nullptr, &NoPassphrase, nullptr)}) {
    all.push_back(std::move(next));
  }
  // The end of the text is an error for OpenSSL, which later calls must not find.
  ERR_clear_error();
  return all;
}

}  // namespace

std::vector<Certificate> ReadCertificates(absl::string_view text) {
  return ReadAll<Certificate, &PEM_read_bio_X509>(text);
}

std::vector<RevocationList> ReadRevocationLists(absl::string_view text) {
  return ReadAll<RevocationList, &PEM_read_bio_X509_CRL>(text);
}

PrivateKey ReadPrivateKey(absl::string_view text) {
  return PrivateKey(PEM_read_bio_PrivateKey(ReadOnly(text).get(), nullptr, &NoPassphrase, nullptr));
}

std::string TakeOpensslError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "not in PEM" : reason;
}

}  // namespace opserve::server
