// Memory for the header of one message.
#pragma once

#include <cstddef>
#include <optional>

#include "google/protobuf/arena.h"

namespace opserve::codec {

// A header has many small parts, which would cost more to allocate and free than to read. To be on
// the stack: unless the header is large, it needs no other memory.
class HeaderArena {
 public:
  HeaderArena() = default;
  HeaderArena(const HeaderArena&) = delete;
  HeaderArena& operator=(const HeaderArena&) = delete;

  // An empty header that lives as long as the arena.
  template <typename Header>
  Header& Make() {
    if (!arena_) arena_.emplace(Options(block_));
    return *google::protobuf::Arena::CreateMessage<Header>(&*arena_);
  }

 private:
  static constexpr size_t kBytes = 4096;
  static google::protobuf::ArenaOptions Options(char* block) {
    google::protobuf::ArenaOptions options;
    options.initial_block = block;
    options.initial_block_size = kBytes;
    return options;
  }

  alignas(std::max_align_t) char block_[kBytes];
  std::optional<google::protobuf::Arena> arena_;  // none: nothing was made
};

}  // namespace opserve::codec
