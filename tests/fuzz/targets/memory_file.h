// A file without a disk, for what is read by its path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/targets/check.h"

namespace opserve::fuzz {

class MemoryFile {
 public:
  explicit MemoryFile(absl::string_view content = {}) : fd_(memfd_create("input", MFD_CLOEXEC)) {
    const auto written = write(fd_, content.data(), content.size());
    Check(written == static_cast<ssize_t>(content.size()), "the input can be written");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return absl::StrCat("/proc/self/fd/", fd_); }

 private:
  const int fd_;
};

}  // namespace opserve::fuzz
