// The catalogue's operators with their stage functions in the loaded ACL libraries.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"
#include "server/device/acl_library.h"
#include "server/execution/stage_one_function.h"

namespace opserve::server {

// Whether this machine's NPUs have an operator that the libraries have: not every product does, and
// only a device can tell. Thread-safe.
class OperatorSupport {
 public:
  // "": it works; else why not.
  void Set(std::string problem) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_supported() const { return is_supported_.load(std::memory_order_relaxed); }
  std::string problem() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::atomic<bool> is_supported_ = true;
  mutable absl::Mutex mutex_;
  std::string problem_ ABSL_GUARDED_BY(mutex_);
};

// One that is not available is listed, and calls to it are refused.
struct LoadedOperator {
  const catalog::OperatorDescriptor* descriptor;
  void* stage_one;                               // null if the libraries lack the operator
  std::shared_ptr<const StageOneFunction> call;  // calls stage_one
  catalog::StageTwoFunction stage_two;
  std::string library;  // path of the library that has both
  int index;            // position in the table, for metrics
  std::shared_ptr<OperatorSupport> support = std::make_shared<OperatorSupport>();

  bool is_loaded() const { return stage_one != nullptr; }
  bool is_available() const { return is_loaded() && support->is_supported(); }
  // Why it is not available: "the daemon's ACL libraries lack this operator".
  std::string unavailable_reason() const;
};

// Immutable but for what devices support; thread-safe.
class OperatorTable {
 public:
  explicit OperatorTable(const AclLibrary& acl);

  absl::Span<const LoadedOperator> operators() const { return operators_; }
  // Null if the catalogue does not have it.
  const LoadedOperator* Find(absl::string_view name) const;

 private:
  std::vector<LoadedOperator> operators_;
  absl::flat_hash_map<absl::string_view, size_t> by_name_;  // positions; names are the catalogue's
};

}  // namespace opserve::server
