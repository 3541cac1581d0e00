// Which locks a thread that scrapes takes, and which of them others take as well.
//
// A program with this file takes abseil's mutexes and those of pthreads, which the standard's are,
// through functions of its own: they call the libraries' and, while it is wanted, take notes. Its
// libraries' own locking goes through them too. Not for builds with ThreadSanitizer, which have
// such functions already (tests/tsan_absl_mutex.cc).
#pragma once

#include <cstddef>
#include <ostream>
#include <vector>

namespace opserve {

// While it lives, its thread is the one that scrapes. One at a time.
class ScrapeScope {
 public:
  ScrapeScope();
  ~ScrapeScope();
  ScrapeScope(const ScrapeScope&) = delete;
  ScrapeScope& operator=(const ScrapeScope&) = delete;
};

// A lock that both parts take, at least one of them for itself alone. Callers are offsets in the
// program, for `addr2line -Cfie PROGRAM`; 0: in a library.
struct SharedLock {
  size_t scrape_caller = 0;
  size_t other_caller = 0;
};
std::ostream& operator<<(std::ostream& out, const SharedLock& lock);

struct LockRecord {
  size_t scrape_locks = 0;  // taken by the thread that scrapes
  size_t other_locks = 0;   // by any other
  std::vector<SharedLock> shared;
  bool is_complete = true;  // there was room for all
};

// Once per program, in this order.
void BeginLockRecord();
LockRecord EndLockRecord();

}  // namespace opserve
