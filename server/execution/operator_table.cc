#include "server/execution/operator_table.h"

#include "ops/catalog/catalog.h"

namespace opserve::server {

OperatorTable::OperatorTable(const AclLibrary& acl) {
  for (const catalog::OperatorDescriptor* descriptor : catalog::AllOperators()) {
    const catalog::Binding& binding = descriptor->binding;
    operators_.push_back({.descriptor = descriptor,
                          .stage_one = acl.FindOperatorFunction(binding.stage_one),
                          .stage_two = reinterpret_cast<catalog::StageTwoFunction>(
                              acl.FindOperatorFunction(binding.stage_two)),
                          .index = static_cast<int>(operators_.size())});
  }
}

const LoadedOperator* OperatorTable::Find(absl::string_view name) const {
  for (const LoadedOperator& candidate : operators_) {
    if (candidate.descriptor->name == name) return &candidate;
  }
  return nullptr;
}

}  // namespace opserve::server
