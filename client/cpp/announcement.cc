#include "client/cpp/announcement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/payload_message.h"

namespace opserve {
namespace {

// Half of what daemons take as the body of a request.
constexpr size_t kMostHeaderBytes = 512 << 10;

// The part of `slices` that is `piece`, by reference.
grpc::Slice Refer(absl::Span<const grpc::Slice> slices, absl::string_view piece) {
  const auto* begin = reinterpret_cast<const uint8_t*>(piece.data());
  for (const grpc::Slice& slice : slices) {
    if (begin < slice.begin() || begin + piece.size() > slice.end()) continue;
    const auto offset = static_cast<size_t>(begin - slice.begin());
    return slice.sub(offset, offset + piece.size());
  }
  return grpc::Slice(piece.data(), piece.size());
}

}  // namespace

std::optional<Announcement> Announcement::Of(const grpc::ByteBuffer& request) {
  codec::Slices slices;
  if (!codec::TakeSlices(request, &slices).ok()) return std::nullopt;
  const auto message = codec::PayloadMessage::Split(codec::Slices(slices), codec::kMaxPayloads);
  v1::ExecuteRequest header;
  if (!message.ok() || !message->ParseHeader(&header).ok()) return std::nullopt;
  Announcement announcement;
  announcement.is_special_ =
      header.has_prepared() || header.has_identity() || !header.idempotency_key().empty();
  codec::PayloadSizes sizes;
  for (const codec::Payload& payload : message->payloads()) {
    sizes.push_back(payload.size);
    for (const absl::string_view piece : payload.pieces) {
      if (piece.empty()) continue;
      announcement.pieces_.push_back({Refer(slices, piece), false});
    }
    if (payload.size > 0) announcement.pieces_.back().ends_payload = true;
  }
  announcement.header_ = codec::WritePayloadSizes(sizes);
  absl::StrAppend(&announcement.header_, message->header());
  if (announcement.header_.size() > kMostHeaderBytes) return std::nullopt;
  return announcement;
}

codec::Slices Announcement::TakeChunk() {
  codec::Slices chunk;
  uint64_t room = std::min<uint64_t>(credit_, codec::kMostChunkBytes);
  bool is_complete = false;
  while (room > 0 && !is_complete && !pieces_.empty()) {
    Piece& piece = pieces_.front();
    const size_t bytes = std::min<uint64_t>(room, piece.bytes.size());
    chunk.push_back(piece.bytes.sub(0, bytes));
    room -= bytes;
    credit_ -= bytes;
    if (bytes < piece.bytes.size()) {
      piece.bytes = piece.bytes.sub(bytes, piece.bytes.size());
      continue;
    }
    is_complete = piece.ends_payload;
    pieces_.pop_front();
  }
  return chunk;
}

}  // namespace opserve
