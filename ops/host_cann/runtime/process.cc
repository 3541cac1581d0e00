// Start and end of ACL, versions, and element sizes.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/mutex.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;
// The depth that the vendor's document allows.
constexpr int kMaxConfigDepth = 10;

// Callbacks of the start or the end of ACL, in the order in which they were registered. Not
// thread-safe.
template <typename Callback>
class CallbacksByType {
 public:
  // 100000: null. 500000: the type has a callback, and is not ACL_REG_TYPE_OTHER. 207012: too many.
  aclError Add(aclRegisterCallbackType type, Callback callback, void* user_data) {
    RETURN_IF_FAILED(RequireNotNull(reinterpret_cast<const void*>(callback), "cbFunc"));
    const auto of_type = [&](const Entry& entry) { return entry.type == type; };
    // Component libraries register under their type, once each; ACL_REG_TYPE_OTHER is for all
    // others.
    if (type != ACL_REG_TYPE_OTHER && std::any_of(entries_.begin(), entries_.end(), of_type)) {
      return Fail(ACL_ERROR_INTERNAL_ERROR, kCallOrder,
                  Concat("type is ", static_cast<int>(type), ", which has a callback already"));
    }
    if (entries_.size() >= kMaxCallbacks) {
      return Fail(ACL_ERROR_RT_OVER_LIMIT, kExhausted,
                  Concat("there are ", kMaxCallbacks, " callbacks, which is the limit"));
    }
    entries_.push_back({type, callback, user_data});
    return ACL_SUCCESS;
  }

  // 100000: null. 500000: it is not registered.
  aclError Remove(aclRegisterCallbackType type, Callback callback) {
    RETURN_IF_FAILED(RequireNotNull(reinterpret_cast<const void*>(callback), "cbFunc"));
    // By both: one function may serve several types.
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
      return entry.type == type && entry.callback == callback;
    });
    if (found == entries_.end()) {
      return Fail(ACL_ERROR_INTERNAL_ERROR, kCallOrder,
                  Concat("cbFunc is not registered for type ", static_cast<int>(type)));
    }
    entries_.erase(found);
    return ACL_SUCCESS;
  }

  // Calls `call(callback, user_data)` for each until one returns another code than 0; returns it.
  template <typename Call>
  aclError CallUntilFailure(Call call) const {
    for (const Entry& entry : entries_) RETURN_IF_FAILED(call(entry.callback, entry.user_data));
    return ACL_SUCCESS;
  }

 private:
  static constexpr size_t kMaxCallbacks = 1024;
  struct Entry {
    aclRegisterCallbackType type;
    Callback callback;
    void* user_data;
  };
  std::vector<Entry> entries_;
};

// Callbacks run with the mutex held, so that no start or end happens between their registration and
// their calls.
struct Process {
  Mutex mutex;
  uint64_t starts ABSL_GUARDED_BY(mutex) = 0;
  std::string config ABSL_GUARDED_BY(mutex);  // the file that the first start was given
  CallbacksByType<aclInitCallbackFunc> at_start ABSL_GUARDED_BY(mutex);
  CallbacksByType<aclFinalizeCallbackFunc> at_end ABSL_GUARDED_BY(mutex);
};

Process& GetProcess() {
  // Leaked: StopAtExit and late calls come after static objects have been destroyed.
  static Process* const process = new Process;
  return *process;
}

// Reads a configuration file into `*config`; refuses one that cannot be read and modes of messages
// that do not exist. Of all keys only err_msg_mode has an effect here.
aclError ReadConfig(const std::string& path, std::string* config, bool* shares_messages) {
  *shares_messages = false;
  config->clear();
  if (path.empty()) return ACL_SUCCESS;
  std::ifstream file(path, std::ios::binary);
  // One byte more than the limit tells a file of the limit's size from a larger one.
  std::string text(kMaxConfigBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  // An empty file can be read and fails below, as JSON. Directories and missing files end here.
  if (!file && file.gcount() == 0 && !file.eof()) {
    return Fail(ACL_ERROR_INVALID_FILE, kBadValue,
                Concat("configPath \"", path, "\" cannot be read"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMaxConfigBytes) {
    return Fail(ACL_ERROR_INVALID_FILE_SIZE, kBadValue,
                Concat("\"", path, "\" has more than ", kMaxConfigBytes, " bytes"));
  }
  // The parser goes on, but the depth is checked before the text is used.
  bool too_deep = false;
  const auto on_event = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep |= depth > kMaxConfigDepth;
    return true;
  };
  const auto parsed = nlohmann::json::parse(text, on_event, /*allow_exceptions=*/false);
  if (too_deep || !parsed.is_object()) {
    return Fail(
        ACL_ERROR_PARSE_FILE, kBadValue,
        Concat("\"", path, "\" is not a JSON object of at most ", kMaxConfigDepth, " levels"));
  }
  *config = std::move(text);
  if (!parsed.contains("err_msg_mode")) return ACL_SUCCESS;
  const auto& mode = parsed["err_msg_mode"];
  if (mode != "0" && mode != "1") {
    // The mode is text in the file, as the vendor writes it. Another type is no mode.
    return Fail(ACL_ERROR_FEATURE_UNSUPPORTED, kBadValue,
                Concat("err_msg_mode is ", mode.dump(), ", must be \"0\" or \"1\""));
  }
  *shares_messages = mode == "1";
  return ACL_SUCCESS;
}

aclError CallWithConfig(const CallbacksByType<aclInitCallbackFunc>& callbacks,
                        const std::string& config) {
  return callbacks.CallUntilFailure([&](aclInitCallbackFunc callback, void* user_data) {
    return callback(config.c_str(), config.size(), user_data);
  });
}

aclError StartProcess(Process& process, const std::string& path)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(process.mutex) {
  bool shares_messages = false;
  RETURN_IF_FAILED(ReadConfig(path, &process.config, &shares_messages));
  // Before the start counts: a callback that fails leaves ACL not started.
  RETURN_IF_FAILED(CallWithConfig(process.at_start, process.config));
  ShareMessages(shares_messages);
  process.starts = 1;
  return ACL_SUCCESS;
}

// Ends all work. The code: that of a callback that failed.
aclError EndProcess(const Process& process) ABSL_EXCLUSIVE_LOCKS_REQUIRED(process.mutex) {
  const aclError code = process.at_end.CallUntilFailure(
      [](aclFinalizeCallbackFunc callback, void* user_data) { return callback(user_data); });
  // Work is stopped even if a callback fails: the process is about to end.
  Runtime::Get().StopWork();
  ShareMessages(false);
  return code;
}

struct Package {
  const char* name;
  int32_t major, minor, patch;
};

// The CANN release with this ABI.
// Names that programs ask for. All belong to one release.
constexpr Package kPackages[] = {{"runtime", 9, 1, 0}, {"driver", 9, 1, 0}};

aclError FindPackage(const char* name, const Package** package) {
  RETURN_IF_FAILED(RequireNotNull(name, "pkgName"));
  for (const Package& candidate : kPackages) {
    if (std::strcmp(name, candidate.name) != 0) continue;
    *package = &candidate;
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("pkgName is \"", name, "\", must be \"runtime\" or \"driver\""));
}

std::string VersionText(const Package& package) {
  return Concat(package.major, ".", package.minor, ".", package.patch);
}

template <size_t kSize>
void CopyText(const std::string& text, char (&to)[kSize]) {
  std::snprintf(to, kSize, "%s", text.c_str());
}

// A process that ends without aclFinalize, or unloads the library: kernels must not go on computing
// while their memory is taken down.
__attribute__((destructor)) void StopAtExit() {
  // The lock is free unless a thread is inside aclInit or aclFinalize, which a program must not
  // leave running at its end.
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  if (process.starts > 0) Runtime::Get().StopWork();
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclInit(const char* configPath) {
  RETURN_IF_FAILED(EnterCall(__func__));
  const std::string path = configPath == nullptr ? "" : configPath;
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  if (process.starts == 0) return StartProcess(process, path);
  // Counted although it is an error: aclFinalizeReference has to be called as often.
  ++process.starts;
  return Fail(ACL_ERROR_REPEAT_INITIALIZE, kCallOrder,
              "ACL is already started; the configuration of the first start stays");
}

aclError aclFinalize() {
  RETURN_IF_FAILED(EnterCall(__func__));
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  if (process.starts == 0) {
    return Fail(ACL_ERROR_REPEAT_FINALIZE, kCallOrder, "ACL is not started");
  }
  // Whatever the number of starts was, by the vendor's document.
  process.starts = 0;
  return EndProcess(process);
}

aclError aclFinalizeReference(uint64_t* refCount) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  if (process.starts == 0) {
    return Fail(ACL_ERROR_REPEAT_FINALIZE, kCallOrder, "ACL is not started");
  }
  --process.starts;
  if (refCount != nullptr) *refCount = process.starts;
  return process.starts == 0 ? EndProcess(process) : ACL_SUCCESS;
}

aclError aclInitCallbackRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc,
                                 void* userData) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  RETURN_IF_FAILED(process.at_start.Add(type, cbFunc, userData));
  // The start that it asks to be told of has been. Its result cannot fail that start any more.
  if (process.starts > 0) cbFunc(process.config.c_str(), process.config.size(), userData);
  return ACL_SUCCESS;
}

aclError aclInitCallbackUnRegister(aclRegisterCallbackType type, aclInitCallbackFunc cbFunc) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  return process.at_start.Remove(type, cbFunc);
}

aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type, aclFinalizeCallbackFunc cbFunc,
                                     void* userData) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  return process.at_end.Add(type, cbFunc, userData);
}

aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                       aclFinalizeCallbackFunc cbFunc) {
  RETURN_IF_FAILED(EnterCall(__func__));
  Process& process = GetProcess();
  MutexLock lock(process.mutex);
  return process.at_end.Remove(type, cbFunc);
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(versionNum, "versionNum"));
  const Package* package = nullptr;
  RETURN_IF_FAILED(FindPackage(pkgName, &package));
  // The vendor's formula for release versions.
  *versionNum = package->major * 10000000 + package->minor * 100000 + package->patch * 1000;
  return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(versionStr, "versionStr"));
  const Package* package = nullptr;
  RETURN_IF_FAILED(FindPackage(pkgName, &package));
  std::snprintf(versionStr, ACL_PKG_VERSION_MAX_SIZE, "%s", VersionText(*package).c_str());
  return ACL_SUCCESS;
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(version, "version"));
  if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("name is ", static_cast<int>(name), ", must be 0 to 7"));
  }
  // All components but the driver are of one package.
  const Package& package = kPackages[name == ACL_PKG_NAME_DRIVER ? 1 : 0];
  *version = {};
  CopyText(VersionText(package), version->version);
  CopyText(std::to_string(package.major), version->majorVersion);
  CopyText(std::to_string(package.minor), version->minorVersion);
  CopyText(std::to_string(package.patch), version->releaseVersion);
  return ACL_SUCCESS;
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(majorVersion, "majorVersion"));
  RETURN_IF_FAILED(RequireNotNull(minorVersion, "minorVersion"));
  RETURN_IF_FAILED(RequireNotNull(patchVersion, "patchVersion"));
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}
