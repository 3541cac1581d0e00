// Operators of a pack whose functions take contiguous tensors only, and calls of them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "ops/catalog/description_text.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/program/operator_table.h"
#include "server/program/resident_tensor.h"

namespace opserve::server {

// aclnnRsubs and aclnnCat, as if they took contiguous tensors only.
inline constexpr char kLaidOutText[] = R"text(
operator {
  name: "LaidOutSub"
  function: "aclnnRsubs"
  summary: "out = 10 - self."
  argument { name: "self" dtypes: "FLOAT" contiguous: true }
  argument { name: "other" kind: SCALAR }
  argument { name: "alpha" kind: SCALAR default: "1" }
  argument { name: "out" role: OUTPUT dtype: "like(self)" shape: "like(self)" }
  golden {
    input: "self = FLOAT [1, 2]"
    attribute: "other = 10"
    output: "out = FLOAT [9, 8]"
  }
}
operator {
  name: "LaidOutCat"
  function: "aclnnCat"
  summary: "Joins tensors."
  argument { name: "tensors" kind: TENSOR_LIST dtypes: "FLOAT" contiguous: true }
  argument { name: "dim" kind: INT64 default: "0" }
  argument { name: "out" role: OUTPUT dtype: "promote(tensors)" shape: "cat(tensors, dim)" }
  golden {
    input: "tensors.0 = FLOAT [1]"
    output: "out = FLOAT [1]"
  }
}
)text";

inline OperatorTable LaidOutOperators(const AclLibrary& acl) {
  auto descriptions = catalog::ReadDescriptions(kLaidOutText, "pack");
  EXPECT_TRUE(descriptions.ok()) << descriptions.status();
  OperatorPack pack;
  pack.name = "laid_out";
  for (catalog::DescribedOperator& op : descriptions->operators) {
    pack.operators.push_back(
        {std::make_shared<const catalog::OperatorDescriptor>(std::move(op.descriptor)), op.line});
  }
  std::vector<OperatorPack> packs;
  packs.push_back(std::move(pack));
  return OperatorTable(acl, std::move(packs));
}

inline absl::StatusOr<std::shared_ptr<ResidentTensor>> NoResident(absl::string_view) {
  return absl::NotFoundError("none");
}

struct View {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides = {};
  int64_t offset = 0;
};

inline void SetView(const View& view, v1::Tensor* to) {
  to->set_dtype(v1::DATA_TYPE_FLOAT);
  to->mutable_shape()->Add(view.shape.begin(), view.shape.end());
  to->mutable_strides()->Add(view.strides.begin(), view.strides.end());
  to->set_offset(view.offset);
}

// 10 - self. The caller sets the storage of `self`.
inline v1::Tensor* AddSub(const View& view, v1::ExecuteRequest* request) {
  v1::Invocation* invocation = request->add_invocations();
  invocation->set_operator_("LaidOutSub");
  v1::NamedAttribute* other = invocation->add_attributes();
  other->set_name("other");
  other->mutable_value()->set_double_value(10);
  v1::NamedTensor* self = invocation->add_inputs();
  self->set_name("self");
  SetView(view, self->mutable_tensor());
  return self->mutable_tensor();
}

}  // namespace opserve::server
