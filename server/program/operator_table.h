// The catalogue's operators and those of packs, with their stage functions in the loaded libraries.
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
#include "server/device/acl/acl_library.h"
#include "server/program/operator_offer.h"
#include "server/program/operator_pack.h"
#include "server/program/stage_one_function.h"

namespace opserve::server {

// One that is not available is listed, and calls to it are refused.
struct LoadedOperator {
  const catalog::OperatorDescriptor* descriptor;
  void* stage_one;                               // null if the libraries lack the operator
  std::shared_ptr<const StageOneFunction> call;  // calls stage_one
  catalog::StageTwoFunction stage_two;
  std::string library;  // path of the library that has both
  std::string pack;     // the name of its operator pack; "": it is built in
  std::string lack;     // why it is not loaded
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
  // Loads the packs' libraries; each process may do that once. The operators of a pack that is
  // refused, before or now, are in the table as not loaded.
  explicit OperatorTable(const AclLibrary& acl, std::vector<OperatorPack> packs = {});

  absl::Span<const LoadedOperator> operators() const { return operators_; }
  // Null if there is none of that name.
  const LoadedOperator* Find(absl::string_view name) const;
  absl::Span<const OperatorPack> packs() const { return packs_; }

 private:
  void Add(const catalog::OperatorDescriptor& descriptor, AclLibrary::Operator functions,
           std::string pack, std::string lack);
  void AddPack(const AclLibrary& acl, OperatorPack* pack);

  std::vector<OperatorPack> packs_;  // own their operators' descriptors
  std::vector<LoadedOperator> operators_;
  absl::flat_hash_map<absl::string_view, size_t> by_name_;  // positions; names are the descriptors'
};

}  // namespace opserve::server
