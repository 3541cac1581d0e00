// The files of the TLS listeners: read again when they change, used without a restart, and never
// replaced by broken ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "server/config/config.h"
#include "server/net/file_descriptor.h"
#include "server/net/revocations.h"

namespace opserve::server {

// Thread-safe.
class TlsFiles {
 public:
  // Reads and checks the files, and rereads them every files.reload_interval in a thread of its
  // own. kInvalidArgument: names the file and its fault.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Open(const TlsFilesConfig& files);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  // Credentials that always use the files as last read; they may outlive this object. New
  // connections see new files within two seconds of their reading.
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;

  // Looks at the files now. On an error, which is logged and counted, the old contents of all files
  // stay in use. kInvalidArgument: as Open. kResourceExhausted: no memory for the new ones.
  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mutex_);

  // When the server's certificate expires. Readings that failed.
  absl::Time expiry() const { return absl::FromUnixSeconds(expiry_seconds_.load()); }
  uint64_t failures() const { return failures_.load(std::memory_order_relaxed); }

 private:
  struct Contents {
    std::string cert, key, client_ca, crl;
    friend bool operator==(const Contents&, const Contents&) = default;
  };

  explicit TlsFiles(const TlsFilesConfig& files);
  absl::StatusOr<Contents> Read() const;
  absl::Status Use(const Contents& contents) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch();

  const TlsFilesConfig files_;
  // The files for gRPC, in memory: certificate and key as one, so that they always match. Never
  // changed, only replaced under the same numbers.
  FileDescriptor identity_;
  FileDescriptor roots_;
  const std::shared_ptr<Revocations> revocations_;
  std::atomic<int64_t> expiry_seconds_ = 0;
  std::atomic<uint64_t> failures_ = 0;

  absl::Mutex mutex_;
  Contents contents_ ABSL_GUARDED_BY(mutex_);  // in use
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread watcher_;  // last: uses all of the above
};

}  // namespace opserve::server
