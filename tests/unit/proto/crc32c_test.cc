#include "proto/codec/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace opserve::codec {
namespace {

// Values of RFC 3720, B.4, and of the customary check string.
TEST(Crc32cTest, GivesTheStandardsValues) {
  std::string ascending;
  for (char c = 0; c < 32; ++c) ascending.push_back(c);
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
}

TEST(Crc32cTest, PiecesGiveTheSameAsTheWhole) {
  const absl::string_view data = "123456789";
  for (size_t cut = 0; cut <= data.size(); ++cut) {
    EXPECT_EQ(Crc32c(data.substr(cut), Crc32c(data.substr(0, cut))), Crc32c(data)) << cut;
  }
}

}  // namespace
}  // namespace opserve::codec
