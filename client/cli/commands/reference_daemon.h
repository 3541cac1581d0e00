// A daemon of one's own that computes on this machine's processor, to compare results with.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cpp/client.h"

namespace opserve::cli {

// Runs `opserved` with the host CANN, whatever devices this machine has, on a Unix socket that only
// this user reaches; ends it when destroyed, or when this process ends.
class ReferenceDaemon {
 public:
  // Starts the opserved that is beside this program, or else the one that $PATH finds, and waits
  // until it serves. kFailedPrecondition: there is none, or it does not start; the message has its
  // own.
  static absl::StatusOr<std::unique_ptr<ReferenceDaemon>> Start();

  ~ReferenceDaemon();
  ReferenceDaemon(const ReferenceDaemon&) = delete;
  ReferenceDaemon& operator=(const ReferenceDaemon&) = delete;

  Client& client() { return *client_; }

 private:
  explicit ReferenceDaemon(std::string directory) : directory_(std::move(directory)) {}

  absl::Status Launch();
  absl::Status Connect();
  bool HasEnded();
  std::string LastWords() const;  // the last line it wrote

  const std::string directory_;  // of its socket and its log
  pid_t process_ = 0;            // 0: none
  std::unique_ptr<Client> client_;
};

}  // namespace opserve::cli
