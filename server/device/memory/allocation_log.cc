#include "server/device/memory/allocation_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace opserve::server {
namespace {

// A stream that is gone may give its address to another; more than a device has at one time would
// be those of a daemon that makes its lanes anew again and again.
constexpr size_t kMaxStreams = 1 << 16;

constexpr absl::string_view kFull = "full\n";

}  // namespace

absl::StatusOr<std::unique_ptr<AllocationLog>> AllocationLog::Create(const std::string& path,
                                                                     uint64_t max_bytes) {
  // A new file, so that the rights and links of an old one do not matter.
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return absl::ErrnoToStatus(errno, absl::StrCat("allocation_log: cannot replace ", path));
  }
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("allocation_log: cannot write ", path));
  }
  std::FILE* const file = fdopen(descriptor, "w");
  if (file == nullptr) {
    close(descriptor);
    return absl::ErrnoToStatus(errno, absl::StrCat("allocation_log: cannot write ", path));
  }
  auto log = std::unique_ptr<AllocationLog>(new AllocationLog(file, max_bytes));
  log->Write(kAllocationLogHeader);
  return log;
}

void AllocationLog::Write(absl::string_view line) {
  if (file_ == nullptr) return;
  // Room for the last line is always left.
  if (line.size() + 1 + kFull.size() > left_bytes_) {
    std::fwrite(kFull.data(), 1, kFull.size(), file_.get());
    file_.reset();
    return;
  }
  left_bytes_ -= line.size() + 1;
  const bool is_written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                          std::fputc('\n', file_.get()) != EOF;
  if (!is_written) file_.reset();  // the disk is full: what is there can still be replayed
}

void AllocationLog::WriteLending(absl::string_view source, const BlockRequest& request) {
  Write(absl::StrCat(source, " ", request.requested_bytes, " ", request.least_bytes, " ",
                     request.class_bytes, " ", request.most_bytes, " ", NumberOf(request.stream),
                     " ", request.tenant));
}

uint64_t AllocationLog::NumberOf(aclrtStream stream) {
  if (stream == nullptr) return 0;
  // The numbers end here, so the log does, too.
  if (streams_.size() >= kMaxStreams) file_.reset();
  return streams_.try_emplace(stream, streams_.size() + 1).first->second;
}

}  // namespace opserve::server
