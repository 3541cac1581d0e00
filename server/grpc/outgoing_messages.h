// The messages of a stream that wait to be written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "proto/codec/slices.h"
#include "proto/session/session_frames.h"

namespace opserve::server {

// Messages of their own, or frames, which travel together up to a batch's size
// (codec::kBatchBytes), and answers in parts: with each message of frames goes one part of one of
// them, in turn. Not thread-safe.
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

  // The next bytes (not none) of the answer to a session's request, an ExecuteResponse, to be sent
  // in parts. `is_last`: no more of it follow.
  void AddInParts(uint64_t number, codec::Slices&& bytes, bool is_last = true) {
    auto found = FindInParts(number);
    if (found == in_parts_.end()) {
      found = in_parts_.insert(found, {.number = number, .slices = {}, .bytes = 0});
      ++size_;
    }
    found->is_last = is_last;
    found->bytes += codec::NumBytes(bytes);
    for (grpc::Slice& slice : bytes) found->slices.push_back(std::move(slice));
  }

  // Of the answer to the request, those that were added and not taken.
  size_t BytesInParts(uint64_t number) {
    const auto found = FindInParts(number);
    return found == in_parts_.end() ? 0 : found->bytes;
  }

  // Forgets what is left of the answer to the request; false: nothing is.
  bool EraseInParts(uint64_t number) {
    const auto found = FindInParts(number);
    if (found == in_parts_.end()) return false;
    in_parts_.erase(found);
    --size_;
    return true;
  }

  // Messages of their own, frames and answers in parts of which bytes wait.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Takes the next message, which must be there; returns how many of size() end with it.
  size_t Take(grpc::ByteBuffer* message) {
    if (messages_.empty()) messages_.emplace_back();
    Message& first = messages_.front();
    size_t size = first.size;
    if (!in_parts_.empty()) size += TakePart(&first.frames);
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
    in_parts_.swap(other.in_parts_);
    std::swap(size_, other.size_);
  }

 private:
  struct Message {
    grpc::ByteBuffer whole;     // or:
    codec::FrameWriter frames;  // at least one
    size_t size = 0;
  };

  struct InParts {
    uint64_t number;
    std::deque<grpc::Slice> slices;  // that were not taken
    size_t bytes;                    // of them
    bool is_last = true;             // none follow them
  };

  std::deque<InParts>::iterator FindInParts(uint64_t number) {
    return std::find_if(in_parts_.begin(), in_parts_.end(),
                        [number](const InParts& answer) { return answer.number == number; });
  }

  // Adds the next part of the answer whose turn it is. How many of size() end with it: 0 or 1.
  size_t TakePart(codec::FrameWriter* frames) {
    InParts& answer = in_parts_.front();
    const size_t bytes = std::min(answer.bytes, codec::kMostChunkBytes);
    codec::Slices part;
    for (size_t room = bytes; room > 0;) {
      grpc::Slice& slice = answer.slices.front();
      const size_t taken = std::min(room, slice.size());
      part.push_back(slice.sub(0, taken));
      room -= taken;
      if (taken < slice.size()) {
        slice = slice.sub(taken, slice.size());
      } else {
        answer.slices.pop_front();
      }
    }
    answer.bytes -= bytes;
    const bool is_over = answer.bytes == 0;
    const bool is_answer = is_over && answer.is_last;
    frames->Add(is_answer ? codec::FrameKind::kAnswer : codec::FrameKind::kPart, answer.number, "",
                part);
    if (!is_over) in_parts_.push_back(std::move(answer));
    in_parts_.pop_front();
    return is_over ? 1 : 0;
  }

  void Count(Message* message) {
    ++message->size;
    ++size_;
  }

  std::deque<Message> messages_;
  std::deque<InParts> in_parts_;  // the next one's turn first
  size_t size_ = 0;               // of all
};

}  // namespace opserve::server
