#include "server/device/acl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "ops/catalog/status_macros.h"
#include "server/device/acl_status.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

void* Resolve(const std::vector<void*>& handles, const char* name) {
  for (void* handle : handles) {
    if (void* address = dlsym(handle, name)) return address;
  }
  return nullptr;
}

absl::StatusOr<void*> OpenLibrary(const fs::path& path) {
  // Global, so that libraries opened later find their dependencies by soname without a search path.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return absl::InternalError(absl::StrCat("cannot load ", dlerror()));
  return handle;
}

// The first of `names` that exists in `directory`.
absl::StatusOr<void*> OpenFirst(const fs::path& directory,
                                std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fs::exists(directory / name)) return OpenLibrary(directory / name);
  }
  return absl::NotFoundError(absl::StrCat("no ", *names.begin(), " in ", directory.string(),
                                          "; point --acl_library_dir at the lib64 of a CANN "
                                          "installation or at lib/opserve/host-cann"));
}

// Operator libraries, custom ones first, in a fixed order.
std::vector<fs::path> OperatorLibraries(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename();
    if (name == "libcust_opapi.so" || (name.starts_with("libopapi") && name.ends_with(".so"))) {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AclLibrary>> AclLibrary::Load(const std::string& directory) {
  auto library = std::unique_ptr<AclLibrary>(new AclLibrary());
  OPSERVE_RETURN_IF_ERROR(library->Open(directory));
  OPSERVE_RETURN_IF_ERROR(library->ResolveFunctions());
  OPSERVE_RETURN_IF_ERROR(library->Initialize());
  return library;
}

absl::Status AclLibrary::Open(const std::string& directory) {
  OPSERVE_ASSIGN_OR_RETURN(void* runtime, OpenFirst(directory, {"libascendcl.so", "libacl_rt.so"}));
  runtime_handles_.push_back(runtime);
  OPSERVE_ASSIGN_OR_RETURN(void* nnopbase, OpenFirst(directory, {"libnnopbase.so"}));
  runtime_handles_.push_back(nnopbase);
  for (const fs::path& path : OperatorLibraries(directory)) {
    OPSERVE_ASSIGN_OR_RETURN(void* handle, OpenLibrary(path));
    operator_handles_.push_back(handle);
  }
  if (operator_handles_.empty()) {
    return absl::NotFoundError(absl::StrCat("no operator library (libopapi*.so) in ", directory));
  }
  return absl::OkStatus();
}

absl::Status AclLibrary::ResolveFunctions() {
#define OPSERVE_ACL_OPTIONAL(function) \
  function = reinterpret_cast<decltype(&::function)>(Resolve(runtime_handles_, #function));
#define OPSERVE_ACL_CORE(function)                                                     \
  OPSERVE_ACL_OPTIONAL(function)                                                       \
  if (function == nullptr) {                                                           \
    return absl::NotFoundError("the ACL libraries lack the core function " #function); \
  }
#include "server/device/acl_functions.inc"
#undef OPSERVE_ACL_CORE
#undef OPSERVE_ACL_OPTIONAL
  return absl::OkStatus();
}

absl::Status AclLibrary::Initialize() {
  OPSERVE_RETURN_IF_ERROR(AclCallStatus(*this, "aclInit", aclInit(nullptr)));
  initialized_ = true;
  const char* soc = aclrtGetSocName();
  soc_name_ = soc == nullptr ? "unknown" : soc;
  std::array<char, 128> version = {};
  std::string package = "runtime";
  if (aclsysGetVersionStr != nullptr &&
      aclsysGetVersionStr(package.data(), version.data()) == ACL_SUCCESS) {
    version_ = version.data();
  }
  return absl::OkStatus();
}

AclLibrary::~AclLibrary() {
  if (initialized_) aclFinalize();
}

void* AclLibrary::FindOperatorFunction(const char* name) const {
  return Resolve(operator_handles_, name);
}

}  // namespace opserve::server
