// What a process holds of the machine's memory.
#pragma once

#include <malloc.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/base/config.h"

namespace opserve {

// Sanitizers keep memory of their own, which says nothing about the program's.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
inline constexpr bool kMemoryTells = false;
#else
inline constexpr bool kMemoryTells = true;
#endif

inline int64_t ResidentBytesOf(pid_t process) {
  int64_t pages = 0;
  int64_t resident = 0;
  std::ifstream("/proc/" + std::to_string(process) + "/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
extern "C" size_t __sanitizer_get_current_allocated_bytes();  // GCC has no header for it
#endif

// For main: makes LiveHeapBytes tell what the program holds. glibc counts as live also the freed
// blocks that it keeps for each thread, up to seven of each size below a KiB or 230 KiB, and those
// of long-lived threads become more for an hour. It reads whether it may keep any only when a
// program starts, so this one is started again, once.
inline void CountHeapWithoutThreadCaches(char** argv) {
  const std::string setting = "glibc.malloc.tcache_count=0";
  const char* given = std::getenv("GLIBC_TUNABLES");
  std::string tunables = given == nullptr ? "" : given;
  if (tunables.find(setting) != std::string::npos) return;
  if (!tunables.empty()) tunables += ':';
  setenv("GLIBC_TUNABLES", (tunables + setting).c_str(), /*replace=*/1);
  execv(std::filesystem::read_symlink("/proc/self/exe").c_str(), argv);
  std::perror("execv");
  std::abort();
}

// Live bytes of this process's heap, by the statistics of its allocator.
inline int64_t LiveHeapBytes() {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  return static_cast<int64_t>(__sanitizer_get_current_allocated_bytes());
#else
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
#endif
}

}  // namespace opserve
