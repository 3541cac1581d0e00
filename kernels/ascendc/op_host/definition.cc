// The operator as the vendor's framework knows it: prototype, tiling, shape inference. Compiled by
// the vendor's toolchain only (package/); all decisions are in plan.h.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "plan.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace opserve::ascendc {
namespace {

// Of the attributes, in the order of the prototype below.
constexpr size_t kReduction = 0;
constexpr size_t kLogTarget = 1;

constexpr size_t kNumCombinations = 27;

Shape ShapeOf(const gert::Shape& shape) {
  Shape extents;
  for (size_t dim = 0; dim < shape.GetDimNum(); ++dim) extents.push_back(shape.GetDim(dim));
  return extents;
}

ge::graphStatus Tile(gert::TilingContext* context) {
  const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
  uint64_t unified_buffer_bytes = 0;
  platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, unified_buffer_bytes);
  Problem problem;
  for (int32_t input = 0; input < kNumInputs; ++input) {
    problem.shape[input] = ShapeOf(context->GetInputShape(input)->GetStorageShape());
    problem.element_bytes[input] =
        ge::GetSizeByDataType(context->GetInputDesc(input)->GetDataType());
  }
  problem.reduction = *context->GetAttrs()->GetAttrPointer<int64_t>(kReduction);
  problem.log_target = *context->GetAttrs()->GetAttrPointer<bool>(kLogTarget);

  Plan plan;
  std::string error;
  if (!MakePlan(problem, {platform.GetCoreNumAiv(), unified_buffer_bytes}, &plan, &error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return ge::GRAPH_FAILED;
  }
  *context->GetTilingData<KlDivTargetBackwardTiling>() = plan.tiling;
  context->SetBlockDim(static_cast<uint32_t>(std::max<int64_t>(plan.num_cores, 1)));
  context->GetWorkspaceSizes(1)[0] = 0;
  return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferShape(gert::InferShapeContext* context) {
  *context->GetOutputShape(0) = *context->GetInputShape(kTarget);
  return ge::GRAPH_SUCCESS;
}

ge::graphStatus InferDtype(gert::InferDataTypeContext* context) {
  context->SetOutputDataType(0, context->GetInputDataType(kTarget));
  return ge::GRAPH_SUCCESS;
}

// The dtypes of one tensor over all combinations of three: it changes with every `period`th.
std::vector<ge::DataType> Dtypes(size_t period) {
  constexpr ge::DataType kDtypes[] = {ge::DT_FLOAT, ge::DT_FLOAT16, ge::DT_BF16};
  std::vector<ge::DataType> dtypes;
  for (size_t i = 0; i < kNumCombinations; ++i) dtypes.push_back(kDtypes[i / period % 3]);
  return dtypes;
}

}  // namespace
}  // namespace opserve::ascendc

namespace ops {

// The framework takes the operator's name from the class.
class KlDivTargetBackward : public OpDef {
 public:
  explicit KlDivTargetBackward(const char* name) : OpDef(name) {
    const std::vector<ge::Format> formats(opserve::ascendc::kNumCombinations, ge::FORMAT_ND);
    this->Input("grad_output")
        .ParamType(REQUIRED)
        .DataType(opserve::ascendc::Dtypes(9))
        .Format(formats);
    this->Input("self").ParamType(REQUIRED).DataType(opserve::ascendc::Dtypes(3)).Format(formats);
    this->Input("target").ParamType(REQUIRED).DataType(opserve::ascendc::Dtypes(1)).Format(formats);
    this->Output("grad_target")
        .ParamType(REQUIRED)
        .DataType(opserve::ascendc::Dtypes(1))
        .Format(formats);
    this->Attr("reduction").AttrType(OPTIONAL).Int(0);
    this->Attr("log_target").AttrType(OPTIONAL).Bool(false);
    this->SetInferShape(opserve::ascendc::InferShape);
    this->SetInferDataType(opserve::ascendc::InferDtype);
    this->AICore().SetTiling(opserve::ascendc::Tile);
    this->AICore().AddConfig("ascend910b");
    this->AICore().AddConfig("ascend910_93");
  }
};

OP_ADD(KlDivTargetBackward);

}  // namespace ops
