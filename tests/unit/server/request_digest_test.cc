// When two requests are the same.

#include "server/request/request_digest.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/native/native_request.h"

namespace opserve::server {
namespace {

using ::testing::Each;
using ::testing::Ne;

v1::ExecuteRequest Header(const std::string& op) {
  v1::ExecuteRequest header;
  header.add_invocations()->set_operator_(op);
  header.set_idempotency_key("key");
  return header;
}

RequestDigest DigestOf(const v1::ExecuteRequest& header,
                       const std::vector<codec::Payload>& payloads) {
  return server::DigestOf(TranslateRequest(header).fields, payloads);
}

// Payloads in pieces as they might come from the network. The pieces are literals.
std::vector<codec::Payload> Payloads(const std::vector<std::vector<absl::string_view>>& payloads) {
  std::vector<codec::Payload> result;
  for (const auto& pieces : payloads) {
    codec::Payload& payload = result.emplace_back();
    for (absl::string_view piece : pieces) {
      payload.pieces.push_back(piece);
      payload.size += piece.size();
    }
  }
  return result;
}

TEST(RequestDigestTest, IsThatOfTheBytesAndNotOfTheirPieces) {
  EXPECT_EQ(DigestOf(Header("A"), Payloads({{"abc", "d"}, {}})),
            DigestOf(Header("A"), Payloads({{"a", "", "bcd"}, {""}})));
}

// A request that was announced may be sent again as a whole.
TEST(RequestDigestTest, IsThatOfBytesThatComeOneAfterTheOther) {
  RequestDigester digester(TranslateRequest(Header("A")).fields, {4, 0, 2});
  for (const absl::string_view bytes : {"a", "bcd", "", "ef"}) digester.Add(bytes);

  EXPECT_EQ(digester.Finish(), DigestOf(Header("A"), Payloads({{"abcd"}, {}, {"ef"}})));
}

TEST(RequestDigestTest, IsOfTheFieldsInWhateverOrderTheyCame) {
  // invocations {}, want_receipt true, idempotency_key "k"; then in another order
  v1::ExecuteRequest one;
  v1::ExecuteRequest other;
  ASSERT_TRUE(one.ParseFromString(std::string("\x0a\x00\x18\x01\x22\x01k", 7)));
  ASSERT_TRUE(other.ParseFromString(std::string("\x22\x01k\x18\x01\x0a\x00", 7)));

  EXPECT_EQ(DigestOf(one, {}), DigestOf(other, {}));
}

TEST(RequestDigestTest, ChangesWithWhateverChanges) {
  v1::ExecuteRequest with_unknown_field = Header("A");
  ASSERT_TRUE(with_unknown_field.MergeFromString("\xf8\x07\x01"));  // field 127: 1
  const std::vector<RequestDigest> others = {
      DigestOf(Header("B"), Payloads({{"ab"}, {"c"}})),
      DigestOf(with_unknown_field, Payloads({{"ab"}, {"c"}})),
      DigestOf(Header("A"), Payloads({{"ab"}, {"d"}})),
      DigestOf(Header("A"), Payloads({{"a"}, {"bc"}})),
      DigestOf(Header("A"), Payloads({{"ab"}, {"c"}, {}})),
      DigestOf(Header("A"), Payloads({{"abc"}})),
  };

  EXPECT_THAT(others, Each(Ne(DigestOf(Header("A"), Payloads({{"ab"}, {"c"}})))));
}

}  // namespace
}  // namespace opserve::server
