#include "server/net/tls_files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "proto/status/status_macros.h"
#include "server/config/read_file.h"
#include "server/net/pem.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

// Period at which gRPC rereads the files that we wrote; the shortest it allows.
constexpr unsigned kProviderIntervalSeconds = 1;

// After gRPC has verified a client's chain: not if it was revoked.
class NotRevoked final : public ExternalCertificateVerifier {
 public:
  // Called on gRPC's threads, during handshakes.
  explicit NotRevoked(std::shared_ptr<Revocations> revocations)
      : revocations_(std::move(revocations)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    // A server's chain is without the client's own certificate.
    std::string certificates(request->peer_cert().data(), request->peer_cert().size());
    certificates.append(request->peer_cert_full_chain().data(),
                        request->peer_cert_full_chain().size());
    if (revocations_->Contains(certificates)) {
      *status = {grpc::StatusCode::UNAUTHENTICATED, "the certificate is revoked"};
    }
    return true;  // at once
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::shared_ptr<Revocations> revocations_;
};

absl::Status Broken(const std::string& path, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
}

absl::StatusOr<std::string> ReadIfNamed(const std::string& path) {
  if (path.empty()) return "";
  absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return Broken(path, text.status().message());
  return text;
}

absl::StatusOr<absl::Time> ExpiryOf(X509* certificate) {
  tm time = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &time) != 1) {
    return absl::InvalidArgumentError("a certificate without an end");
  }
  return absl::FromUnixSeconds(timegm(&time));
}

std::string PathOf(const FileDescriptor& fd) { return absl::StrCat("/proc/self/fd/", fd.get()); }

absl::Status CannotKeep() {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot keep the TLS files in memory: ", std::strerror(errno)));
}

absl::StatusOr<FileDescriptor> MakeMemoryFile(const std::string& text) {
  FileDescriptor file(memfd_create("opserve-tls", MFD_CLOEXEC));
  if (file.get() < 0 ||
      pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return CannotKeep();
  }
  return file;
}

// Puts `fresh` under the number of `*file`, by which gRPC opens it anew each time it reads. A
// reader that has the old file open reads that to its end.
absl::Status PutInPlace(FileDescriptor fresh, FileDescriptor* file) {
  if (file->get() < 0) {
    *file = std::move(fresh);  // the first one
    return absl::OkStatus();
  }
  return dup3(fresh.get(), file->get(), O_CLOEXEC) < 0 ? CannotKeep() : absl::OkStatus();
}

}  // namespace

TlsFiles::TlsFiles(const TlsFilesConfig& files)
    : files_(files), revocations_(std::make_shared<Revocations>()) {}

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Open(const TlsFilesConfig& config) {
  auto files = std::unique_ptr<TlsFiles>(new TlsFiles(config));
  // The first reading decides whether the daemon starts.
  OPSERVE_RETURN_IF_ERROR(files->Reload());
  files->watcher_ = std::thread([files = files.get()] { files->Watch(); });
  return files;
}

TlsFiles::~TlsFiles() {
  {
    absl::MutexLock lock(&mutex_);
    is_closing_ = true;
  }
  if (watcher_.joinable()) watcher_.join();
}

absl::StatusOr<TlsFiles::Contents> TlsFiles::Read() const {
  Contents contents;
  OPSERVE_ASSIGN_OR_RETURN(contents.cert, ReadIfNamed(files_.cert));
  OPSERVE_ASSIGN_OR_RETURN(contents.key, ReadIfNamed(files_.key));
  OPSERVE_ASSIGN_OR_RETURN(contents.client_ca, ReadIfNamed(files_.client_ca));
  OPSERVE_ASSIGN_OR_RETURN(contents.crl, ReadIfNamed(files_.crl));
  return contents;
}

// gRPC (1.51) hands files on unchecked: a broken pair would refuse all clients. It takes revocation
// lists only as a directory of hashed names, revokes nothing where it cannot read one, and refuses
// all clients of an authority with a list that is out of date.
absl::Status TlsFiles::Use(const Contents& contents) {
  const std::vector<Certificate> chain = ReadCertificates(contents.cert);
  if (chain.empty()) return Broken(files_.cert, "no certificate in PEM");
  const PrivateKey key = ReadPrivateKey(contents.key);
  if (key == nullptr) return Broken(files_.key, TakeOpensslError());
  if (X509_check_private_key(chain.front().get(), key.get()) != 1) {
    TakeOpensslError();
    return Broken(files_.key, absl::StrCat("not the key of ", files_.cert));
  }
  OPSERVE_ASSIGN_OR_RETURN(const absl::Time expiry, ExpiryOf(chain.front().get()));
  // Every client would refuse it.
  if (expiry <= absl::Now()) {
    return Broken(files_.cert, absl::StrCat("expired at ", absl::FormatTime(expiry)));
  }
  if (!files_.client_ca.empty() && ReadCertificates(contents.client_ca).empty()) {
    return Broken(files_.client_ca, "no certificate in PEM");
  }
  absl::StatusOr<Revocations::List> revoked = Revocations::Parse(contents.crl, contents.client_ca);
  if (!revoked.ok()) return Broken(files_.crl, revoked.status().message());

  // Both files are complete before either is used: there may be no memory for the second.
  OPSERVE_ASSIGN_OR_RETURN(FileDescriptor identity,
                           MakeMemoryFile(absl::StrCat(contents.key, "\n", contents.cert)));
  OPSERVE_ASSIGN_OR_RETURN(FileDescriptor roots, MakeMemoryFile(contents.client_ca));
  // From here on the new contents are used. A system that permits the first change of a descriptor
  // permits the second, and neither takes memory.
  OPSERVE_RETURN_IF_ERROR(PutInPlace(std::move(identity), &identity_));
  OPSERVE_RETURN_IF_ERROR(PutInPlace(std::move(roots), &roots_));
  revocations_->Set(*std::move(revoked));
  expiry_seconds_.store(absl::ToUnixSeconds(expiry));
  contents_ = contents;
  return absl::OkStatus();
}

absl::Status TlsFiles::Reload() {
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<Contents> contents = Read();
  // Most looks find the files unchanged.
  if (contents.ok() && *contents == contents_) return absl::OkStatus();
  const absl::Status status = contents.ok() ? Use(*contents) : contents.status();
  if (status.ok()) {
    LogInfo("tls_files_read", {{"expiry", absl::FormatTime(expiry(), absl::UTCTimeZone())}});
  } else {
    failures_.fetch_add(1, std::memory_order_relaxed);
    LogError("tls_files_broken", {{"error", std::string(status.message())}});
  }
  return status;
}

void TlsFiles::Watch() {
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&is_closing_), files_.reload_interval)) return;
    }
    Reload().IgnoreError();  // logged and counted
  }
}

std::shared_ptr<grpc::ServerCredentials> TlsFiles::Credentials() const {
  const bool wants_certificates = !files_.client_ca.empty();
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      PathOf(identity_), PathOf(identity_), wants_certificates ? PathOf(roots_) : "",
      kProviderIntervalSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  // Clients' certificates are no hosts', so names of hosts say nothing about them.
  options.set_check_call_host(false);
  if (wants_certificates) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.set_certificate_verifier(ExternalCertificateVerifier::Create<NotRevoked>(revocations_));
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace opserve::server
