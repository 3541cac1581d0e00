#include "server/config/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// Editors truncate a file and then write it, in several steps, which take less than this.
constexpr absl::Duration kRest = absl::Milliseconds(100);
constexpr int kMaxAttempts = 40;

absl::Status SystemError() { return absl::NotFoundError(std::strerror(errno)); }

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// By system calls, so that the text is that of the descriptor that was examined.
absl::StatusOr<std::string> ReadAll(int descriptor) {
  std::string text;
  char buffer[16384];
  ssize_t count = 0;
  while ((count = read(descriptor, buffer, sizeof(buffer))) != 0) {
    if (count > 0) {
      text.append(buffer, static_cast<size_t>(count));
    } else if (errno != EINTR) {
      return SystemError();
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file.peek() != EOF) text << file.rdbuf();  // which takes an empty file for a failure
  if (!file.is_open() || file.bad() || !text) return absl::NotFoundError(std::strerror(errno));
  return text.str();
}

absl::StatusOr<std::string> ReadFileAtRest(const std::string& path,
                                           absl::FunctionRef<void(absl::Duration)> sleep) {
  for (int i = 0; i < kMaxAttempts; ++i) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return SystemError();
    const auto close_it = absl::MakeCleanup([descriptor] { close(descriptor); });
    struct stat before = {};
    if (fstat(descriptor, &before) != 0) return SystemError();
    OPSERVE_ASSIGN_OR_RETURN(std::string text, ReadAll(descriptor));
    if (!S_ISREG(before.st_mode)) return text;

    // A change in this very moment may leave the time as it is, since file systems count in ticks;
    // and a writer that has truncated the file may be about to write it. So the file is looked at
    // again when it has been at rest for a while. Clocks of other machines may be ahead.
    const absl::Duration age = absl::Now() - absl::TimeFromTimespec(before.st_mtim);
    sleep(std::clamp(kRest - age, absl::ZeroDuration(), kRest));
    // By its path, for a new file may have taken the place of the one that was read.
    struct stat after = {};
    if (stat(path.c_str(), &after) == 0 && IsSame(before, after)) return text;
  }
  return absl::NotFoundError("it is written all the time");
}

}  // namespace opserve::server
