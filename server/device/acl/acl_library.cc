#include "server/device/acl/acl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/device/acl/library_loader.h"

namespace opserve::server {
namespace {

constexpr char kOfHostCannOnly[] = "opserveHostCount";

void* Resolve(const std::vector<void*>& handles, const char* name) {
  for (void* handle : handles) {
    if (void* address = dlsym(handle, name)) return address;
  }
  return nullptr;
}

// As set_env.sh would: aclnn does not find its kernels without these variables.
void CompleteEnvironment(const CannLayout& layout) {
  // Variables that are set are somebody's decision.
  if (!layout.home.empty()) setenv("ASCEND_HOME_PATH", layout.home.c_str(), /*overwrite=*/0);
  if (!layout.opp.empty()) setenv("ASCEND_OPP_PATH", layout.opp.c_str(), /*overwrite=*/0);
}

// Advice for the operator after a failed aclInit.
absl::string_view InitAdvice(int code) {
  switch (code) {
    case ACL_ERROR_COMPILING_STUB_MODE:
      return "; these are stubs to link with: name CANN's lib64, and not its devlib";
    case ACL_ERROR_INTERNAL_ERROR:
      return "; CANN does not know this machine's NPU: is its driver loaded (npu-smi info), and "
             "may this user open /dev/davinci_manager?";
    default:
      return "";
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<AclLibrary>> AclLibrary::Load(const std::string& where) {
  // In this order each error names its own remedy.
  auto library = std::unique_ptr<AclLibrary>(new AclLibrary());
  OPSERVE_ASSIGN_OR_RETURN(library->layout_,
                           FindCann(where, [](const char* name) { return std::getenv(name); }));
  OPSERVE_RETURN_IF_ERROR(library->Open());
  OPSERVE_RETURN_IF_ERROR(library->ResolveFunctions());
  OPSERVE_RETURN_IF_ERROR(library->Initialize());
  return library;
}

absl::Status AclLibrary::Open() {
  problems_ = layout_.oddities;
  CompleteEnvironment(layout_);
  // Later libraries find the functions of earlier ones.
  for (const std::string& path : {layout_.runtime, layout_.nnopbase}) {
    OPSERVE_ASSIGN_OR_RETURN(void* handle, LoadLibrary(path, layout_.dependency_dirs));
    runtime_handles_.push_back(handle);
  }
  // One broken package must not take the others away.
  absl::Status last_failure;
  for (const std::string& path : layout_.operators) {
    const absl::StatusOr<void*> handle = LoadLibrary(path, layout_.dependency_dirs);
    if (handle.ok()) {
      operator_handles_.push_back(*handle);
    } else {
      last_failure = handle.status();
      problems_.emplace_back(handle.status().message());
    }
  }
  return operator_handles_.empty() ? last_failure : absl::OkStatus();
}

absl::Status AclLibrary::ResolveFunctions() {
#define OPSERVE_ACL_OPTIONAL(function) \
  function = reinterpret_cast<decltype(&::function)>(Resolve(runtime_handles_, #function));
#define OPSERVE_ACL_CORE(function)                                                          \
  OPSERVE_ACL_OPTIONAL(function)                                                            \
  if (function == nullptr) {                                                                \
    return absl::NotFoundError(                                                             \
        absl::StrCat("the ACL libraries in ", layout_.library_dir,                          \
                     " lack the core function " #function                                   \
                     "; this CANN is too old, or its packages are of different versions")); \
  }
#include "server/device/acl/acl_functions.inc"
#undef OPSERVE_ACL_CORE
#undef OPSERVE_ACL_OPTIONAL
  // Names of files and versions are as CANN's, for the programs that look at them.
  is_host_cann_ = Resolve(runtime_handles_, kOfHostCannOnly) != nullptr;
  return absl::OkStatus();
}

absl::Status AclLibrary::Initialize() {
  if (const int code = aclInit(nullptr); ClassifyAclCode(code) != AclFault::kNone) {
    const absl::Status status = AclCallStatus(*this, "aclInit", code);
    return absl::Status(status.code(), absl::StrCat(status.message(), InitAdvice(code)));
  }
  initialized_ = true;
  const char* soc = aclrtGetSocName();
  soc_name_ = soc == nullptr ? "unknown" : soc;
  version_ = PackageVersion("runtime");
  return absl::OkStatus();
}

AclLibrary::~AclLibrary() {
  if (initialized_) aclFinalize();
}

std::string AclLibrary::runtime_name() const {
  return absl::StrCat(is_host_cann_ ? "host CANN (this machine's processor), as " : "", soc_name_,
                      version_.empty() ? "" : " ", version_);
}

std::string AclLibrary::PackageVersion(absl::string_view package) const {
  std::array<char, 128> version = {};  // ACL_PKG_VERSION_MAX_SIZE
  std::string name(package);
  if (aclsysGetVersionStr == nullptr ||
      aclsysGetVersionStr(name.data(), version.data()) != ACL_SUCCESS) {
    return "";
  }
  return version.data();
}

AclLibrary::Operator AclLibrary::FindOperator(const char* stage_one, const char* stage_two) const {
  for (void* handle : operator_handles_) {
    // Stage two takes the executor that stage one of the same library made.
    Operator found{dlsym(handle, stage_one), dlsym(handle, stage_two), ""};
    if (found.stage_one == nullptr || found.stage_two == nullptr) continue;
    // It may be of a library that this one needs.
    if (Dl_info info; dladdr(found.stage_one, &info) != 0) found.library = info.dli_fname;
    return found;
  }
  return {};
}

absl::StatusOr<uint32_t> AclLibrary::CountDevices() const {
  uint32_t count = 0;
  const absl::Status status =
      AclCallStatus(*this, "aclrtGetDeviceCount", aclrtGetDeviceCount(&count));
  if (status.ok() && count > 0) return count;
  return absl::FailedPreconditionError(absl::StrCat(
      "the ACL libraries find no device (",
      status.ok() ? "aclrtGetDeviceCount says 0" : status.message(),
      "): does npu-smi info show one, may this user open /dev/davinci*, and are the ids of "
      "ASCEND_RT_VISIBLE_DEVICES, if it is set, there and in ascending order?"));
}

absl::StatusOr<absl::Duration> AclLibrary::SetExecutionLimit(absl::Duration limit) const {
  const int64_t microseconds = std::max<int64_t>(absl::ToInt64Microseconds(limit), 1);
  if (aclrtSetOpExecuteTimeOutV2 != nullptr) {
    uint64_t actual = 0;
    OPSERVE_RETURN_IF_ERROR(
        AclCallStatus(*this, "aclrtSetOpExecuteTimeOutV2",
                      aclrtSetOpExecuteTimeOutV2(static_cast<uint64_t>(microseconds), &actual)));
    return actual > INT64_MAX ? absl::InfiniteDuration()
                              : absl::Microseconds(static_cast<int64_t>(actual));
  }
  if (aclrtSetOpExecuteTimeOut != nullptr) {
    // The older function knows whole seconds, so the limit is rounded up.
    const absl::Duration seconds = absl::Ceil(limit, absl::Seconds(1));
    OPSERVE_RETURN_IF_ERROR(AclCallStatus(
        *this, "aclrtSetOpExecuteTimeOut",
        aclrtSetOpExecuteTimeOut(static_cast<uint32_t>(absl::ToInt64Seconds(seconds)))));
    return seconds;
  }
  return absl::UnimplementedError(
      "these ACL libraries cannot limit how long a kernel runs; the vendor's limit holds");
}

}  // namespace opserve::server
