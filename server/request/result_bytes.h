// The bytes of a result that travels. Several answers may send the same.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/device/memory/pinned_pool.h"

namespace opserve::server {

// A reference, which may be copied: the bytes go when the last one does. Thread-safe, as
// std::shared_ptr is. Counted in place, so that a sender can keep a reference in one pointer.
class ResultBytes {
 public:
  // Of a buffer of the pool, which has it back then.
  explicit ResultBytes(PinnedBuffer buffer) : bytes_(new Bytes) {
    bytes_->buffer = std::move(buffer);
    bytes_->view = {static_cast<const char*>(bytes_->buffer.data()), bytes_->buffer.size()};
  }
  // Of a copy in ordinary memory.
  explicit ResultBytes(absl::string_view bytes) : bytes_(new Bytes) {
    bytes_->copy = std::string(bytes);
    bytes_->view = bytes_->copy;
  }
  ResultBytes(const ResultBytes& other) : bytes_(other.bytes_) {
    bytes_->references.fetch_add(1, std::memory_order_relaxed);
  }
  ResultBytes(ResultBytes&& other) noexcept : bytes_(std::exchange(other.bytes_, nullptr)) {}
  ResultBytes& operator=(ResultBytes other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ResultBytes() {
    if (bytes_ != nullptr) Release(bytes_);
  }

  absl::string_view view() const { return bytes_->view; }

  // One more reference, which its holder gives back by Release.
  void* Share() const {
    bytes_->references.fetch_add(1, std::memory_order_relaxed);
    return bytes_;
  }
  static void Release(void* shared) {
    auto* const bytes = static_cast<Bytes*>(shared);
    if (bytes->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete bytes;
  }

 private:
  struct Bytes {
    std::atomic<uint32_t> references = 1;
    PinnedBuffer buffer;
    std::string copy;
    absl::string_view view;
  };

  Bytes* bytes_;  // null after a move
};

}  // namespace opserve::server
