// Parts of files in memory, and whether they have bytes in common. Two regions may show the same
// part of a file, so parts are compared by their place in it.
#pragma once

#include <compare>
#include <cstdint>

#include "absl/container/btree_map.h"

namespace opserve::server {

struct FilePart {
  uint64_t device = 0;  // of the file system, as in stat
  uint64_t inode = 0;
  uint64_t begin = 0;  // in bytes
  uint64_t end = 0;
};

// A set of parts. Each call takes time by the logarithm of their number.
class FileParts {
 public:
  // Adds a part, which may have bytes in common with others.
  void Add(const FilePart& part);
  // Whether it has bytes in common with one of them; a part without bytes has none.
  bool Overlap(const FilePart& part) const;

 private:
  struct Start {
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t begin = 0;
    friend auto operator<=>(const Start&, const Start&) = default;
  };
  using Ends = absl::btree_map<Start, uint64_t>;

  // The first range that reaches beyond the part's begin, if it is of the same file and starts
  // before the part's end; else end().
  Ends::const_iterator First(const FilePart& part) const;

  Ends ends_;  // of ranges that have no bytes in common
};

}  // namespace opserve::server
