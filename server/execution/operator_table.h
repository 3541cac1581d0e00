// The catalogue's operators with their stage functions in the loaded ACL libraries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"
#include "server/device/acl_library.h"
#include "server/execution/operator_offer.h"
#include "server/execution/stage_one_function.h"

namespace opserve::server {

// One that is not available is listed, and calls to it are refused.
struct LoadedOperator {
  const catalog::OperatorDescriptor* descriptor;
  void* stage_one;                               // null if the libraries lack the operator
  std::shared_ptr<const StageOneFunction> call;  // calls stage_one
  catalog::StageTwoFunction stage_two;
  std::string library;  // path of the library that has both
  int index;            // position in the table, for metrics
  std::shared_ptr<OperatorOffer> offer = std::make_shared<OperatorOffer>();

  bool is_loaded() const { return stage_one != nullptr; }
  // Whether some device may offer it, whatever states the devices are in.
  bool is_available() const { return is_loaded() && offer->IsOffered(); }
  // Why it is not available: "the daemon's ACL libraries lack this operator".
  std::string unavailable_reason() const;
  // kUnimplemented: the libraries or the product lack it.  kUnavailable (reason
  // "operator_unavailable"): no device computes it right.
  absl::Status CheckAvailable() const;
  // The same of one device.
  absl::Status CheckOfferedBy(int32_t device) const;
};

// Immutable but for the devices' offers; thread-safe.
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
