// Internal: a large request of a session, whose payloads are sent behind its header.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "proto/session/session_frames.h"

namespace opserve {

// An ExecuteRequest, taken apart. Not thread-safe.
class Announcement {
 public:
  // Refers to the bytes of `request`. Nothing: it cannot be announced, but has to be sent whole,
  // since what it has beside its payloads is large itself.
  static std::optional<Announcement> Of(const grpc::ByteBuffer& request);

  // Whether it takes a daemon with codec::kAnyAnnouncements.
  bool is_special() const { return is_special_; }

  // Of its announcement's frame, behind the start.
  const std::string& header() const { return header_; }

  void AddCredit(uint64_t bytes) { credit_ += bytes; }
  // Whether the next chunk may be sent, and whether all were.
  bool has_chunk() const { return credit_ > 0 && !pieces_.empty(); }
  bool is_sent() const { return pieces_.empty(); }
  // Takes the next chunk, of bytes that no other chunk had.
  codec::Slices TakeChunk();

 private:
  struct Piece {
    grpc::Slice bytes;
    bool ends_payload;
  };

  bool is_special_ = false;
  std::string header_;  // the payloads' sizes, then the request without them
  std::deque<Piece> pieces_;
  uint64_t credit_ = 0;
};

}  // namespace opserve
