// Data buffers: what they hold, and handles that are none.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

TEST(DataBufferTest, HoldsAnAddressAndASize) {
  char bytes[2];
  constexpr size_t kLarge = (size_t{1} << 32) + 5;
  aclDataBuffer* const buffer = aclCreateDataBuffer(&bytes[0], 1);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), &bytes[0]);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), 1u);

  EXPECT_EQ(aclUpdateDataBuffer(buffer, &bytes[1], kLarge), ACL_SUCCESS);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), &bytes[1]);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), kLarge);
  EXPECT_EQ(aclGetDataBufferSize(buffer), 5u) << "the older form has 32 bits";
  EXPECT_EQ(aclUpdateDataBuffer(buffer, nullptr, 0), ACL_SUCCESS);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_SUCCESS);

  EXPECT_EQ(aclDestroyDataBuffer(buffer), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclUpdateDataBuffer(buffer, nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
}

TEST(DataBufferTest, NullIsNone) {
  EXPECT_EQ(aclDestroyDataBuffer(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclUpdateDataBuffer(nullptr, nullptr, 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetDataBufferAddr(nullptr), nullptr);
  EXPECT_EQ(aclGetDataBufferSize(nullptr), 0u);
  EXPECT_EQ(aclGetDataBufferSizeV2(nullptr), 0u);
}

}  // namespace
}  // namespace opserve::host_cann
