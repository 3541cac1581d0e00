// The descriptions of models that clients read before they use one.
#pragma once

#include "inference/grpc_service.pb.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::server {

// Shapes are [-1]: of any rank and size. The datatype is the operator's first; properties name the
// others, and the attributes.
void DescribeModel(const catalog::OperatorDescriptor& model,
                   inference::ModelMetadataResponse* metadata);
void DescribeModel(const catalog::OperatorDescriptor& model, inference::ModelConfig* config);

}  // namespace opserve::server
