// Operator packs: operators that opserve was not built with, described in a text beside the library
// that has their functions. After loading they are operators like all others (operator_table.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/operator_descriptor.h"
#include "server/device/acl/acl_library.h"

namespace opserve::server {

// Why a pack is not served.
enum class PackRefusal {
  kNone,
  kLibrary,      // its library is missing, may be changed by others, cannot be loaded, or lacks a
                 // function
  kUnsupported,  // the product does not have an operator
  kFailed,       // an operator's stage one or its run gives an error
  kWrong,        // an operator's result is not that of its golden case
  kCrash,        // its trial was ended by a signal
  kHang,         // its trial did not end in time
  kTrial,        // it could not be tried: the libraries, the device or the process failed
};

// "crash", "hang": a label of metrics, a word of messages.
absl::string_view PackRefusalName(PackRefusal refusal);
// kTrial if no refusal has that name.
PackRefusal PackRefusalOfName(absl::string_view name);

struct PackOperator {
  std::shared_ptr<const catalog::OperatorDescriptor> descriptor;
  int line = 0;  // of its description in the text
};

struct OperatorPack {
  std::string name;     // of the file, without its extension: "weighted_sum"
  std::string path;     // of the text
  std::string folder;   // that the text is in
  std::string library;  // name of the file in the folder; "": the libraries of --acl_library_dir
  int library_line = 0;
  std::vector<PackOperator> operators;  // at least one
  PackRefusal refusal = PackRefusal::kNone;
  std::string problem = {};  // "PATH:LINE: OPERATOR: PROBLEM", if it is refused

  bool is_refused() const { return refusal != PackRefusal::kNone; }
  void Refuse(PackRefusal why, std::string because);
  // "PATH:LINE: ", of an operator.
  std::string PlaceOf(const PackOperator& op) const;
};

// Reads the texts of packs: `paths` are files, or directories with *.textproto files;
// `max_operators` is how many operators they may have together. Loads nothing. An error names file,
// line and problem: a text that cannot be read, belongs to another user or is writable by others; a
// mistake in it; a name that another operator has.
absl::StatusOr<std::vector<OperatorPack>> ReadOperatorPacks(absl::Span<const std::string> paths,
                                                            size_t max_operators);

// The functions of the pack's operators, in their order. The library is loaded for good, private to
// the pack: nothing else is bound to its symbols. Requires that its library has not been loaded
// before. kPermissionDenied, kNotFound, kInternal: the problem, with file and line.
absl::StatusOr<std::vector<AclLibrary::Operator>> LoadPack(const AclLibrary& acl,
                                                           const OperatorPack& pack);

// Logs whether the pack is served: operator_pack, operator_pack_refused.
void LogPack(const OperatorPack& pack);

}  // namespace opserve::server
