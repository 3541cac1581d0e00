#include "ops/catalog/catalog.h"

namespace opserve::catalog {

absl::Span<const OperatorDescriptor* const> AllOperators() {
  static const OperatorDescriptor* const operators[] = {
      &KlDivBackward(),      &KlDivTargetBackward(), &L1LossBackward(),
      &LogSoftmaxBackward(), &MseLossBackward(),
  };
  return operators;
}

const OperatorDescriptor* FindOperator(absl::string_view name) {
  for (const OperatorDescriptor* candidate : AllOperators()) {
    if (candidate->name == name) return candidate;
  }
  return nullptr;
}

}  // namespace opserve::catalog
