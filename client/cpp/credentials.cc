#include "client/cpp/credentials.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <climits>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

// How often the files are looked at.
constexpr unsigned kRefreshSeconds = 5;

template <typename T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* object) const { kFree(object); }
};
using Bio = std::unique_ptr<BIO, Freer<BIO, BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509, X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY, EVP_PKEY_free>>;

// OpenSSL would ask at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

// "" if the text has certificates and nothing broken among them, else the fault.
std::string ProblemOfCertificates(BIO* text) {
  int count = 0;
  ERR_clear_error();
  while (Certificate(PEM_read_bio_X509(text, nullptr, &NoPassphrase, nullptr))) ++count;
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  // The reader stops at the first thing that is no certificate; the end of the file gives this
  // reason.
  const bool is_at_end = ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (count == 0 && is_at_end) return "has no certificate in PEM";
  return is_at_end ? "" : absl::StrCat("has a broken certificate, number ", count + 1);
}

std::string ProblemOfKey(BIO* text) {
  const PrivateKey key(PEM_read_bio_PrivateKey(text, nullptr, &NoPassphrase, nullptr));
  ERR_clear_error();
  return key != nullptr ? "" : "has no private key in PEM that can be read without a passphrase";
}

// gRPC would take an unusable file for one that is yet to come: each call would wait for it, and
// then say that the daemon cannot be reached.
absl::Status CheckFile(absl::string_view what, const std::string& path,
                       std::string (*problem_of)(BIO*)) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::string problem;
  if (!file.is_open() || file.bad()) {
    problem = "cannot be read";
  } else if (text.empty()) {
    problem = "is empty";
  } else if (text.size() > INT_MAX) {
    problem = "is too large";
  } else {
    const Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    problem = problem_of(bio.get());
  }
  if (problem.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " \"", path, "\" ", problem));
}

absl::Status CheckTls(const Target& target, const TlsOptions& tls) {
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError(
        tls.key_file.empty()
            ? absl::StrCat("the certificate file \"", tls.cert_file, "\" without a key file")
            : absl::StrCat("the key file \"", tls.key_file, "\" without a certificate file"));
  }
  absl::Status status =
      CheckFile("the file of trusted certificates", tls.ca_file, &ProblemOfCertificates);
  status.Update(CheckFile("the certificate file", tls.cert_file, &ProblemOfCertificates));
  status.Update(CheckFile("the key file", tls.key_file, &ProblemOfKey));
  if (!status.ok()) return status;
  // Of a list gRPC takes the text as the name, which no certificate has.
  if (!target.authority.empty() && tls.server_name_override.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("TLS to a list of addresses (", target.uri,
                     ") needs the server name that their certificates have"));
  }
  return absl::OkStatus();
}

// The token itself is in no message: those end in logs.
absl::Status CheckToken(const Target& target, const ConnectOptions& options) {
  for (size_t i = 0; i < options.token.size(); ++i) {
    // gRPC aborts the program over metadata that HTTP/2 does not allow.
    if (!absl::ascii_isgraph(static_cast<unsigned char>(options.token[i]))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the token has a byte that is not a printable ASCII character, at position ", i));
    }
  }
  if (options.token.empty() || options.tls || target.is_local) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("without TLS, a token is sent to Unix sockets and loopback addresses only, ",
                   "since everyone on the way to ", target.uri, " could read it"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(
    const Target& target, const ConnectOptions& options) {
  OPSERVE_RETURN_IF_ERROR(CheckToken(target, options));
  if (!options.tls) return grpc::InsecureChannelCredentials();
  const TlsOptions& tls = *options.tls;
  OPSERVE_RETURN_IF_ERROR(CheckTls(target, tls));

  // Not grpc::SslCredentials, which keep the certificates that they were made with: a renewed one
  // would need another channel.
  grpc::experimental::TlsChannelCredentialsOptions watched;
  const bool has_certificate = !tls.cert_file.empty();
  const bool has_authorities = !tls.ca_file.empty();
  if (has_certificate || has_authorities) {
    watched.set_certificate_provider(
        std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
            tls.key_file, tls.cert_file, tls.ca_file, kRefreshSeconds));
  }
  // Without authorities of its own the connection trusts the system's.
  if (has_authorities) watched.watch_root_certs();
  if (has_certificate) watched.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(watched);
}

}  // namespace opserve
