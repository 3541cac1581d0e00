#include "server/execution/operator_table.h"

#include <utility>

#include "ops/catalog/catalog.h"

namespace opserve::server {

void OperatorSupport::Set(std::string problem) {
  absl::MutexLock lock(&mutex_);
  is_supported_.store(problem.empty(), std::memory_order_relaxed);
  problem_ = std::move(problem);
}

std::string OperatorSupport::problem() const {
  absl::MutexLock lock(&mutex_);
  return problem_;
}

std::string LoadedOperator::unavailable_reason() const {
  return is_loaded() ? support->problem() : "the daemon's ACL libraries lack this operator";
}

OperatorTable::OperatorTable(const AclLibrary& acl) {
  for (const catalog::OperatorDescriptor* descriptor : catalog::AllOperators()) {
    AclLibrary::Operator functions =
        acl.FindOperator(descriptor->stage_one.c_str(), descriptor->stage_two.c_str());
    operators_.push_back(
        {.descriptor = descriptor,
         .stage_one = functions.stage_one,
         .call = std::make_shared<StageOneFunction>(*descriptor, functions.stage_one),
         .stage_two = reinterpret_cast<catalog::StageTwoFunction>(functions.stage_two),
         .library = std::move(functions.library),
         .index = static_cast<int>(operators_.size())});
    by_name_.emplace(descriptor->name, operators_.size() - 1);
  }
}

const LoadedOperator* OperatorTable::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &operators_[found->second];
}

}  // namespace opserve::server
