// Files to resident tensors and back: `opserve tensor upload` and `download`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "client/cli/session.h"

namespace opserve::cli {

struct TensorUpload {
  std::string file;                             // as ReadArrayArgument takes it
  absl::Duration lease = absl::ZeroDuration();  // zero: the daemon's default
  std::optional<uint32_t> device = std::nullopt;
};

struct TensorDownload {
  std::string handle;  // as FormatHandle writes it
  std::string file;    // "-": standard output
};

// Both show a progress bar if they take long, and report the result.
std::optional<Failure> RunUpload(const TensorUpload& upload, Session& session);
std::optional<Failure> RunDownload(const TensorDownload& download, Session& session);

}  // namespace opserve::cli
