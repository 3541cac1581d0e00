// The frames of OperatorService.Session (proto/SESSION.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "proto/codec/slices.h"

namespace opserve::codec {

inline constexpr uint32_t kSessionVersion = 1;

enum class FrameKind : uint8_t {
  kHello = 1,      // SessionHello
  kRequest = 2,    // RequestStart, then an ExecuteRequest
  kAnswer = 3,     // ExecuteResponse
  kError = 4,      // StatusDetails
  kCancel = 5,     // nothing
  kPing = 6,       // nothing
  kPong = 7,       // nothing
  kGoingAway = 8,  // SessionGoingAway
  // Of the feature kAnnouncements:
  kAnnouncement = 9,  // RequestStart, PayloadSizes, then an ExecuteRequest without payloads
  kChunk = 10,        // bytes of one payload
  kCredit = 11,       // bytes that chunks may have more (u64)
  // Of the feature kParts:
  kPart = 12,  // the next bytes of an ExecuteResponse, before those of its answer
};

// Bits of SessionHello.features: what the daemon takes, and what the client does.
inline constexpr uint64_t kAnnouncements = 1;
inline constexpr uint64_t kParts = 2;
// Announcements of requests with an identity, an idempotency key or a prepared program, too.
inline constexpr uint64_t kAnyAnnouncements = 4;

// Of each frame, before its body: bytes of the body (u32), kind (u8), flags (u8), zero (u16),
// number (u64); little-endian.
inline constexpr size_t kFrameHeaderBytes = 16;

struct Frame {
  FrameKind kind = FrameKind::kHello;
  uint64_t number = 0;  // of the request, or of the ping; else 0
  Slices body = {};     // may be of a message
};

// The body of a request's frame, before its ExecuteRequest: the time it may take in
// microseconds (u64, 0: no timeout), the bytes of its traceparent (u32, 0: none), and these.
struct RequestStart {
  absl::Duration timeout = absl::InfiniteDuration();
  std::string traceparent;
};

// Of an announcement, behind its start: how many payloads follow (u32), and the bytes of each
// (u64).
using PayloadSizes = absl::InlinedVector<uint64_t, 8>;

// Bytes of a chunk or a part.
inline constexpr size_t kMostChunkBytes = 256 << 10;

inline constexpr size_t kRequestStartBytes = 12;  // without the traceparent
inline constexpr uint32_t kMaxTraceParentBytes = 256;

// Frames of a message, and the bytes of frames that senders put together; one frame may have more.
inline constexpr int kMaxFrames = 4096;
inline constexpr size_t kBatchBytes = 64 << 10;
static_assert(kBatchBytes <= kMaxFrames * kFrameHeaderBytes, "a full batch has not too many");

// Takes the beginning of a request's body off: *body is left with the ExecuteRequest.
// kInvalidArgument: malformed.
absl::StatusOr<RequestStart> ReadRequestStart(Slices* body);
// Takes them off an announcement's body. kInvalidArgument: malformed, or more than `max_payloads`.
absl::StatusOr<PayloadSizes> ReadPayloadSizes(size_t max_payloads, Slices* body);
// kInvalidArgument: malformed.
absl::StatusOr<uint64_t> ReadCredit(Slices body);

// Takes a SessionMessage apart, frame by frame, without copies. Not thread-safe.
class FrameReader {
 public:
  // Begins with the message; called once, first. kInvalidArgument: not a SessionMessage with one
  // field. kInternal: gRPC could not give its slices.
  absl::Status Read(const grpc::ByteBuffer& message);

  // The next frame; nothing after the last one. kInvalidArgument: it breaks a rule of
  // the protocol, which the message states; nothing may be read after it.
  absl::StatusOr<std::optional<Frame>> Next();

 private:
  // Calls visit(slice, begin, end) for the pieces of the next `size` bytes, of those that are left.
  template <typename Visit>
  void ForEachPiece(size_t size, Visit visit);
  // Take so many bytes as slices of their own, or into memory.
  void Take(size_t size, Slices* to);
  void Copy(char* to, size_t size);

  Slices slices_;
  size_t slice_ = 0;   // the first one with bytes left
  size_t offset_ = 0;  // in it
  size_t bytes_left_ = 0;
};

// The same, to be written.
std::string WriteRequestStart(const RequestStart& start);
std::string WritePayloadSizes(absl::Span<const uint64_t> sizes);
std::string WriteCredit(uint64_t bytes);

// FrameWriter copies slices of at most so many bytes, at once. A reference to a slice costs about
// as much as the copy of so many bytes. At least those of a message that is made in one piece
// (IsMerged): small results do not stay in their buffers until a slow reader has taken them.
inline constexpr size_t kMostCopiedBytes = 8192;

// Makes a SessionMessage of frames. Small bodies are copied together, large ones referred to. Not
// thread-safe.
class FrameWriter {
 public:
  // Makes room for frames of so many bytes, which then are not moved while others are added.
  void Reserve(size_t bytes) { copied_.Reserve(bytes); }

  // Adds a frame whose body is `start` and then `rest`.
  void Add(FrameKind kind, uint64_t number, absl::string_view start,
           absl::Span<const grpc::Slice> rest = {});
  // Adds a frame whose body is a payload message (payload_message.h) of a serialised `header`.
  void AddPayloadMessage(FrameKind kind, uint64_t number, absl::string_view header,
                         absl::Span<const grpc::Slice> payloads);

  // Bytes of the frames so far.
  size_t bytes() const { return bytes_; }

  // The message; the writer is empty again.
  grpc::ByteBuffer Finish();

 private:
  // Bytes that grow in memory of gRPC's, which becomes a slice as it is.
  class Copied {
   public:
    // In front of the bytes there is room for so many.
    static constexpr size_t kFrontBytes = 11;

    bool empty() const { return size_ == 0; }
    size_t size() const { return size_; }
    size_t capacity() const { return capacity_; }
    void Reserve(size_t bytes);
    void Append(absl::string_view bytes);
    // The bytes, with `front` in front of them; none are left.
    grpc::Slice Take(absl::string_view front);

   private:
    // No other owner has it, so that it may be written to.
    char* data() const {
      return reinterpret_cast<char*>(const_cast<uint8_t*>(memory_.begin())) + kFrontBytes;
    }

    grpc::Slice memory_;
    size_t capacity_ = 0;
    size_t size_ = 0;
  };

  // `copied_bytes`: of the body, to be copied.
  void AddHeader(FrameKind kind, uint64_t number, size_t body_bytes, size_t copied_bytes);
  void AddSlice(const grpc::Slice& slice);

  std::vector<grpc::Slice> slices_;
  Copied copied_;  // after slices_
  size_t bytes_ = 0;
};

}  // namespace opserve::codec
