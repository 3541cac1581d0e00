// Sums, maxima and minima between arrays of device memory.
#include <Eigen/Core>
#include <cmath>
#include <limits>

#include "tests/unit/host_cann/support.h"

namespace opserve::host_cann {
namespace {

constexpr aclrtReduceKind kSum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM;
constexpr aclrtReduceKind kMax = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX;
constexpr aclrtReduceKind kMin = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class ReduceTest : public RuntimeTest {
 protected:
  template <typename T>
  static std::vector<double> Reduce(aclrtReduceKind kind, aclDataType type,
                                    const std::vector<double>& dst,
                                    const std::vector<double>& src) {
    std::vector<T> to, from;
    for (const double value : dst) to.push_back(static_cast<T>(value));
    for (const double value : src) from.push_back(static_cast<T>(value));
    const size_t bytes = to.size() * sizeof(T);
    void* const to_device = NewDeviceMemory(bytes);
    void* const from_device = NewDeviceMemory(bytes);
    EXPECT_EQ(aclrtMemcpy(to_device, bytes, to.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
    EXPECT_EQ(aclrtMemcpy(from_device, bytes, from.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
    EXPECT_EQ(aclrtReduceAsync(to_device, from_device, bytes, kind, type, nullptr, nullptr), 0)
        << RecentMessage();
    EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtMemcpy(to.data(), bytes, to_device, bytes, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    std::vector<double> result;
    for (const T value : to) result.push_back(static_cast<double>(value));
    return result;
  }
  static std::vector<double> Reduce(aclrtReduceKind kind, aclDataType type,
                                    const std::vector<double>& dst,
                                    const std::vector<double>& src) {
    switch (type) {
      case ACL_INT8:
        return Reduce<int8_t>(kind, type, dst, src);
      case ACL_INT16:
        return Reduce<int16_t>(kind, type, dst, src);
      case ACL_INT32:
        return Reduce<int32_t>(kind, type, dst, src);
      case ACL_FLOAT16:
        return Reduce<Eigen::half>(kind, type, dst, src);
      case ACL_BF16:
        return Reduce<Eigen::bfloat16>(kind, type, dst, src);
      default:
        return Reduce<float>(kind, type, dst, src);
    }
  }
};

TEST_F(ReduceTest, JoinsElementsOfEveryType) {
  for (const aclDataType type :
       {ACL_INT8, ACL_INT16, ACL_INT32, ACL_FLOAT16, ACL_BF16, ACL_FLOAT}) {
    SCOPED_TRACE(type);
    const std::vector<double> dst = {1, -2, 3, 100, 0}, src = {4, 5, -6, 7, 0};
    EXPECT_EQ(Reduce(kSum, type, dst, src), (std::vector<double>{5, 3, -3, 107, 0}));
    EXPECT_EQ(Reduce(kMax, type, dst, src), (std::vector<double>{4, 5, 3, 100, 0}));
    EXPECT_EQ(Reduce(kMin, type, dst, src), (std::vector<double>{1, -2, -6, 7, 0}));
  }
}

TEST_F(ReduceTest, IntegersWrapAndHalvesAreRoundedOnce) {
  EXPECT_EQ(Reduce(kSum, ACL_INT8, {127, -128}, {1, -1}), (std::vector<double>{-128, 127}));
  EXPECT_EQ(Reduce(kSum, ACL_INT32, {2147483647}, {1}), (std::vector<double>{-2147483648.0}));
  // To nearest, ties to even.
  EXPECT_EQ(Reduce(kSum, ACL_FLOAT16, {2048, 2050}, {1, 1}), (std::vector<double>{2048, 2052}));
  EXPECT_EQ(Reduce(kSum, ACL_BF16, {256, 258}, {1, 1}), (std::vector<double>{256, 260}));
}

TEST_F(ReduceTest, NanWins) {
  for (const aclrtReduceKind kind : {kSum, kMax, kMin}) {
    for (const aclDataType type : {ACL_FLOAT16, ACL_BF16, ACL_FLOAT}) {
      for (const double value : Reduce(kind, type, {kNan, 1, kNan}, {1, kNan, kNan})) {
        EXPECT_TRUE(std::isnan(value)) << kind << " " << type;
      }
    }
  }
}

TEST_F(ReduceTest, BadArguments) {
  void* const dst = NewDeviceMemory(8);
  void* const src = NewDeviceMemory(8);
  float host[2] = {};
  const auto reduce = [&](void* to, const void* from, uint64_t bytes, int kind, aclDataType type,
                          void* reserve = nullptr) {
    return aclrtReduceAsync(to, from, bytes, static_cast<aclrtReduceKind>(kind), type, nullptr,
                            reserve);
  };
  const struct {
    const char* name;
    aclError code;
    aclError expected;
  } kCases[] = {
      {"null dst", reduce(nullptr, src, 8, 10, ACL_FLOAT), 100000},
      {"null src", reduce(dst, nullptr, 8, 10, ACL_FLOAT), 100000},
      {"nothing", reduce(dst, src, 0, 10, ACL_FLOAT), 107000},
      {"half an element", reduce(dst, src, 6, 10, ACL_FLOAT), 107000},
      {"unknown kind", reduce(dst, src, 8, 14, ACL_FLOAT), 107000},
      {"equal", reduce(dst, src, 8, 13, ACL_FLOAT), 207000},
      {"type", reduce(dst, src, 8, 10, ACL_DOUBLE), 207000},
      {"no type", reduce(dst, src, 8, 10, ACL_DT_UNDEFINED), 207000},
      {"reserve", reduce(dst, src, 8, 10, ACL_FLOAT, host), 107000},
      {"host memory", reduce(dst, host, 8, 10, ACL_FLOAT), 107000},
      {"too long", reduce(dst, src, 12, 10, ACL_FLOAT), 107000},
  };
  for (const auto& c : kCases) EXPECT_EQ(c.code, c.expected) << c.name;
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_SUCCESS);
}

TEST_F(ReduceTest, MemoryFreedMeanwhileFailsTheTask) {
  void* const dst = NewDeviceMemory(8);
  void* const src = NewDeviceMemory(8);
  Gate gate;
  gate.Close(nullptr);
  ASSERT_EQ(aclrtReduceAsync(dst, src, 8, kSum, ACL_FLOAT, nullptr, nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtFree(src), ACL_SUCCESS);
  gate.Open();
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_SYS_DMA);
}

}  // namespace
}  // namespace opserve::host_cann
