#include "server/net/revocations.h"

#include <openssl/asn1.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/net/pem.h"

namespace opserve::server {
namespace {

// A serial number is unique for its issuer only.
std::string KeyOf(const X509_NAME* issuer, const ASN1_INTEGER* serial) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_NAME(issuer, &der);
  std::string key(reinterpret_cast<const char*>(der), std::max(size, 0));
  OPENSSL_free(der);
  const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial));
  key.append(bytes, ASN1_STRING_length(serial));
  return key;
}

bool IsSignedByOneOf(X509_CRL* list, const std::vector<Certificate>& authorities) {
  return std::any_of(authorities.begin(), authorities.end(), [list](const Certificate& authority) {
    // The issuer's name alone could be claimed by anybody.
    return X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(authority.get())) == 0 &&
           X509_CRL_verify(list, X509_get0_pubkey(authority.get())) == 1;
  });
}

}  // namespace

absl::StatusOr<Revocations::List> Revocations::Parse(const std::string& crl,
                                                     const std::string& client_ca) {
  List result;
  if (crl.empty()) return result;
  const std::vector<Certificate> authorities = ReadCertificates(client_ca);
  const std::vector<RevocationList> lists = ReadRevocationLists(crl);
  if (lists.empty()) return absl::InvalidArgumentError("no revocation list in PEM");
  for (const RevocationList& list : lists) {
    if (!IsSignedByOneOf(list.get(), authorities)) {
      return absl::InvalidArgumentError("a list that none of the client authorities has signed");
    }
    // Null for a list without entries, of which the number is -1.
    const STACK_OF(X509_REVOKED)* revoked = X509_CRL_get_REVOKED(list.get());
    for (int i = 0; i < sk_X509_REVOKED_num(revoked); ++i) {
      result.insert(KeyOf(X509_CRL_get_issuer(list.get()),
                          X509_REVOKED_get0_serialNumber(sk_X509_REVOKED_value(revoked, i))));
    }
  }
  return result;
}

void Revocations::Set(List list) {
  absl::MutexLock lock(&mutex_);
  list_ = std::move(list);
}

bool Revocations::Contains(absl::string_view chain) const {
  const std::vector<Certificate> certificates = ReadCertificates(chain);
  absl::ReaderMutexLock lock(&mutex_);
  // Verified, but not readable here: refused rather than trusted.
  if (certificates.empty()) return true;
  return std::any_of(certificates.begin(), certificates.end(), [this](const Certificate& one) {
    mutex_.AssertReaderHeld();
    return list_.contains(
        KeyOf(X509_get_issuer_name(one.get()), X509_get0_serialNumber(one.get())));
  });
}

}  // namespace opserve::server
