// Programs as CANN's users write them: each does one thing with the runtime, from aclInit to
// aclFinalize, and ends the process with a message if a call or a result is not as documented.
// Nothing here knows opserve.
#ifndef OPSERVE_TESTS_CONFORMANCE_PROGRAMS_PROGRAM_H_
#define OPSERVE_TESTS_CONFORMANCE_PROGRAMS_PROGRAM_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"

struct Program {
  const char* name;
  void (*run)();
};

// Each file's own.
std::vector<Program> CapturePrograms();
std::vector<Program> ContextPrograms();
std::vector<Program> CopyPrograms();
std::vector<Program> DevicePrograms();
std::vector<Program> MemoryPrograms();
std::vector<Program> OperatorPrograms();
std::vector<Program> ProcessPrograms();
std::vector<Program> StreamPrograms();

// Ends the process unless `call` returns `expected`.
inline void CheckCode(int64_t code, int64_t expected, const char* call, const char* file,
                      int line) {
  if (code == expected) return;
  const char* const message = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s:%d: %s: %lld instead of %lld: %s\n", file, line, call,
               static_cast<long long>(code), static_cast<long long>(expected),
               message == nullptr ? "no message" : message);
  std::exit(1);
}
#define CHECK_CODE(call, expected) CheckCode(call, expected, #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_CODE(call, ACL_SUCCESS)
#define CHECK_TRUE(condition) CheckCode((condition) ? 1 : 0, 1, #condition, __FILE__, __LINE__)

// Numbers first, first + 1, ...
inline std::vector<uint32_t> Ascending(uint32_t first, size_t count) {
  std::vector<uint32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = first + static_cast<uint32_t>(i);
  return numbers;
}

// Device memory with a copy of `numbers`.
inline uint32_t* Upload(const std::vector<uint32_t>& numbers) {
  const size_t bytes = numbers.size() * sizeof(uint32_t);
  void* memory = nullptr;
  CHECK_OK(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_OK(aclrtMemcpy(memory, bytes, numbers.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  return static_cast<uint32_t*>(memory);
}

inline std::vector<uint32_t> Download(const void* memory, size_t count) {
  std::vector<uint32_t> numbers(count);
  const size_t bytes = count * sizeof(uint32_t);
  CHECK_OK(aclrtMemcpy(numbers.data(), bytes, memory, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  return numbers;
}

#endif  // OPSERVE_TESTS_CONFORMANCE_PROGRAMS_PROGRAM_H_
