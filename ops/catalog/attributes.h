// Attributes of a call: from the caller's form to values in the descriptor's order, and back.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/catalog/attribute_values.h"
#include "ops/catalog/operator_descriptor.h"
#include "opserve/v1/operator.pb.h"
#include "proto/dtypes/tensor_spec.h"

namespace opserve::catalog {

using AttributeValues = absl::InlinedVector<AttributeValue, 4>;

// An attribute as a call gives it; both are the caller's.
struct GivenAttribute {
  absl::string_view name;
  const v1::AttributeValue* value = nullptr;  // never null
};

// One value per attribute of `descriptor`, in its order; defaults where `given` has none.
// kInvalidArgument (error.h): an unknown attribute, one given twice or missing, a value of another
// type or out of range, a list of more than kMaxListLength, an unknown name.
absl::StatusOr<AttributeValues> ResolveAttributes(const OperatorDescriptor& descriptor,
                                                  absl::Span<const GivenAttribute> given);

// Puts the value of `changed` in place of the one in `values`, which ResolveAttributes made.
// kInvalidArgument as there.
absl::Status ChangeAttribute(const OperatorDescriptor& descriptor, const GivenAttribute& changed,
                             AttributeValues* values);

// Most entries of an attribute that is a list, and most tensors of an input that is one.
inline constexpr int kMaxListLength = 4096;

// A value as it travels. Requires one that is there.
v1::AttributeValue ToProto(const AttributeValue& value);

// The wire's dtype of an ACL dtype, and the reverse: UNSPECIFIED and ACL_DT_UNDEFINED for those
// that are none of ours.
Dtype ToWire(aclDataType dtype);
aclDataType ToAcl(Dtype dtype);

}  // namespace opserve::catalog
