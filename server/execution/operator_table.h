// The catalogue's operators with their stage functions in the loaded ACL libraries.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"
#include "server/device/acl_library.h"

namespace opserve::server {

struct LoadedOperator {
  const catalog::OperatorDescriptor* descriptor;
  // Null if the libraries lack the operator: it is listed, and calls to it are refused.
  void* stage_one;
  catalog::StageTwoFunction stage_two;
  int index;  // position in the table, for metrics

  bool is_available() const { return stage_one != nullptr && stage_two != nullptr; }
};

// Immutable, thread-safe.
class OperatorTable {
 public:
  explicit OperatorTable(const AclLibrary& acl);

  absl::Span<const LoadedOperator> operators() const { return operators_; }
  // Null if the catalogue does not have it.
  const LoadedOperator* Find(absl::string_view name) const;

 private:
  std::vector<LoadedOperator> operators_;
};

}  // namespace opserve::server
