// How many bytes a client may send: what was granted, has come, and has been copied.
#pragma once

#include <cstdint>

namespace opserve::server {

// Of one request whose payloads follow in chunks. Not thread-safe.
//
// Invariants: copied() <= received() <= granted <= total, and granted <= copied() + window: so at
// most a window of bytes is in the host's memory or on its way.
class CreditWindow {
 public:
  // Grants are of at least `least` bytes, which is at most `window`, but for the last one.
  CreditWindow(uint64_t total, uint64_t window, uint64_t least)
      : total_(total), window_(window), least_(least) {}

  // Grants what may be granted now; the bytes, which the client is to be told. 0: none.
  uint64_t Grant();

  // Counts bytes that have come. False: more than were granted, and nothing changes.
  bool Receive(uint64_t bytes);

  // Counts bytes that were received and have been copied.
  void Copy(uint64_t bytes) { copied_ += bytes; }

  uint64_t received() const { return received_; }
  uint64_t on_their_way() const { return granted_ - received_; }  // granted and not received
  bool is_complete() const { return copied_ == total_; }

 private:
  const uint64_t total_;
  const uint64_t window_;
  const uint64_t least_;
  uint64_t granted_ = 0;
  uint64_t received_ = 0;
  uint64_t copied_ = 0;
};

}  // namespace opserve::server
