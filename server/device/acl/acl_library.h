// The ACL C ABI, loaded at run time: the daemon's one way to a device.
//
// On an NPU machine they are CANN's (cann_layout.h says where these are); elsewhere the embedded
// host CANN's. The libraries stay loaded for the life of the process, as the vendor's do not
// support being unloaded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "server/device/acl/cann_layout.h"

namespace opserve::server {

// Thread-safe after Load.
class AclLibrary {
 public:
  // The two stages of an operator, both of one library.
  struct Operator {
    void* stage_one = nullptr;  // null: no library has both
    void* stage_two = nullptr;
    std::string library;  // where they are
  };

  // Opens the libraries that FindCann finds, and initialises ACL for the process. Call it once per
  // process, before there are other threads (it sets variables that CANN reads and that its
  // set_env.sh would have set); the object finalises ACL when it goes. An operator library that
  // cannot be loaded is among `problems`, and the others serve.
  //
  // kNotFound: a library, one that it needs, or a core function is missing; the message names it
  // and the remedy. kInternal: the loader or aclInit failed.
  static absl::StatusOr<std::unique_ptr<AclLibrary>> Load(const std::string& where);

  ~AclLibrary();
  AclLibrary(const AclLibrary&) = delete;
  AclLibrary& operator=(const AclLibrary&) = delete;

  // An operator by its functions' names. Custom packages come before CANN's own libraries.
  Operator FindOperator(const char* stage_one, const char* stage_two) const;

  // Limits how long one kernel may run on the hardware; returns the limit that holds, which is the
  // next one that the product knows, or infinity. To be called before anything is queued.
  // kUnimplemented: the libraries cannot, and the vendor's limit holds (up to 1091 s).
  absl::StatusOr<absl::Duration> SetExecutionLimit(absl::Duration limit) const;

  // How many devices there are, at least 1. kFailedPrecondition: there is none; the message says
  // where to look for the cause.
  absl::StatusOr<uint32_t> CountDevices() const;

  // Whether these are the host CANN's, which computes on this machine's processor whatever chip it
  // stands in for. It is known by a function that only its runtime exports.
  bool is_host_cann() const { return is_host_cann_; }
  // "Ascend910B3"; of the host CANN, the chip that it stands in for.
  const std::string& soc_name() const { return soc_name_; }
  // The computing runtime, for people: "Ascend910B3 8.5.0", or "host CANN (this machine's
  // processor), as Ascend910B3 8.5.0".
  std::string runtime_name() const;
  // The runtime's version as far as it tells ("" if it does not), and that of another package
  // ("driver").
  const std::string& version() const { return version_; }
  std::string PackageVersion(absl::string_view package) const;

  // Whether stage two of one executor can run many times, each with its own addresses.
  bool HasRepeatableExecutors() const {
    return aclSetAclOpExecutorRepeatable != nullptr && aclDestroyAclOpExecutor != nullptr &&
           aclSetInputTensorAddr != nullptr && aclSetOutputTensorAddr != nullptr;
  }

  // Whether what is queued on a stream can be captured, to be replayed as one launch.
  bool HasCapture() const {
    return aclmdlRICaptureBegin != nullptr && aclmdlRICaptureEnd != nullptr &&
           aclmdlRIExecuteAsync != nullptr && aclmdlRIDestroy != nullptr;
  }

  const CannLayout& layout() const { return layout_; }
  // Faults of the installation that do not keep it from serving; a sentence each.
  const std::vector<std::string>& problems() const { return problems_; }

#define OPSERVE_ACL_CORE(function) decltype(&::function) function = nullptr;
#define OPSERVE_ACL_OPTIONAL OPSERVE_ACL_CORE
#include "server/device/acl/acl_functions.inc"
#undef OPSERVE_ACL_OPTIONAL
#undef OPSERVE_ACL_CORE

 private:
  AclLibrary() = default;
  absl::Status Open();
  absl::Status ResolveFunctions();
  absl::Status Initialize();

  CannLayout layout_;
  std::vector<std::string> problems_;
  std::vector<void*> runtime_handles_;   // libacl_rt or libascendcl, libnnopbase
  std::vector<void*> operator_handles_;  // in the order of the search
  bool initialized_ = false;
  bool is_host_cann_ = false;
  std::string soc_name_;
  std::string version_;
};

}  // namespace opserve::server
