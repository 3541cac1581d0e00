// Files in memory, as clients share them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "server/net/file_descriptor.h"

namespace opserve::server {

inline constexpr uint64_t kPageBytes = 4096;

// A file of memfd_create with these seals.
inline FileDescriptor MemoryFile(uint64_t bytes, int seals) {
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  if (fcntl(file.get(), F_ADD_SEALS, seals) != 0) std::abort();
  return file;
}

// With the seals that a daemon asks for.
inline FileDescriptor SealedFile(uint64_t bytes) {
  return MemoryFile(bytes, F_SEAL_SHRINK | F_SEAL_SEAL);
}

// The same file through a descriptor that cannot write.
inline FileDescriptor ReadOnly(const FileDescriptor& file) {
  return FileDescriptor(
      open(("/proc/self/fd/" + std::to_string(file.get())).c_str(), O_RDONLY | O_CLOEXEC));
}

// Of this process, of files in memory.
inline int CountMemoryMappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:") != line.npos;
  return count;
}

}  // namespace opserve::server
