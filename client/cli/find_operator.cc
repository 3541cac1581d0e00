#include "client/cli/find_operator.h"

#include <vector>

#include "client/cli/closest_name.h"

namespace opserve::cli {

std::variant<v1::OperatorDescriptor, Failure> FindOperator(Client& client, const Session& session,
                                                           const std::string& name) {
  const auto operators = client.ListOperators({}, session.timeout);
  if (!operators.ok()) return CallFailure(session, client, operators.status());
  std::vector<std::string> names;
  for (const v1::OperatorDescriptor& descriptor : *operators) {
    if (descriptor.name() == name) return descriptor;
    names.push_back(descriptor.name());
  }
  return UsageFailure(absl::NotFoundError(UnknownName("operator", name, names)),
                      "see \"opserve ops\"");
}

}  // namespace opserve::cli
