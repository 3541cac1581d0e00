// Operators as the Open Inference Protocol sees them: models of one version.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "inference/model_config.pb.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/program/operator_table.h"

namespace opserve::server {

inline constexpr absl::string_view kModelVersion = "1";

// kInvalidArgument: a version that is no number.  kNotFound: no such model or version, or, if no
// version is named, an operator that the ACL libraries lack.  kUnavailable: likewise, if it is
// named. Those of LoadedOperator::CheckAvailable, of one that no device computes right.
absl::StatusOr<const LoadedOperator*> FindModel(const OperatorTable& operators,
                                                absl::string_view name, absl::string_view version);

// As FindModel, but gives operators that the libraries lack, too, and null for no such model.
absl::StatusOr<const LoadedOperator*> LookUpModel(const OperatorTable& operators,
                                                  absl::string_view name,
                                                  absl::string_view version);

// "FP32"; the catalogue's dtypes all have a name. The reverse gives DATA_TYPE_UNSPECIFIED for
// dtypes that no operator takes.
absl::string_view DatatypeName(Dtype dtype);
Dtype DtypeOf(absl::string_view datatype);
inference::DataType ToModelDataType(Dtype dtype);

// "'FP32', 'FP16'".
std::string DatatypeNames(const std::vector<aclDataType>& dtypes);

// A mistake in a request, in words of this protocol; `argument`: the tensor or parameter at fault,
// or empty.
absl::Status InvalidInference(const catalog::OperatorDescriptor& model, absl::string_view argument,
                              absl::string_view message);

}  // namespace opserve::server
