#include "server/shared_memory/file_parts.h"

#include <algorithm>
#include <iterator>

namespace opserve::server {

FileParts::Ends::const_iterator FileParts::First(const FilePart& part) const {
  const auto is_of_file = [&part](const Start& start) {
    return start.device == part.device && start.inode == part.inode;
  };
  auto first = ends_.lower_bound({part.device, part.inode, part.begin});
  if (first != ends_.begin()) {
    // Ranges have no bytes in common, so only the last one before can reach so far.
    const auto before = std::prev(first);
    if (is_of_file(before->first) && before->second > part.begin) first = before;
  }
  const bool is_hit =
      first != ends_.end() && is_of_file(first->first) && first->first.begin < part.end;
  return is_hit ? first : ends_.end();
}

void FileParts::Add(const FilePart& part) {
  if (part.begin == part.end) return;
  uint64_t begin = part.begin;
  uint64_t end = part.end;
  // Each range is taken in once, so adding many costs no more than their number.
  for (auto other = First(part); other != ends_.end(); other = First(part)) {
    begin = std::min(begin, other->first.begin);
    end = std::max(end, other->second);
    ends_.erase(other);
  }
  ends_.emplace(Start{part.device, part.inode, begin}, end);
}

bool FileParts::Overlap(const FilePart& part) const {
  return part.begin < part.end && First(part) != ends_.end();
}

}  // namespace opserve::server
