#include "client/cpp/credentials.h"

#include <fstream>
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

// gRPC would take an unreadable file for one that is yet to come, and each call would wait for it.
absl::Status CheckReadable(absl::string_view what, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path);
  if (file.peek() != std::ifstream::traits_type::eof()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " \"", path, "\" ", file.is_open() ? "is empty" : "cannot be read"));
}

absl::Status CheckTls(const Target& target, const TlsOptions& tls) {
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError(
        tls.key_file.empty()
            ? absl::StrCat("the certificate file \"", tls.cert_file, "\" without a key file")
            : absl::StrCat("the key file \"", tls.key_file, "\" without a certificate file"));
  }
  absl::Status status = CheckReadable("the file of trusted certificates", tls.ca_file);
  status.Update(CheckReadable("the certificate file", tls.cert_file));
  status.Update(CheckReadable("the key file", tls.key_file));
  if (!status.ok()) return status;
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
  if (has_authorities) watched.watch_root_certs();
  if (has_certificate) watched.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(watched);
}

}  // namespace opserve
