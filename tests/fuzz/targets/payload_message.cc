// The codec against the stock protobuf parser: both accept the same bytes as an Execute request,
// response or stream message, and read the same; what it takes apart it puts together again.
//
// Input: a byte that chooses the type of message, one for the size of gRPC's slices, the message.
#include "proto/codec/payload_message.h"

#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/tensor_service.pb.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::fuzz {
namespace {

std::string BytesOf(const codec::Payload& payload) {
  std::string bytes;
  for (absl::string_view piece : payload.pieces) bytes.append(piece.data(), piece.size());
  Check(bytes.size() == payload.size, "a payload's pieces are as long as it says");
  return bytes;
}

template <typename Message>
void CheckAgreement(absl::string_view bytes, size_t slice_bytes) {
  Message stock;
  const bool stock_accepts = stock.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  Message ours;
  const auto split =
      codec::PayloadMessage::Split(Delivered(bytes, slice_bytes), /*max_payloads=*/bytes.size());
  const bool we_accept = split.ok() && split->ParseHeader(&ours).ok();
  Check(we_accept == stock_accepts, "accepted by one parser if and only if by the other");
  if (!we_accept) return;

  Check(ours.payloads().empty(), "no payload goes through protobuf");
  std::vector<grpc::Slice> payloads;
  for (const codec::Payload& payload : split->payloads()) {
    payloads.emplace_back(BytesOf(payload));
  }
  const std::string rebuilt = Joined(codec::BuildPayloadMessage(ours, payloads));
  for (const codec::Payload& payload : split->payloads()) ours.add_payloads(BytesOf(payload));
  Check(ours.SerializeAsString() == stock.SerializeAsString(), "both parsers read the same");
  Message reread;
  Check(reread.ParseFromString(rebuilt), "the stock parser reads what was put together");
  Check(reread.SerializeAsString() == stock.SerializeAsString(), "and reads the same");
}

}  // namespace
}  // namespace opserve::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opserve;  // NOLINT: the function stands for a namespace of its own
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  fuzz::Input input(data, size);
  const uint8_t type = input.Byte();
  const size_t slice_bytes = input.Byte();
  switch (type % 3) {
    case 0:
      fuzz::CheckAgreement<v1::ExecuteRequest>(input.Rest(), slice_bytes);
      break;
    case 1:
      fuzz::CheckAgreement<v1::ExecuteResponse>(input.Rest(), slice_bytes);
      break;
    default:
      fuzz::CheckAgreement<v1::ExecuteStreamRequest>(input.Rest(), slice_bytes);
  }
  return 0;
}
