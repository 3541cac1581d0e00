// The session's frames against a plain parser of contiguous bytes: both read the same frames, find
// the fault behind the same frame, and take the same beginning off a request; what was read is
// written again as it was.
//
// Input: a byte that says whether the field around the frames is the input's (odd) or right, a byte
// for the count of sizes, so many sizes of gRPC's slices (0: without bytes), the message.
#include "proto/session/session_frames.h"

#include <optional>
#include <string>
#include <vector>

#include "opserve/v1/session.pb.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/plain_frames.h"

namespace opserve::fuzz {
namespace {

// Each piece has memory of its own: gRPC puts small slices together that hold their bytes, and
// those that lie side by side.
grpc::ByteBuffer DeliveredInPieces(absl::string_view bytes, absl::string_view sizes) {
  std::vector<grpc::Slice> slices;
  const auto add = [&slices](absl::string_view piece) {
    auto* const kept = new std::string(piece);
    slices.emplace_back(
        kept->data(), kept->size(), [](void* bytes) { delete static_cast<std::string*>(bytes); },
        kept);
  };
  for (const char size : sizes) {
    const absl::string_view piece = bytes.substr(0, static_cast<uint8_t>(size));
    add(piece);
    bytes.remove_prefix(piece.size());
  }
  add(bytes);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

void CheckRequestStart(codec::Slices body, absl::string_view plain) {
  const absl::StatusOr<codec::RequestStart> start = codec::ReadRequestStart(&body);
  const uint64_t trace_bytes = plain.size() < 12 ? 0 : NumberAt(plain, 8, 4);
  const bool is_right =
      plain.size() >= 12 && trace_bytes <= 256 && trace_bytes <= plain.size() - 12;
  Check(start.ok() == is_right, "a request's beginning is taken if it is right");
  if (!is_right) return;
  const uint64_t microseconds = NumberAt(plain, 0, 8);
  if (microseconds > 0 && microseconds < uint64_t{1} << 62) {
    Check(start->timeout == absl::Microseconds(static_cast<int64_t>(microseconds)), "its time");
    Check(plain.substr(0, 12 + trace_bytes) == codec::WriteRequestStart(*start), "written again");
  } else {
    Check(start->timeout == absl::InfiniteDuration(), "no time");
  }
  Check(start->traceparent == plain.substr(12, trace_bytes), "its trace");
  Check(Joined(codec::ToByteBuffer(body)) == plain.substr(12 + trace_bytes), "the rest stays");
}

void CheckMessage(absl::string_view message, absl::string_view sizes) {
  codec::FrameReader reader;
  const bool is_taken = reader.Read(DeliveredInPieces(message, sizes)).ok();
  const std::optional<absl::string_view> field = PlainField(message);
  Check(is_taken == field.has_value(), "the field is the message");
  v1::SessionMessage stock;
  if (stock.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    v1::SessionMessage without_unknown_fields;
    without_unknown_fields.set_frames(stock.frames());
    if (without_unknown_fields.SerializeAsString() == message) {
      Check(is_taken, "what protobuf writes is taken");
    }
    if (is_taken) Check(stock.frames() == *field, "protobuf reads the same frames");
  }
  if (!is_taken) return;

  codec::FrameWriter writer;
  absl::string_view frames = *field;
  while (true) {
    absl::StatusOr<std::optional<codec::Frame>> frame = reader.Next();
    const std::optional<PlainFrame> plain = PlainNext(&frames);
    const bool is_end = frames.empty() && !plain.has_value();
    Check(frame.ok() == (plain.has_value() || is_end), "a frame is taken if it is right");
    if (!frame.ok()) return;
    Check(frame->has_value() == plain.has_value(), "as many frames");
    if (!frame->has_value()) break;
    Check(static_cast<uint64_t>((*frame)->kind) == plain->kind, "its kind");
    Check((*frame)->number == plain->number, "its number");
    Check(Joined(codec::ToByteBuffer((*frame)->body)) == plain->body, "its body");
    writer.Add((*frame)->kind, (*frame)->number, "", (*frame)->body);
    if ((*frame)->kind != codec::FrameKind::kRequest) continue;
    CheckRequestStart((*frame)->body, plain->body);
    codec::Slices body;
    Check(codec::TakeSlices(DeliveredInPieces(plain->body, sizes), &body).ok(), "there are slices");
    CheckRequestStart(std::move(body), plain->body);
  }
  Check(writer.bytes() == field->size(), "the bytes of all frames");
  const std::string written = Joined(writer.Finish());
  Check(PlainField(written) == *field, "frames are written as they were read");
}

}  // namespace
}  // namespace opserve::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opserve;  // NOLINT: the function stands for a namespace of its own
  fuzz::Input input(data, size);
  const bool is_whole = input.Byte() % 2 == 1;
  const uint8_t count = input.Byte();
  const absl::string_view sizes = input.Take(count);
  if (is_whole) {
    fuzz::CheckMessage(input.Rest(), sizes);
  } else {
    v1::SessionMessage message;
    message.set_frames(std::string(input.Rest()));
    fuzz::CheckMessage(message.SerializeAsString(), sizes);
  }
  return 0;
}
