#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/opdev/op_errno.h"

namespace opserve::host_cann {
namespace {

using Dims = std::vector<int64_t>;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

struct View {
  Dims shape = {2, 3};
  std::optional<Dims> strides = Dims{3, 1};
  int64_t offset = 0;
  Dims storage = {2, 3};
};

const int64_t* StridesOf(const View& view) { return view.strides ? view.strides->data() : nullptr; }

aclTensor* Create(const View& view, void* data = nullptr) {
  return aclCreateTensor(view.shape.data(), view.shape.size(), ACL_FLOAT, StridesOf(view),
                         view.offset, ACL_FORMAT_ND, view.storage.data(), view.storage.size(),
                         data);
}

template <typename Getter>
Dims Read(Getter getter, const aclTensor* tensor) {
  int64_t* values = nullptr;
  uint64_t count = 0;
  EXPECT_EQ(getter(tensor, &values, &count), ACLNN_SUCCESS);
  const std::unique_ptr<int64_t[]> owned(values);
  return Dims(values, values + count);
}

TEST(TensorTest, KeepsWhatItWasCreatedWith) {
  int data = 0;
  aclTensor* tensor = Create({{6, 5}, Dims{10, 1}, 22, {100}}, &data);
  ASSERT_NE(tensor, nullptr);

  int64_t offset = 0;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  aclDataType dtype = ACL_DT_UNDEFINED;
  void* address = nullptr;
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetFormat(tensor, &format), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetDataType(tensor, &dtype), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), ACLNN_SUCCESS);

  EXPECT_THAT(Read(aclGetViewShape, tensor), ElementsAre(6, 5));
  EXPECT_THAT(Read(aclGetViewStrides, tensor), ElementsAre(10, 1));
  EXPECT_THAT(Read(aclGetStorageShape, tensor), ElementsAre(100));
  EXPECT_EQ(offset, 22);
  EXPECT_EQ(format, ACL_FORMAT_ND);
  EXPECT_EQ(dtype, ACL_FLOAT);
  EXPECT_EQ(address, &data);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(TensorTest, WithoutStridesIsContiguous) {
  const struct {
    Dims shape;
    Dims strides;
  } cases[] = {{{}, {}}, {{4}, {1}}, {{2, 3, 4}, {12, 4, 1}}, {{2, 0, 3}, {3, 3, 1}}};
  for (const auto& [shape, strides] : cases) {
    aclTensor* tensor = Create({shape, std::nullopt, 0, shape});
    ASSERT_NE(tensor, nullptr);
    EXPECT_THAT(Read(aclGetViewStrides, tensor), ElementsAreArray(strides));
    EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  }
}

TEST(TensorTest, RefusesWhatDescribesNoMemory) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const struct {
    View view;
    const char* message;
  } cases[] = {
      {{{2, -1}, Dims{3, 1}, 0, {6}}, "viewDims: -1 at axis 1 is negative"},
      {{{2, 3}, Dims{3, -1}, 0, {6}}, "stride: -1 at axis 1 is negative"},
      {{{2, 3}, Dims{3, 1}, -4, {6}}, "offset: -4 is negative"},
      {{{2, 3}, Dims{3, 1}, 0, {-6}}, "storageDims: -6 at axis 0 is negative"},
      {{Dims(26, 1), Dims(26, 1), 0, {1}}, "viewDims: 26 axes are more than 25"},
      {{{kHuge, 8}, Dims{8, 1}, 0, {6}}, "viewDims: too many elements"},
      {{{kHuge, 8, 0}, std::nullopt, 0, {6}}, "viewDims: too many elements"},
      {{{2, 3}, Dims{3, 1}, 0, {kHuge, kHuge}}, "storageDims: too many elements"},
      {{{2, 3}, Dims{kHuge, 1}, 0, {6}}, "lead out of the address range"},
      {{{5, 3}, Dims{kHuge, 1}, 0, {6}}, "lead out of the address range"},
      {{{2, 3}, Dims{3, 1}, INT64_MAX, {6}}, "lead out of the address range"},
  };
  for (const auto& [view, message] : cases) {
    EXPECT_EQ(Create(view), nullptr) << message;
    const char* text = aclGetRecentErrMsg();
    EXPECT_THAT(text == nullptr ? "" : text, HasSubstr(message));
  }
}

TEST(TensorTest, RefusesNullArraysThatShouldHoldSomething) {
  const Dims dims = {2};
  EXPECT_EQ(
      aclCreateTensor(nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims.data(), 1, nullptr),
      nullptr);
  EXPECT_EQ(
      aclCreateTensor(dims.data(), 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr),
      nullptr);
}

TEST(TensorTest, InitDescribesAnotherViewAndKeepsTheAddressIfNoneIsGiven) {
  int first = 0;
  int second = 0;
  aclTensor* tensor = Create({}, &first);
  const Dims shape = {4};
  const auto init = [&](aclTensor* of, const Dims& dims, void* address) {
    return aclInitTensor(of, dims.data(), dims.size(), ACL_BF16, nullptr, 1, ACL_FORMAT_NCHW,
                         dims.data(), dims.size(), address);
  };
  void* address = nullptr;

  EXPECT_EQ(init(tensor, shape, nullptr), ACLNN_SUCCESS);
  EXPECT_THAT(Read(aclGetViewShape, tensor), ElementsAre(4));
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, &first);

  EXPECT_EQ(init(tensor, {-1}, &second), ACLNN_ERR_PARAM_INVALID);
  EXPECT_THAT(Read(aclGetViewShape, tensor), ElementsAre(4)) << "a refused call changed it";
  EXPECT_EQ(init(nullptr, shape, nullptr), ACLNN_ERR_PARAM_NULLPTR);

  EXPECT_EQ(init(tensor, shape, &second), ACLNN_SUCCESS);
  EXPECT_EQ(aclGetRawTensorAddr(tensor, &address), ACLNN_SUCCESS);
  EXPECT_EQ(address, &second);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(TensorTest, NullArgumentsOfGettersAreAnError) {
  aclTensor* tensor = Create({});
  int64_t* values = nullptr;
  uint64_t count = 0;
  int64_t offset = 0;

  EXPECT_EQ(aclGetViewShape(nullptr, &values, &count), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetViewShape(tensor, nullptr, &count), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetViewShape(tensor, &values, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetViewOffset(nullptr, &offset), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclGetViewOffset(tensor, nullptr), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclSetRawTensorAddr(tensor, nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclSetRawTensorAddr(nullptr, &offset), ACLNN_ERR_PARAM_NULLPTR);
  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(TensorTest, ADestroyedHandleIsRefusedEverywhere) {
  aclTensor* tensor = Create({});
  ASSERT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
  int64_t offset = 0;

  EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclGetViewOffset(tensor, &offset), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclSetRawTensorAddr(tensor, &offset), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclDumpOpTensors("KlDivBackward", "loss", &tensor, 1, 0, nullptr),
            ACLNN_ERR_PARAM_INVALID);
}

TEST(TensorTest, DumpPrintsALinePerTensor) {
  aclTensor* tensors[] = {Create({}), Create({{4}, Dims{2}, 0, {8}})};
  testing::internal::CaptureStdout();

  const aclnnStatus status = aclDumpOpTensors("KlDivBackward", "loss", tensors, 1, 1, nullptr);

  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "KlDivBackward loss input 0: dtype 0, format 2, shape [2,3], strides [3,1]\n"
            "KlDivBackward loss output 0: dtype 0, format 2, shape [4], strides [2]\n");
  EXPECT_EQ(status, ACLNN_SUCCESS);
  for (aclTensor* tensor : tensors) EXPECT_EQ(aclDestroyTensor(tensor), ACLNN_SUCCESS);
}

TEST(LibraryTest, InitTakesNoConfigurationOrAReadableOne) {
  EXPECT_EQ(aclnnInit(nullptr), ACLNN_SUCCESS);
  EXPECT_EQ(aclnnInit("/nonexistent/acl.json"), ACLNN_ERR_PARAM_INVALID);
  EXPECT_EQ(aclnnFinalize(), ACLNN_SUCCESS);
}

}  // namespace
}  // namespace opserve::host_cann
