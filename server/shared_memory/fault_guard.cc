#include "server/shared_memory/fault_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "absl/base/call_once.h"
#include "absl/base/const_init.h"
#include "absl/synchronization/mutex.h"

namespace opserve::server {

// The handler reads ranges while others come and go, and can wait for nobody. So they are a list
// that only grows, to the largest number at one time, and those that have ended are used again.
struct FaultGuard::Range {
  std::atomic<uintptr_t> begin = 0;  // 0: not in use
  std::atomic<uintptr_t> end = 0;
  std::atomic<uintptr_t> torn_from = UINTPTR_MAX;  // the first page that was found missing
  Range* next = nullptr;                           // set before the range is in the list
};

namespace {

using Range = FaultGuard::Range;
static_assert(std::atomic<uintptr_t>::is_always_lock_free, "a signal handler uses them");

// Held while ranges are taken and given back.
ABSL_CONST_INIT absl::Mutex ranges_mutex(absl::kConstInit);
std::atomic<Range*> ranges = nullptr;  // the list's first; never freed

struct sigaction previous_action = {};  // of SIGBUS; set once, before there is a range

// Lets zeros be where the file has ended. False: nobody guards the address. Only makes system
// calls, and directly, since a library's wrapper might do more than a signal handler may.
bool Mend(uintptr_t address) {
  for (Range* range = ranges.load(std::memory_order_acquire); range != nullptr;
       range = range->next) {
    const uintptr_t begin = range->begin.load(std::memory_order_acquire);
    const uintptr_t end = range->end.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= end) continue;
    // It was given back and taken meanwhile, so its numbers belong to two. It is not the range
    // that this thread uses: that one stays.
    if (range->begin.load(std::memory_order_acquire) != begin) continue;
    const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const uintptr_t page = address / page_bytes * page_bytes;
    // First the mark, then the zeros: a thread that has seen zeros finds the mark.
    uintptr_t torn_from = range->torn_from.load();
    while (page < torn_from && !range->torn_from.compare_exchange_weak(torn_from, page)) {
    }
    // All that follows is missing as well.
    return syscall(SYS_mmap, page, end - page, PROT_READ | PROT_WRITE,
                   MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                   0) == static_cast<long>(page);  // NOLINT(google-runtime-int): syscall's type
  }
  return false;
}

void HandleBusError(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  // Other codes: a memory chip's fault, or a signal that a process has sent.
  if (info->si_code == BUS_ADRERR && Mend(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = error;
    return;  // the instruction is tried again
  }
  // As if this handler were not there: a fault comes again at once, a sent signal is sent again.
  sigaction(SIGBUS, &previous_action, nullptr);
  if (info->si_code <= 0) raise(signal);
  errno = error;
}

void SetHandler() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = HandleBusError;
    // On a stack of its own, if the thread has set one.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &previous_action) != 0) std::abort();
  });
}

Range& TakeRange(uintptr_t begin, uintptr_t end) {
  absl::MutexLock lock(&ranges_mutex);
  Range* range = ranges.load();
  while (range != nullptr && range->begin.load() != 0) range = range->next;
  const bool is_new = range == nullptr;
  if (is_new) range = new Range;
  range->torn_from = UINTPTR_MAX;
  range->end = end;
  range->begin.store(begin, std::memory_order_release);
  if (is_new) {
    range->next = ranges.load();
    ranges.store(range, std::memory_order_release);
  }
  return *range;
}

}  // namespace

FaultGuard::FaultGuard(char* begin, uint64_t bytes)
    : range_([&]() -> Range& {
        SetHandler();
        const auto first = reinterpret_cast<uintptr_t>(begin);
        return TakeRange(first, first + bytes);
      }()) {}

FaultGuard::~FaultGuard() {
  absl::MutexLock lock(&ranges_mutex);
  range_.begin = 0;
}

uint64_t FaultGuard::intact_bytes() const {
  const uintptr_t begin = range_.begin.load();
  const uintptr_t end = range_.end.load();
  const uintptr_t torn_from = range_.torn_from.load();
  return (torn_from < end ? torn_from : end) - begin;
}

}  // namespace opserve::server
