// As much of CANN's headers as kernels/ascendc/op_host/definition.cc and op_api need in order to be
// compiled, not run: declarations after the public API reference, so that mistakes of ours show
// without the toolkit. They prove nothing about the toolkit's own headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ge {
enum DataType : int32_t { DT_FLOAT = 0, DT_FLOAT16 = 1, DT_BF16 = 27 };
enum Format : int32_t { FORMAT_ND = 2 };
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_FAILED = 0xFFFFFFFF;
constexpr graphStatus GRAPH_SUCCESS = 0;
int GetSizeByDataType(DataType type);
}  // namespace ge

namespace gert {
class Shape {
 public:
  size_t GetDimNum() const;
  int64_t GetDim(size_t dim) const;
};
class StorageShape {
 public:
  const Shape& GetStorageShape() const;
};
class CompileTimeTensorDesc {
 public:
  ge::DataType GetDataType() const;
};
class RuntimeAttrs {
 public:
  template <typename T>
  const T* GetAttrPointer(size_t index) const;
};
class TilingContext {
 public:
  void* GetPlatformInfo() const;
  const StorageShape* GetInputShape(size_t index) const;
  const CompileTimeTensorDesc* GetInputDesc(size_t index) const;
  const RuntimeAttrs* GetAttrs() const;
  template <typename T>
  T* GetTilingData();
  ge::graphStatus SetBlockDim(uint32_t cores);
  size_t* GetWorkspaceSizes(size_t count);
};
class InferShapeContext {
 public:
  const Shape* GetInputShape(size_t index) const;
  Shape* GetOutputShape(size_t index);
};
class InferDataTypeContext {
 public:
  ge::DataType GetInputDataType(size_t index) const;
  ge::graphStatus SetOutputDataType(size_t index, ge::DataType type);
};
}  // namespace gert

namespace platform_ascendc {
enum class CoreMemType { UB };
class PlatformAscendC {
 public:
  explicit PlatformAscendC(void* info);
  uint32_t GetCoreNumAiv() const;
  void GetCoreMemSize(const CoreMemType& type, uint64_t& bytes) const;
};
}  // namespace platform_ascendc

namespace ops {
enum Option { REQUIRED, OPTIONAL };
class OpParamDef {
 public:
  OpParamDef& ParamType(Option option);
  OpParamDef& DataType(std::vector<ge::DataType> types);
  OpParamDef& Format(std::vector<ge::Format> formats);
};
class OpAttrDef {
 public:
  OpAttrDef& AttrType(Option option);
  OpAttrDef& Int(int64_t value);
  OpAttrDef& Bool(bool value);
};
class OpAICoreDef {
 public:
  OpAICoreDef& SetTiling(ge::graphStatus (*function)(gert::TilingContext*));
  void AddConfig(const char* soc);
};
class OpDef {
 public:
  explicit OpDef(const char* type);
  OpParamDef& Input(const char* name);
  OpParamDef& Output(const char* name);
  OpAttrDef& Attr(const char* name);
  OpDef& SetInferShape(ge::graphStatus (*function)(gert::InferShapeContext*));
  OpDef& SetInferDataType(ge::graphStatus (*function)(gert::InferDataTypeContext*));
  OpAICoreDef& AICore();
};
#define OP_ADD(type) const type registered(#type)
}  // namespace ops

namespace op {
using Shape = gert::Shape;
using DataType = ge::DataType;
using Format = ge::Format;
}  // namespace op

struct aclTensor {
  const op::Shape& GetViewShape() const;
  op::DataType GetDataType() const;
  op::Format GetStorageFormat() const;
  op::Format GetViewFormat() const;
  bool IsEmpty() const;
};
struct aclOpExecutor {
  aclTensor* AllocTensor(const op::Shape& shape, op::DataType type, op::Format format);
  uint64_t GetWorkspaceSize();
};
class UniqueExecutor {
 public:
  aclOpExecutor* get();
  aclOpExecutor* operator->();
  void ReleaseTo(aclOpExecutor** executor);
};
UniqueExecutor CreateExecutor();
int32_t CommonOpExecutorRun(void* workspace, uint64_t size, aclOpExecutor* executor, void* stream);
int32_t Log(int32_t status, const char* format, ...) __attribute__((format(printf, 2, 3)));
template <typename... Arguments>
int32_t Use(const Arguments&... arguments);

namespace l0op {
const aclTensor* Contiguous(const aclTensor* tensor, aclOpExecutor* executor);
const aclTensor* ViewCopy(const aclTensor* from, const aclTensor* to, aclOpExecutor* executor);
const aclTensor* ReFormat(const aclTensor* tensor, const op::Format& format,
                          aclOpExecutor* executor = nullptr);
}  // namespace l0op

constexpr int32_t ACLNN_SUCCESS = 0;
constexpr int32_t ACLNN_ERR_PARAM_NULLPTR = 161001;
constexpr int32_t ACLNN_ERR_PARAM_INVALID = 161002;
constexpr int32_t ACLNN_ERR_INNER_CREATE_EXECUTOR = 561101;
constexpr int32_t ACLNN_ERR_INNER_NULLPTR = 561103;

#define OP_TYPE_REGISTER(type) int type##OpTypeId()
#define OP_INPUT(...) Use(__VA_ARGS__)
#define OP_OUTPUT(...) Use(__VA_ARGS__)
#define OP_ATTR(...) Use(__VA_ARGS__)
#define ADD_TO_LAUNCHER_LIST_AICORE(type, ...) (type##OpTypeId(), Use(executor, __VA_ARGS__))
#define DFX_IN(...) Use(__VA_ARGS__)
#define DFX_OUT(...) Use(__VA_ARGS__)
#define L0_DFX(name, ...) Use(__VA_ARGS__)
#define L2_DFX_PHASE_1(name, in, out) Use(in, out)
#define L2_DFX_PHASE_2(name) Use(#name)
#define CREATE_EXECUTOR() CreateExecutor()
#define OP_LOGE(status, ...) Log(status, __VA_ARGS__)
