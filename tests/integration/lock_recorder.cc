#include "tests/integration/lock_recorder.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/synchronization/mutex.h"

namespace opserve {
namespace {

enum Part { kScrape, kOther, kParts };
enum Mode { kShared, kAlone, kModes };

// One lock. Written without locks, as a recorder that took one would record itself.
struct Entry {
  std::atomic<const void*> lock = nullptr;
  // Of the last taking by each part and in each mode; null: none.
  std::array<std::array<std::atomic<const void*>, kModes>, kParts> callers = {};
};

constexpr size_t kEntries = 1 << 16;
std::array<Entry, kEntries> entries;
std::atomic<bool> is_recording = false;
std::atomic<bool> is_full = false;
thread_local Part part = kOther;

size_t FirstPlace(const void* lock) {
  return (reinterpret_cast<uintptr_t>(lock) * 0x9e3779b97f4a7c15) >> 48;
}
static_assert(kEntries == 1 << 16, "FirstPlace gives 16 bits");

// Null: there is none, and `adds` is false or there is no room.
Entry* Find(const void* lock, bool adds) {
  for (size_t i = 0; i < kEntries; ++i) {
    Entry& entry = entries[(FirstPlace(lock) + i) % kEntries];
    const void* owner = entry.lock.load();
    if (owner == nullptr && !adds) return nullptr;
    if (owner == nullptr && entry.lock.compare_exchange_strong(owner, lock)) return &entry;
    if (owner == lock) return &entry;
  }
  return nullptr;
}

void Record(const void* lock, Mode mode, const void* caller) {
  if (!is_recording.load()) return;
  if (Entry* entry = Find(lock, /*adds=*/true)) {
    entry->callers[part][mode].store(caller);
  } else {
    is_full = true;
  }
}

bool IsTaken(const Entry& entry, Part by) {
  return entry.callers[by][kShared] != nullptr || entry.callers[by][kAlone] != nullptr;
}

bool IsContested(const Entry& entry) {
  return IsTaken(entry, kScrape) && IsTaken(entry, kOther) &&
         (entry.callers[kScrape][kAlone] != nullptr || entry.callers[kOther][kAlone] != nullptr);
}

// Its address may become another lock's.
void Forget(const void* lock) {
  if (!is_recording.load()) return;
  Entry* const entry = Find(lock, /*adds=*/false);
  if (entry == nullptr || IsContested(*entry)) return;
  for (auto& modes : entry->callers) {
    for (auto& caller : modes) caller = nullptr;
  }
}

size_t OffsetInProgram(const void* address) {
  Dl_info info = {};
  link_map* map = nullptr;
  if (address == nullptr ||
      dladdr1(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0) {
    return 0;
  }
  const bool is_program = map->l_name == nullptr || map->l_name[0] == '\0';
  return is_program ? reinterpret_cast<uintptr_t>(address) - map->l_addr : 0;
}

size_t CallerOf(const Entry& entry, Part by) {
  const void* const alone = entry.callers[by][kAlone];
  return OffsetInProgram(alone != nullptr ? alone : entry.callers[by][kShared].load());
}

// The library's function that the program's hides. `cache`: found once.
template <typename Function>
Function Hidden(std::atomic<void*>& cache, const char* name) {
  void* found = cache.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = dlsym(RTLD_NEXT, name);
    cache.store(found, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace

ScrapeScope::ScrapeScope() { part = kScrape; }
ScrapeScope::~ScrapeScope() { part = kOther; }

std::ostream& operator<<(std::ostream& out, const SharedLock& lock) {
  return out << std::hex << "scraped from 0x" << lock.scrape_caller << ", else taken from 0x"
             << lock.other_caller << std::dec;
}

void BeginLockRecord() { is_recording = true; }

LockRecord EndLockRecord() {
  is_recording = false;
  LockRecord record;
  record.is_complete = !is_full;
  for (const Entry& entry : entries) {
    record.scrape_locks += IsTaken(entry, kScrape);
    record.other_locks += IsTaken(entry, kOther);
    if (!IsContested(entry)) continue;
    record.shared.push_back(
        {.scrape_caller = CallerOf(entry, kScrape), .other_caller = CallerOf(entry, kOther)});
  }
  return record;
}

}  // namespace opserve

// Defined anew: see the header.

#define OPSERVE_HIDDEN(type, name)                     \
  static constinit std::atomic<void*> hidden(nullptr); \
  const auto real = opserve::Hidden<type>(hidden, name)
#define OPSERVE_ABSL_NAME(mangled_rest) "_ZN4absl7debian3" mangled_rest

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  OPSERVE_HIDDEN(int (*)(pthread_mutex_t*), "pthread_mutex_lock");
  opserve::Record(mutex, opserve::kAlone, __builtin_return_address(0));
  return real(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  OPSERVE_HIDDEN(int (*)(pthread_mutex_t*), "pthread_mutex_trylock");
  opserve::Record(mutex, opserve::kAlone, __builtin_return_address(0));
  return real(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  OPSERVE_HIDDEN(int (*)(pthread_rwlock_t*), "pthread_rwlock_rdlock");
  opserve::Record(lock, opserve::kShared, __builtin_return_address(0));
  return real(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  OPSERVE_HIDDEN(int (*)(pthread_rwlock_t*), "pthread_rwlock_wrlock");
  opserve::Record(lock, opserve::kAlone, __builtin_return_address(0));
  return real(lock);
}

}  // extern "C"

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  OPSERVE_HIDDEN(void (*)(Mutex*), OPSERVE_ABSL_NAME("5Mutex4LockEv"));
  opserve::Record(this, opserve::kAlone, __builtin_return_address(0));
  real(this);
}

bool Mutex::TryLock() {
  OPSERVE_HIDDEN(bool (*)(Mutex*), OPSERVE_ABSL_NAME("5Mutex7TryLockEv"));
  opserve::Record(this, opserve::kAlone, __builtin_return_address(0));
  return real(this);
}

void Mutex::ReaderLock() {
  OPSERVE_HIDDEN(void (*)(Mutex*), OPSERVE_ABSL_NAME("5Mutex10ReaderLockEv"));
  opserve::Record(this, opserve::kShared, __builtin_return_address(0));
  real(this);
}

Mutex::~Mutex() {
  OPSERVE_HIDDEN(void (*)(Mutex*), OPSERVE_ABSL_NAME("5MutexD1Ev"));
  opserve::Forget(this);
  real(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
