#include "server/shared_memory/shared_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"

namespace opserve::server {
namespace {

// aclnn's alignment of a tensor's data, and the bytes behind it that CANN's kernels may touch.
constexpr uint64_t kInPlaceAlignment = 32;
constexpr uint64_t kInPlaceSlack = 32;

absl::Status MappingError(int error, const SharedRegionSpec& spec) {
  // The descriptor's own rights, or a seal against writing.
  if (error == EACCES || error == EPERM) {
    return MakeError(Reason::kForbidden,
                     spec.read_only ? "the memory may not be read"
                                    : "the memory may not be written to; register it as read_only");
  }
  if (error == ENOMEM || error == EAGAIN) {
    return MakeError(Reason::kTenantMemory, "there is no room to map the memory");
  }
  return MakeError(Reason::kShmInvalid,
                   absl::StrCat("the memory cannot be mapped: ", std::strerror(error)));
}

}  // namespace

uint64_t SharedMapping::PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

absl::StatusOr<std::shared_ptr<const SharedMapping>> SharedMapping::Create(
    int fd, const SharedRegionSpec& spec, bool may_shrink) {
  const uint64_t before = spec.offset % PageBytes();
  const uint64_t pages = (before + spec.size + PageBytes() - 1) / PageBytes() * PageBytes();
  // Clients that may cut their files off know nothing of the room that aclnn asks for, and make
  // files that just fit. So a page of nobody's is mapped behind theirs.
  const uint64_t bytes = may_shrink ? pages + PageBytes() : pages;
  const int access = spec.read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  void* address = nullptr;
  if (may_shrink) {
    address = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return MappingError(errno, spec);
  }
  void* const mapped = mmap(address, pages, access, MAP_SHARED | (may_shrink ? MAP_FIXED : 0), fd,
                            static_cast<off_t>(spec.offset - before));
  if (mapped == MAP_FAILED) {
    const int error = errno;
    if (may_shrink) munmap(address, bytes);
    return MappingError(error, spec);
  }
  char* const begin = static_cast<char*>(mapped);
  const auto mapping =
      std::shared_ptr<SharedMapping>(new SharedMapping(begin, bytes, begin + before));
  if (may_shrink) mapping->guard_.emplace(begin, bytes);
  return mapping;
}

SharedMapping::~SharedMapping() {
  // The range may be another mapping's as soon as it is free.
  guard_.reset();
  munmap(begin_, bytes_);
}

bool SharedMapping::FitsInPlace(uint64_t offset, uint64_t size) const {
  const uint64_t end = static_cast<uint64_t>(data_ - begin_) + offset + size;
  return reinterpret_cast<uintptr_t>(data_ + offset) % kInPlaceAlignment == 0 &&
         bytes_ - end >= kInPlaceSlack;
}

bool SharedMapping::IsIntact(uint64_t bytes) const {
  return !guard_ || guard_->intact_bytes() >= static_cast<uint64_t>(data_ - begin_) + bytes;
}

}  // namespace opserve::server
