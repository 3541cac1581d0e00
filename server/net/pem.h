// Certificates and keys in PEM, by OpenSSL.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace opserve::server {

template <auto kFree>
struct OpensslDelete {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, OpensslDelete<&BIO_free_all>>;
using Certificate = std::unique_ptr<X509, OpensslDelete<&X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpensslDelete<&EVP_PKEY_free>>;
using RevocationList = std::unique_ptr<X509_CRL, OpensslDelete<&X509_CRL_free>>;

// All blocks of one kind in `text`, in order, passing over other blocks; an unreadable block ends
// the list.
std::vector<Certificate> ReadCertificates(absl::string_view text);
std::vector<RevocationList> ReadRevocationLists(absl::string_view text);

// The first private key, null if there is none. One that needs a passphrase cannot be read.
PrivateKey ReadPrivateKey(absl::string_view text);

// OpenSSL's last complaint, and forgets all.
std::string TakeOpensslError();

}  // namespace opserve::server
