// The ACL C ABI, loaded at run time: the daemon's one way to a device.
//
// On an NPU machine the directory is CANN's lib64; elsewhere the embedded host CANN. The libraries
// stay loaded for the life of the process, as the vendor's do not support being unloaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

namespace opserve::server {

// Thread-safe after Load.
class AclLibrary {
 public:
  // Opens the runtime (libascendcl.so or libacl_rt.so), libnnopbase.so and every operator library
  // (libopapi*.so, libcust_opapi.so) in `directory`, and initialises ACL for the process. Call it
  // once per process; the object finalises ACL when it goes.
  //
  // kNotFound: a library or a core function is missing (the message names it and the directory).
  // kInternal: the loader or aclInit failed.
  static absl::StatusOr<std::unique_ptr<AclLibrary>> Load(const std::string& directory);

  ~AclLibrary();
  AclLibrary(const AclLibrary&) = delete;
  AclLibrary& operator=(const AclLibrary&) = delete;

  // Address of an operator's function, or null if no operator library has it. Custom operator
  // libraries come before the built-in ones.
  void* FindOperatorFunction(const char* name) const;

  // "Ascend910B3", and the runtime's version as far as it tells ("" if it does not).
  const std::string& soc_name() const { return soc_name_; }
  const std::string& version() const { return version_; }

#define OPSERVE_ACL_CORE(function) decltype(&::function) function = nullptr;
#define OPSERVE_ACL_OPTIONAL OPSERVE_ACL_CORE
#include "server/device/acl_functions.inc"
#undef OPSERVE_ACL_OPTIONAL
#undef OPSERVE_ACL_CORE

 private:
  AclLibrary() = default;
  absl::Status Open(const std::string& directory);
  absl::Status ResolveFunctions();
  absl::Status Initialize();

  std::vector<void*> runtime_handles_;   // libascendcl or libacl_rt, libnnopbase
  std::vector<void*> operator_handles_;  // in the order of the search
  bool initialized_ = false;
  std::string soc_name_;
  std::string version_;
};

}  // namespace opserve::server
