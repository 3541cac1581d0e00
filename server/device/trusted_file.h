// Files that decide which code runs in the daemon: opened only if no other user can change them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

// A folder and the files in it. Rights are read from the opened objects, so that a change of paths
// between check and use changes nothing. Movable.
class TrustedFolder {
 public:
  // kNotFound: it cannot be opened.  kPermissionDenied: it belongs to neither root nor the daemon's
  // user, or its group or others may write to it: they could put other files in place of these.
  static absl::StatusOr<TrustedFolder> Open(const std::string& path);
  ~TrustedFolder();
  TrustedFolder(TrustedFolder&& other) noexcept;
  TrustedFolder& operator=(TrustedFolder&&) = delete;

  // Names in the folder, in alphabetical order, that end with `suffix` and begin with no '.', of
  // whatever kind: OpenFile refuses those that are no regular files. kNotFound: the folder cannot
  // be read.  kResourceExhausted: more than `limit`.
  absl::StatusOr<std::vector<std::string>> List(absl::string_view suffix, size_t limit) const;

  // A descriptor of the file of that name, which the caller closes. The name has no '/'. Symbolic
  // links are followed: the rights of the file that they lead to count. kNotFound,
  // kPermissionDenied likewise, also if it is no regular file.
  absl::StatusOr<int> OpenFile(const std::string& name) const;

  // The contents of a file. Besides: kResourceExhausted: it has more than `max_bytes`.
  absl::StatusOr<std::string> ReadFile(const std::string& name, size_t max_bytes) const;

  // The path of a file, for messages.
  std::string PathOf(absl::string_view name) const;

 private:
  TrustedFolder(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // -1: moved from
};

}  // namespace opserve::server
