// A connection to a daemon that carries bytes as they are: over a Unix socket, TCP or TLS.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/net/file_descriptor.h"

namespace opserve {

// A port of 127.0.0.1 on which nothing listens now.
int UnusedPort();

// Where a daemon listens.
struct WireTarget {
  std::string unix_path = {};
  int port = 0;  // of 127.0.0.1, if there is no path
  bool has_tls = false;
};

// Used by one thread.
class Wire {
 public:
  // Aborts the test program if nothing listens there.
  explicit Wire(const WireTarget& target);
  // Ends the connection.
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Throws away what the daemon sends, in a thread, from now on.
  void DiscardAnswers();

  // False: the daemon has ended the connection.
  bool Send(absl::string_view bytes);

 private:
  struct SslDeleter {
    void operator()(SSL* session) const { SSL_free(session); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  bool BeginTls();
  // Of a session that another thread may be using, on a socket that does not block: the result, or
  // 0 if the socket has to become ready first.
  int TryWrite(absl::string_view bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  int TryRead(char* buffer, int capacity) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitSocket(short events) const;

  server::FileDescriptor socket_;
  std::unique_ptr<SSL_CTX, SslDeleter> context_;
  absl::Mutex mutex_;
  std::unique_ptr<SSL, SslDeleter> session_ ABSL_PT_GUARDED_BY(mutex_);  // null: plaintext
  std::atomic<bool> is_over_ = false;
  std::thread reader_;
};

}  // namespace opserve
