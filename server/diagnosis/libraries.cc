#include "server/diagnosis/libraries.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve::server {
namespace {

// Functions that some versions of CANN lack, and the daemon's way to do without them.
struct OptionalFunctions {
  bool has;
  absl::string_view subject;
  absl::string_view consequence;
};

std::vector<OptionalFunctions> Optional(const AclLibrary& acl) {
  // Columns: whether the libraries can, the subject, the consequence if not.
  return {
      {acl.aclrtSynchronizeStreamWithTimeout != nullptr, "waiting with a timeout",
       "a kernel that hangs holds its lane for ever: --execution_timeout has no effect"},
      {acl.aclrtStreamAbort != nullptr, "aborting a stream",
       "a kernel that hangs costs its stream until the device is reset"},
      {acl.aclrtSetOpExecuteTimeOutV2 != nullptr || acl.aclrtSetOpExecuteTimeOut != nullptr,
       "limiting a kernel's time", "the vendor's limit holds, up to 1091 s"},
      {acl.aclrtResetDeviceForce != nullptr, "resetting a device by force",
       "a device that broke comes back with a restart of the daemon only"},
      {acl.aclrtDeviceTaskAbort != nullptr, "stopping a device's work",
       "a kernel that hangs holds up the reset of its device"},
      {acl.HasRepeatableExecutors(), "keeping plans", "stage one runs for each call"},
      {acl.aclrtStreamQuery != nullptr, "asking whether a stream is idle",
       "small requests wait for a lane's thread"},
      {acl.aclrtHostRegister != nullptr && acl.aclrtHostUnregister != nullptr,
       "mapping host memory", "tensors in shared memory are copied"},
  };
}

std::string Version(const AclLibrary& acl) {
  std::vector<std::string> versions;
  // Names of packages as CANN has them.
  for (const char* package : {"runtime", "driver", "toolkit", "opp"}) {
    if (std::string version = acl.PackageVersion(package); !version.empty()) {
      versions.push_back(absl::StrCat(package, " ", version));
    }
  }
  return versions.empty() ? "they do not tell" : absl::StrJoin(versions, ", ");
}

}  // namespace

void CheckLibraries(const AclLibrary& acl, const OperatorTable& operators, Report* report) {
  const CannLayout& layout = acl.layout();
  report->Add(Verdict::kOk, "runtime", layout.runtime);
  report->Add(Verdict::kOk, "product", acl.soc_name());
  if (acl.is_host_cann()) report->Add(Verdict::kOk, "computes on", acl.runtime_name());
  report->Add(Verdict::kOk, "versions", Version(acl));
  for (const std::string& problem : acl.problems()) {
    report->Add(Verdict::kWarning, "installation", problem);
  }
  for (const OptionalFunctions& functions : Optional(acl)) {
    if (functions.has) continue;
    report->Add(Verdict::kWarning, functions.subject,
                absl::StrCat("these libraries cannot: ", functions.consequence),
                "use a newer CANN");
  }
  absl::btree_map<std::string, int> found;  // operators by library
  for (const LoadedOperator& op : operators.operators()) {
    if (op.is_loaded()) {
      const std::string library = std::filesystem::path(op.library).filename().string();
      report->AddOneOfMany(Verdict::kOk, op.descriptor->name, library);
      ++found[library];
    } else if (!op.pack.empty()) {
      // The pack says below why it was refused.
      report->AddOneOfMany(Verdict::kWarning, op.descriptor->name, op.lack);
    } else {
      report->AddOneOfMany(
          Verdict::kWarning, op.descriptor->name,
          absl::StrCat("no operator library has ", op.descriptor->stage_one),
          "install the custom operator package that has it; the others serve without");
    }
  }
  for (const OperatorPack& pack : operators.packs()) {
    if (pack.is_refused()) {
      report->Add(Verdict::kProblem, absl::StrCat("pack ", pack.name), pack.problem,
                  "the others serve; correct it and try it by opserve ops --check");
    } else {
      report->Add(Verdict::kOk, absl::StrCat("pack ", pack.name),
                  absl::StrCat(pack.operators.size(), " operators"));
    }
  }
  // The device has nothing to compute with.
  if (found.empty()) {
    report->Add(Verdict::kProblem, "operators", "the libraries have none of the catalogue's",
                "install the operator package (ops or kernels) of this machine's NPU");
    return;
  }
  report->Add(Verdict::kOk, "operators",
              absl::StrJoin(found, ", ", [](std::string* out, const auto& library) {
                absl::StrAppend(out, library.second, " from ", library.first);
              }));
}

}  // namespace opserve::server
