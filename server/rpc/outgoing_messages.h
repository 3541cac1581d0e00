// The messages of a stream that wait to be written.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "proto/codec/session_frames.h"

namespace opserve::server {

// Messages of their own, or frames, which travel together up to a batch's size
// (codec::kBatchBytes). Not thread-safe.
class OutgoingMessages {
 public:
  // Takes *message.
  void AddMessage(grpc::ByteBuffer* message) {
    Message& added = messages_.emplace_back();
    added.whole.Swap(message);
    Count(&added);
  }

  // The writer to which the next frame is to be added at once; its body has so many bytes.
  codec::FrameWriter& BeginFrame(size_t body_bytes) {
    const size_t bytes = codec::kFrameHeaderBytes + body_bytes;
    if (messages_.empty() || messages_.back().frames.bytes() == 0 ||
        messages_.back().frames.bytes() + bytes > codec::kBatchBytes) {
      messages_.emplace_back();
    }
    Count(&messages_.back());
    return messages_.back().frames;
  }

  // Messages of their own and frames.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Takes the first message, which must be there; returns how many of size() it is.
  size_t Take(grpc::ByteBuffer* message) {
    Message& first = messages_.front();
    const size_t size = first.size;
    if (first.frames.bytes() > 0) {
      // Swapped, since a message that moves is copied.
      grpc::ByteBuffer frames = first.frames.Finish();
      message->Swap(&frames);
    } else {
      message->Swap(&first.whole);
    }
    messages_.pop_front();
    size_ -= size;
    return size;
  }

  void swap(OutgoingMessages& other) {
    messages_.swap(other.messages_);
    std::swap(size_, other.size_);
  }

 private:
  struct Message {
    grpc::ByteBuffer whole;     // or:
    codec::FrameWriter frames;  // at least one
    size_t size = 0;
  };

  void Count(Message* message) {
    ++message->size;
    ++size_;
  }

  std::deque<Message> messages_;
  size_t size_ = 0;  // of all
};

}  // namespace opserve::server
