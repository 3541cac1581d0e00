// The parameters of a request: some say how to treat it, the others are the operator's attributes.
#pragma once

#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/map.h"
#include "inference/grpc_service.pb.h"
#include "ops/catalog/operator_descriptor.h"
#include "opserve/v1/operator.pb.h"
#include "server/request/given_request.h"

namespace opserve::server {

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;

// Puts the values of `parameters` into `request`, whose only invocation is one of `model`, and into
// `timeout`, unless it names none. `values` gets those of attributes, to which the request refers,
// as it does to `parameters`. Attributes are taken in any type that leaves no doubt, since
// clients lack some.
// kInvalidArgument: names the parameter and the type that it takes.
absl::Status ReadRequestParameters(const catalog::OperatorDescriptor& model,
                                   const InferParameters& parameters, GivenRequest* request,
                                   std::deque<v1::AttributeValue>* values, absl::Duration* timeout);

// "invalid value type for 'NAME' parameter, expected EXPECTED".
absl::Status WrongParameterType(const catalog::OperatorDescriptor& model, absl::string_view name,
                                absl::string_view expected);

}  // namespace opserve::server
