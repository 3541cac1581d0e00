// The half types against Eigen's, an independent implementation of the same rounding.

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <random>

#include "gtest/gtest.h"
#include "kernels/cpu/convert.h"
#include "tests/seed.h"

namespace opserve::kernels {
namespace {

TEST(EigenPeerTest, FloatsOfAllMagnitudesNarrowToTheSameBits) {
  std::mt19937 random(TestSeed());
  for (int i = 0; i < 2'000'000; ++i) {
    // Half of them lie on or next to a tie, where truncation and careless rounding differ.
    const uint32_t tie = random() % 2 == 0 ? 0xffffffffu : 0xffff8000u;
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()) & tie);
    if (std::isnan(value)) continue;
    ASSERT_EQ(Narrowed<Half>(value).bits, Eigen::numext::bit_cast<uint16_t>(Eigen::half(value)))
        << value;
    ASSERT_EQ(Narrowed<Bfloat16>(value).bits,
              Eigen::numext::bit_cast<uint16_t>(Eigen::bfloat16(value)))
        << value;
  }
}

TEST(EigenPeerTest, EveryHalfWidensToTheSameFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto raw = static_cast<uint16_t>(bits);
    const auto half = static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(raw));
    const auto bfloat16 = static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(raw));
    if (!std::isnan(half)) {
      ASSERT_EQ(Widened(Half{raw}), half) << bits;
    }
    if (!std::isnan(bfloat16)) {
      ASSERT_EQ(Widened(Bfloat16{raw}), bfloat16) << bits;
    }
  }
}

}  // namespace
}  // namespace opserve::kernels
