#include "tests/conformance/c_abi_call.h"

#include <map>
#include <stdexcept>
#include <variant>

#include "aclnnop/aclnn_kl_div_backward.h"
#include "aclnnop/aclnn_kl_div_target_backward.h"
#include "aclnnop/aclnn_l1_loss_backward.h"
#include "aclnnop/aclnn_logsoftmax_backward.h"
#include "aclnnop/aclnn_mse_loss_backward.h"

namespace opserve::conformance {
namespace {

aclFormat FormatOf(const std::string& name) {
  static const std::map<std::string, aclFormat> formats = {{"NCHW", ACL_FORMAT_NCHW},
                                                           {"NHWC", ACL_FORMAT_NHWC},
                                                           {"ND", ACL_FORMAT_ND},
                                                           {"NC1HWC0", ACL_FORMAT_NC1HWC0},
                                                           {"FRACTAL_Z", ACL_FORMAT_FRACTAL_Z},
                                                           {"HWCN", ACL_FORMAT_HWCN},
                                                           {"NDHWC", ACL_FORMAT_NDHWC},
                                                           {"FRACTAL_NZ", ACL_FORMAT_FRACTAL_NZ},
                                                           {"NCDHW", ACL_FORMAT_NCDHW},
                                                           {"NDC1HWC0", ACL_FORMAT_NDC1HWC0},
                                                           {"NCL", ACL_FORMAT_NCL}};
  return formats.at(name);
}

int64_t IntegerAttribute(const Case& of, const char* name) {
  return std::get<int64_t>(of.attributes.at(name));
}

bool BoolAttribute(const Case& of, const char* name) {
  return std::get<bool>(of.attributes.at(name));
}

}  // namespace

aclDataType DtypeOf(const std::string& name) {
  static const std::map<std::string, aclDataType> dtypes = {
      {"FLOAT", ACL_FLOAT},         {"FLOAT16", ACL_FLOAT16},       {"INT8", ACL_INT8},
      {"INT32", ACL_INT32},         {"UINT8", ACL_UINT8},           {"INT16", ACL_INT16},
      {"UINT16", ACL_UINT16},       {"UINT32", ACL_UINT32},         {"INT64", ACL_INT64},
      {"UINT64", ACL_UINT64},       {"DOUBLE", ACL_DOUBLE},         {"BOOL", ACL_BOOL},
      {"COMPLEX64", ACL_COMPLEX64}, {"COMPLEX128", ACL_COMPLEX128}, {"BF16", ACL_BF16}};
  return dtypes.at(name);
}

aclTensor* CreateDescriptor(const std::optional<Tensor>& tensor, void* address) {
  if (!tensor) return nullptr;
  return aclCreateTensor(tensor->shape.data(), tensor->shape.size(), DtypeOf(tensor->dtype),
                         tensor->strides.data(), tensor->offset, FormatOf(tensor->format),
                         tensor->storage_shape.data(), tensor->storage_shape.size(), address);
}

aclnnStatus StageOne(const Case& of, const std::vector<aclTensor*>& inputs, aclTensor* output,
                     uint64_t* workspace_size, aclOpExecutor** executor) {
  if (of.operator_name == "aclnnKlDivBackward") {
    return aclnnKlDivBackwardGetWorkspaceSize(
        inputs.at(0), inputs.at(1), inputs.at(2), IntegerAttribute(of, "reduction"),
        BoolAttribute(of, "logTarget"), output, workspace_size, executor);
  }
  if (of.operator_name == "aclnnKlDivTargetBackward") {
    return aclnnKlDivTargetBackwardGetWorkspaceSize(
        inputs.at(0), inputs.at(1), inputs.at(2), IntegerAttribute(of, "reduction"),
        BoolAttribute(of, "logTarget"), output, workspace_size, executor);
  }
  if (of.operator_name == "aclnnL1LossBackward") {
    return aclnnL1LossBackwardGetWorkspaceSize(inputs.at(0), inputs.at(1), inputs.at(2),
                                               IntegerAttribute(of, "reduction"), output,
                                               workspace_size, executor);
  }
  if (of.operator_name == "aclnnLogSoftmaxBackward") {
    return aclnnLogSoftmaxBackwardGetWorkspaceSize(
        inputs.at(0), inputs.at(1), IntegerAttribute(of, "dim"), output, workspace_size, executor);
  }
  if (of.operator_name == "aclnnMseLossBackward") {
    return aclnnMseLossBackwardGetWorkspaceSize(inputs.at(0), inputs.at(1), inputs.at(2),
                                                IntegerAttribute(of, "reduction"), output,
                                                workspace_size, executor);
  }
  throw std::invalid_argument("unknown operator " + of.operator_name);
}

aclnnStatus StageTwo(const Case& of, void* workspace, uint64_t workspace_size,
                     aclOpExecutor* executor, aclrtStream stream) {
  static const std::map<std::string, decltype(&aclnnKlDivBackward)> functions = {
      {"aclnnKlDivBackward", aclnnKlDivBackward},
      {"aclnnKlDivTargetBackward", aclnnKlDivTargetBackward},
      {"aclnnL1LossBackward", aclnnL1LossBackward},
      {"aclnnLogSoftmaxBackward", aclnnLogSoftmaxBackward},
      {"aclnnMseLossBackward", aclnnMseLossBackward}};
  return functions.at(of.operator_name)(workspace, workspace_size, executor, stream);
}

}  // namespace opserve::conformance
