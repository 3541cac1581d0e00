#include "server/device/acl/library_loader.h"

#include <dlfcn.h>

#include <filesystem>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// glibc: "libx.so.1: cannot open shared object file: No such file or directory".
constexpr absl::string_view kMissing = ": cannot open shared object file";

// The library that the loader did not find, "" if the error has another cause.
std::string MissingLibrary(absl::string_view error) {
  const size_t end = error.find(kMissing);
  if (end == absl::string_view::npos) return "";
  const absl::string_view name = error.substr(0, end);
  return absl::StrContains(name, '/') ? "" : std::string(name);
}

absl::string_view Advice(absl::string_view library) {
  // The driver's own; all others are CANN's or the system's.
  if (absl::StartsWith(library, "libascend_hal") || absl::StartsWith(library, "libdrv")) {
    return "it belongs to the NPU's driver: install the driver, in a container mount "
           "/usr/local/Ascend/driver, or add its directory to LD_LIBRARY_PATH";
  }
  return "run CANN's set_env.sh before, or add its directory to LD_LIBRARY_PATH";
}

// A library, its name in errors, and RTLD_GLOBAL or RTLD_LOCAL.
struct Library {
  std::string file;
  std::string name;
  int scope;
};

absl::StatusOr<void*> Load(const Library& library, absl::Span<const std::string> directories,
                           std::set<std::string>* tried) {
  // The loader names one missing library at a time: each is loaded, and the library is tried again.
  while (true) {
    if (void* handle = dlopen(library.file.c_str(), RTLD_NOW | library.scope)) return handle;
    const std::string error = absl::StrReplaceAll(dlerror(), {{library.file, library.name}});
    const std::string missing = MissingLibrary(error);
    if (missing.empty()) return absl::InternalError(absl::StrCat("cannot load ", error));
    std::string found;
    for (const std::string& directory : directories) {
      const std::filesystem::path candidate = std::filesystem::path(directory) / missing;
      std::error_code ignored;
      if (found.empty() && std::filesystem::exists(candidate, ignored)) found = candidate.string();
    }
    // A library that was loaded and is missed again would keep this going for ever.
    if (found.empty() || !tried->insert(missing).second) {
      return absl::NotFoundError(absl::StrCat(library.name, " needs ", missing,
                                              ", which is not found; ", Advice(missing)));
    }
    OPSERVE_RETURN_IF_ERROR(Load({found, found, RTLD_GLOBAL}, directories, tried).status());
  }
}

}  // namespace

absl::StatusOr<void*> LoadLibrary(const std::string& path,
                                  absl::Span<const std::string> directories) {
  std::set<std::string> tried;
  return Load({path, path, RTLD_GLOBAL}, directories, &tried);
}

absl::StatusOr<void*> LoadPrivateLibrary(int file, const std::string& path,
                                         absl::Span<const std::string> directories) {
  std::set<std::string> tried;
  return Load({absl::StrCat("/proc/self/fd/", file), path, RTLD_LOCAL}, directories, &tried);
}

}  // namespace opserve::server
