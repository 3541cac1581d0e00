// Internal: the requests of opserve/v1/shared_memory.proto over their socket.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/shared_memory.h"
#include "opserve/v1/shared_memory.pb.h"

namespace opserve {

// Thread-safe.
class SharedMemoryConnection {
 public:
  // `path`: of the daemon's socket for calls. kUnavailable: no daemon answers beside it.
  static absl::StatusOr<std::shared_ptr<SharedMemoryConnection>> Open(
      const std::string& path, const SharedMemoryOptions& options);
  ~SharedMemoryConnection();
  SharedMemoryConnection(const SharedMemoryConnection&) = delete;
  SharedMemoryConnection& operator=(const SharedMemoryConnection&) = delete;

  // Sends `request`, with a descriptor unless it is -1, and waits for the answer. A connection on
  // which that failed is not used again.
  absl::StatusOr<v1::SharedMemoryResponse> Call(v1::SharedMemoryRequest request, int fd = -1)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A number for a region that no other has.
  uint64_t NextRegion() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  SharedMemoryConnection(int socket, std::string token)
      : socket_(socket), token_(std::move(token)) {}
  absl::Status Send(const v1::SharedMemoryRequest& request, int fd)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::SharedMemoryResponse> Receive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int socket_;
  absl::Mutex mutex_;                          // one request at a time
  std::string token_ ABSL_GUARDED_BY(mutex_);  // until it was sent
  uint64_t regions_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_broken_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace opserve
