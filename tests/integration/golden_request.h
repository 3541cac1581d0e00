// Calls of every operator: its golden case as a request.
#pragma once

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ops/catalog/attributes.h"
#include "ops/catalog/operator_descriptor.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/dtypes/element.h"

namespace opserve {

// The elements of a golden case's tensor, little-endian.
inline std::string ElementBytes(const catalog::GoldenCase::Tensor& tensor) {
  std::string bytes;
  VisitElement(catalog::ToWire(tensor.spec.dtype), [&]<typename T>(std::type_identity<T>) {
    using Number = std::conditional_t<std::is_class_v<T>, float, double>;
    for (const double value : tensor.values) {
      const T element = static_cast<T>(static_cast<Number>(value));
      bytes.append(reinterpret_cast<const char*>(&element), sizeof(element));
    }
  });
  return bytes;
}

// A request of one invocation, the operator's first golden case, with its payloads.
inline v1::ExecuteRequest GoldenRequest(const catalog::OperatorDescriptor& op) {
  const catalog::GoldenCase& golden = op.golden.front();
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_(op.name);
  const auto set_tensor = [&](const catalog::GoldenCase::Tensor& tensor, v1::Tensor* to) {
    to->set_dtype(catalog::ToWire(tensor.spec.dtype));
    to->mutable_shape()->Add(tensor.spec.shape.begin(), tensor.spec.shape.end());
    to->set_payload(static_cast<uint32_t>(request.payloads_size()));
    request.add_payloads(ElementBytes(tensor));
  };
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (golden.inputs[i].empty() && !op.inputs[i].is_list) continue;
    v1::NamedTensor* named = invocation->add_inputs();
    named->set_name(op.inputs[i].name);
    if (!op.inputs[i].is_list) {
      set_tensor(golden.inputs[i].front(), named->mutable_tensor());
      continue;
    }
    named->mutable_list();
    for (const auto& tensor : golden.inputs[i]) {
      set_tensor(tensor, named->mutable_list()->add_tensors());
    }
  }
  for (size_t i = 0; i < op.attributes.size(); ++i) {
    if (golden.attributes[i].index() == 0) continue;
    v1::NamedAttribute* attribute = invocation->add_attributes();
    attribute->set_name(op.attributes[i].name);
    *attribute->mutable_value() = catalog::ToProto(golden.attributes[i]);
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const catalog::OutputDescriptor& output = op.outputs[i];
    if (golden.outputs[i].empty() || output.is_list) continue;
    v1::OutputRequest* wanted = invocation->add_outputs();
    wanted->set_name(output.name);
    if (!output.dtypes.empty()) {
      wanted->set_dtype(catalog::ToWire(golden.outputs[i].front().spec.dtype));
    }
  }
  return request;
}

}  // namespace opserve
