#include "proto/codec/payload_message.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "opserve/v1/operator_service.pb.h"
#include "tests/seed.h"

namespace opserve::codec {
namespace {

using ::testing::HasSubstr;

// A message as gRPC may deliver it: cut into slices of at most `slice_bytes`.
grpc::ByteBuffer Delivered(const std::string& bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += slice_bytes) {
    slices.emplace_back(bytes.substr(at, slice_bytes));
  }
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string Joined(const Payload& payload) {
  std::string bytes;
  for (absl::string_view piece : payload.pieces) bytes.append(piece.data(), piece.size());
  return bytes;
}

std::string Joined(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices).ok();
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

v1::ExecuteRequest ExampleRequest() {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("L1LossBackward");
  for (const char* name : {"grad_output", "self", "target"}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->add_shape(3);
    input->mutable_tensor()->set_payload(request.payloads_size());
    request.add_payloads(std::string(12, static_cast<char>('a' + request.payloads_size())));
  }
  request.add_payloads("");
  request.set_want_receipt(true);
  return request;
}

// Whether Split and ParseHeader together accept the bytes, and if so the whole message.
bool Accepts(const std::string& bytes, v1::ExecuteRequest* request) {
  auto message = PayloadMessage::Split(Delivered(bytes, 7), /*max_payloads=*/1000);
  if (!message.ok() || !message->ParseHeader(request).ok()) return false;
  for (const Payload& payload : message->payloads()) request->add_payloads(Joined(payload));
  return true;
}

TEST(PayloadMessageTest, TakesApartWhatTheStockSerializerWroteHoweverItIsCut) {
  const v1::ExecuteRequest request = ExampleRequest();
  const std::string bytes = request.SerializeAsString();

  for (size_t slice_bytes = 1; slice_bytes <= bytes.size(); ++slice_bytes) {
    auto message = PayloadMessage::Split(Delivered(bytes, slice_bytes), 4);
    ASSERT_TRUE(message.ok()) << message.status();

    v1::ExecuteRequest header;
    ASSERT_TRUE(message->ParseHeader(&header).ok());
    EXPECT_EQ(header.payloads_size(), 0);
    for (const std::string& payload : request.payloads()) header.add_payloads(payload);
    EXPECT_EQ(header.SerializeAsString(), bytes) << "slices of " << slice_bytes;
    ASSERT_EQ(message->payloads().size(), 4u);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(Joined(message->payloads()[i]), request.payloads(i));
  }
}

TEST(PayloadMessageTest, PayloadsStayWhereTheyArrived) {
  v1::ExecuteRequest request;
  request.add_payloads(std::string(100000, 'x'));
  grpc::Slice slice(request.SerializeAsString());
  const grpc::ByteBuffer buffer(&slice, 1);

  auto message = PayloadMessage::Split(buffer, 1);

  ASSERT_TRUE(message.ok());
  const auto* piece = reinterpret_cast<const uint8_t*>(message->payloads()[0].pieces[0].data());
  EXPECT_GE(piece, slice.begin());
  EXPECT_LT(piece, slice.end());
}

TEST(PayloadMessageTest, BuildsWhatTheStockParserReads) {
  v1::ExecuteResponse header;
  header.add_results()->mutable_tensor()->set_payload(0);
  const std::vector<grpc::Slice> payloads = {grpc::Slice(std::string(300, 'p')), grpc::Slice(),
                                             grpc::Slice("end")};

  const grpc::ByteBuffer buffer = BuildPayloadMessage(header, payloads);

  v1::ExecuteResponse parsed;
  ASSERT_TRUE(parsed.ParseFromString(Joined(buffer)));
  ASSERT_EQ(parsed.payloads_size(), 3);
  EXPECT_EQ(parsed.payloads(0), std::string(300, 'p'));
  EXPECT_EQ(parsed.payloads(1), "");
  EXPECT_EQ(parsed.payloads(2), "end");
  parsed.clear_payloads();
  EXPECT_EQ(parsed.SerializeAsString(), header.SerializeAsString());
}

// Other protocols have their payloads in other fields, and answers of streams inside a message.
TEST(PayloadMessageTest, BuildsAndTakesApartMessagesOfOtherProtocols) {
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{100'000}}) {
    inference::ModelInferResponse header;
    header.set_id("7");
    const std::vector<grpc::Slice> payloads = {grpc::Slice(std::string(bytes, 'p')), grpc::Slice()};
    const auto check = [&](const inference::ModelInferResponse& read) {
      EXPECT_EQ(read.id(), "7");
      ASSERT_EQ(read.raw_output_contents_size(), 2);
      EXPECT_EQ(read.raw_output_contents(0), std::string(bytes, 'p'));
      EXPECT_EQ(read.raw_output_contents(1), "");
    };
    inference::ModelInferResponse single;
    ASSERT_TRUE(
        single.ParseFromString(Joined(BuildPayloadMessage(header, payloads, {.field = 6}))));
    check(single);
    inference::ModelStreamInferResponse streamed;
    ASSERT_TRUE(streamed.ParseFromString(
        Joined(BuildPayloadMessage(header, payloads, {.field = 6, .wrapper_field = 2}))));
    check(streamed.infer_response());

    auto message = PayloadMessage::Split(Delivered(single.SerializeAsString(), 7), 2, 6);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(Joined(message->payloads()[0]), std::string(bytes, 'p'));
  }
}

TEST(PayloadMessageTest, AddedPayloadsComeBehindTheOthersAndMoveWithTheMessage) {
  auto message = PayloadMessage::Split(Delivered(ExampleRequest().SerializeAsString(), 7), 10);
  ASSERT_TRUE(message.ok());
  for (char c : {'x', 'y', 'z'}) *message->AddPayload(1) = c;
  message->AddPayload(0);
  const PayloadMessage moved = *std::move(message);
  ASSERT_EQ(moved.payloads().size(), 8u);
  EXPECT_EQ(Joined(moved.payloads()[0]), ExampleRequest().payloads(0));
  EXPECT_EQ(Joined(moved.payloads()[4]), "x");
  EXPECT_EQ(Joined(moved.payloads()[6]), "z");
  EXPECT_EQ(Joined(moved.payloads()[7]), "");
}

TEST(PayloadMessageTest, MoreMessagesOfNothing) {
  EXPECT_EQ(BuildPayloadMessage(v1::ExecuteResponse(), {}).Length(), 0u);

  auto message = PayloadMessage::Split(Delivered("", 1), 0);

  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(message->payloads().empty());
}

TEST(PayloadMessageTest, TooManyPayloadsAreRefused) {
  auto message = PayloadMessage::Split(Delivered(ExampleRequest().SerializeAsString(), 64), 3);

  EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(message.status().message()), HasSubstr("more than 3 payloads"));
}

TEST(PayloadMessageTest, WhatLooksLikeAPayloadInsideAnUnknownGroupIsNone) {
  const std::string bytes = "\xa3\x01\x7a\x01x\xa4\x01";  // group 20 { 15: "x" }

  v1::ExecuteRequest stock;
  ASSERT_TRUE(stock.ParseFromString(bytes));
  v1::ExecuteRequest ours;
  EXPECT_TRUE(Accepts(bytes, &ours));
  EXPECT_EQ(ours.payloads_size(), 0);
}

TEST(PayloadMessageTest, OddEncodingsAreReadAsTheStockParserReadsThem) {
  struct Case {
    const char* name;
    std::string bytes;
    int payloads;
  };
  const Case cases[] = {
      {"LengthInFiveBytes", std::string("\x7a\x81\x80\x80\x80\x00x", 7), 1},
      {"TagInFiveBytes", std::string("\xfa\x80\x80\x80\x00\x01x", 7), 1},
      {"TagOfAPayloadAndBitsBeyond32", std::string("\xfa\x80\x80\x80\x70\x01x", 7), 1},
      {"TagOfAnotherFieldAndBitsBeyond32", std::string("\x92\x8c\xaf\x98\x41\x00", 6), 0},
  };
  for (const Case& c : cases) {
    v1::ExecuteRequest stock;
    v1::ExecuteRequest ours;
    ASSERT_TRUE(stock.ParseFromString(c.bytes)) << c.name;
    EXPECT_TRUE(Accepts(c.bytes, &ours)) << c.name;
    EXPECT_EQ(stock.payloads_size(), c.payloads) << c.name;
    EXPECT_EQ(ours.SerializeAsString(), stock.SerializeAsString()) << c.name;
  }
}

struct MalformedCase {
  const char* name;
  std::string bytes;
};

TEST(PayloadMessageTest, MalformedBytesAreRefused) {
  const std::vector<MalformedCase> cases = {
      {"PayloadLongerThanMessage",
       "\x7a\x05"
       "abc"},
      {"PayloadWithoutLength", "\x7a"},
      {"PayloadLengthOf64Bits", "\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
      {"PayloadLengthInSixBytes", std::string("\x7a\x81\x80\x80\x80\x80\x00x", 8)},
      {"LengthVarintTooLong", "\x7a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
      {"TagCutOff", "\xff"},
      {"TagTooLong", "\x80\x80\x80\x80\x80\x01"},
      {"UnknownWireType", "\x0f"},
      {"FieldCutOff", std::string("\x0a\x04\x0a", 3)},
      {"FieldNumberZero", std::string("\x00\x00", 2)},
      {"EndOfGroupNotBegun", "\xa4\x01"},
      {"GroupNotEnded", "\xa3\x01"},
      {"GroupsTooDeep", std::string(400, '\x0b')},
      {"FixedCutOff",
       "\xa1\x01"
       "1234567"},
  };
  for (const MalformedCase& c : cases) {
    v1::ExecuteRequest ours;
    v1::ExecuteRequest stock;
    EXPECT_FALSE(stock.ParseFromString(c.bytes)) << c.name;
    EXPECT_FALSE(Accepts(c.bytes, &ours)) << c.name;
  }
}

// Valid messages with random bytes changed, dropped or repeated: whatever the stock parser says of
// them, so do we, and both read the same.
TEST(PayloadMessageTest, AgreesWithTheStockParserOnMutatedMessages) {
  const google::protobuf::LogSilencer no_complaints_about_utf8;
  std::mt19937 random(TestSeed());
  const std::string valid = ExampleRequest().SerializeAsString();
  int accepted = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = valid;
    for (uint32_t changes = random() % 3 + 1; changes > 0; --changes) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 4 + 1);
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          bytes += bytes.substr(at, random() % 20);
      }
      if (bytes.empty()) bytes = valid;
    }
    v1::ExecuteRequest stock;
    v1::ExecuteRequest ours;
    const bool is_valid = stock.ParseFromString(bytes);
    ASSERT_EQ(Accepts(bytes, &ours), is_valid) << "round " << round;
    if (!is_valid) continue;
    ++accepted;
    ASSERT_EQ(ours.SerializeAsString(), stock.SerializeAsString()) << "round " << round;
  }
  EXPECT_GT(accepted, kRounds / 20);
  EXPECT_LT(accepted, kRounds * 19 / 20);
}

}  // namespace
}  // namespace opserve::codec
