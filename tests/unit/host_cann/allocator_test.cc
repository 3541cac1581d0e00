// Allocators by stream: kept and reported.
#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

void* Allocate(aclrtAllocator, size_t) { return nullptr; }
void FreeBlock(aclrtAllocator, aclrtAllocatorBlock) {}
void* AllocateAt(aclrtAllocator, size_t, aclrtAllocatorAddr) { return nullptr; }
void* AddressOf(aclrtAllocatorBlock block) { return block; }

class AllocatorTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    description_ = aclrtAllocatorCreateDesc();
    ASSERT_NE(description_, nullptr);
  }
  // All that is required.
  void Fill() {
    ASSERT_EQ(aclrtAllocatorSetObjToDesc(description_, this), ACL_SUCCESS);
    ASSERT_EQ(aclrtAllocatorSetAllocFuncToDesc(description_, &Allocate), ACL_SUCCESS);
    ASSERT_EQ(aclrtAllocatorSetFreeFuncToDesc(description_, &FreeBlock), ACL_SUCCESS);
    ASSERT_EQ(aclrtAllocatorSetGetAddrFromBlockFuncToDesc(description_, &AddressOf), ACL_SUCCESS);
  }
  // Reads the allocator of the stream into the members below.
  aclError Get(aclrtStream stream) {
    return aclrtAllocatorGetByStream(stream, &found_, &object_, &allocate_, &free_, &allocate_at_,
                                     &address_of_);
  }

  aclrtAllocatorDesc description_ = nullptr;
  aclrtAllocatorDesc found_ = nullptr;
  aclrtAllocator object_ = nullptr;
  aclrtAllocatorAllocFunc allocate_ = nullptr;
  aclrtAllocatorFreeFunc free_ = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_at_ = &AllocateAt;
  aclrtAllocatorGetAddrFromBlockFunc address_of_ = nullptr;
};

TEST_F(AllocatorTest, AStreamKeepsItsAllocator) {
  const aclrtStream stream = NewStream();
  const aclrtStream other = NewStream();
  Fill();
  ASSERT_EQ(aclrtAllocatorRegister(stream, description_), ACL_SUCCESS) << RecentMessage();
  // Later changes do not show, and the description need not live.
  ASSERT_EQ(aclrtAllocatorSetAllocAdviseFuncToDesc(description_, &AllocateAt), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorRegister(other, description_), ACL_SUCCESS);
  ASSERT_EQ(aclrtAllocatorDestroyDesc(description_), ACL_SUCCESS);

  for (const bool has_advised : {false, true}) {
    ASSERT_EQ(Get(has_advised ? other : stream), ACL_SUCCESS);
    EXPECT_EQ(found_, description_);
    EXPECT_EQ(object_, this);
    EXPECT_EQ(allocate_, &Allocate);
    EXPECT_EQ(free_, &FreeBlock);
    EXPECT_EQ(address_of_, &AddressOf);
    EXPECT_EQ(allocate_at_, has_advised ? &AllocateAt : nullptr);
  }
  EXPECT_EQ(aclrtAllocatorUnregister(stream), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorUnregister(stream), ACL_SUCCESS) << "again";
  EXPECT_EQ(Get(stream), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(Get(other), ACL_SUCCESS);
  ASSERT_EQ(aclrtDestroyStream(other), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorUnregister(other), ACL_SUCCESS) << "destroyed";
}

TEST_F(AllocatorTest, DescriptionsMustBeComplete) {
  const aclrtStream stream = NewStream();
  EXPECT_EQ(aclrtAllocatorRegister(stream, description_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorSetObjToDesc(description_, this), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorRegister(stream, description_), ACL_ERROR_INVALID_PARAM);
  EXPECT_NE(RecentMessage().find("the allocating function"), std::string::npos);
  Fill();
  EXPECT_EQ(aclrtAllocatorRegister(nullptr, description_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorSetAllocFuncToDesc(description_, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorSetObjToDesc(nullptr, this), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorDestroyDesc(description_), ACL_SUCCESS);
  EXPECT_EQ(aclrtAllocatorDestroyDesc(description_), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtAllocatorRegister(stream, description_), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace opserve::host_cann
