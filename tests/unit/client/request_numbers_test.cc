// The identities that a client gives its requests.

#include "client/cpp/request_numbers.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace opserve {
namespace {

v1::RequestIdentity IdentityFrom(RequestNumbers& numbers, RequestNumbers::Ticket* ticket) {
  v1::RequestIdentity identity;
  *ticket = numbers.Take(&identity);
  return identity;
}

TEST(RequestNumbersTest, NumbersRiseUnderOneRandomName) {
  RequestNumbers numbers;
  RequestNumbers others;
  RequestNumbers::Ticket first, second, other;

  const v1::RequestIdentity one = IdentityFrom(numbers, &first);
  const v1::RequestIdentity two = IdentityFrom(numbers, &second);

  EXPECT_EQ(one.client().size(), 16u);
  EXPECT_EQ(two.client(), one.client());
  EXPECT_GT(two.number(), one.number());
  EXPECT_NE(IdentityFrom(others, &other).client(), one.client());
}

TEST(RequestNumbersTest, WhatMayBeRepeatedIsNotAnswered) {
  RequestNumbers numbers;
  RequestNumbers::Ticket first, second, third;

  const v1::RequestIdentity one = IdentityFrom(numbers, &first);
  EXPECT_EQ(one.answered_below(), one.number());
  const v1::RequestIdentity two = IdentityFrom(numbers, &second);
  EXPECT_EQ(two.answered_below(), one.number());

  second = {};  // the first one is still under way
  EXPECT_EQ(IdentityFrom(numbers, &third).answered_below(), one.number());
  first = {};
  const v1::RequestIdentity four = IdentityFrom(numbers, &first);
  EXPECT_EQ(four.answered_below(), two.number() + 1);
}

TEST(RequestNumbersTest, ATicketMayMoveAndOutliveItsNumbers) {
  RequestNumbers::Ticket moved;
  {
    RequestNumbers numbers;
    RequestNumbers::Ticket ticket;
    const uint64_t number = IdentityFrom(numbers, &ticket).number();
    moved = std::move(ticket);
    ticket = {};  // it has none any more
    RequestNumbers::Ticket next;
    EXPECT_EQ(IdentityFrom(numbers, &next).answered_below(), number);
  }
}

}  // namespace
}  // namespace opserve
