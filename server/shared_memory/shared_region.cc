#include "server/shared_memory/shared_region.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// aclnn's alignment of a tensor's data, and the bytes behind it that CANN's kernels may touch.
constexpr uint64_t kInPlaceAlignment = 32;
constexpr uint64_t kInPlaceSlack = 32;

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// Of whole pages.
uint64_t MappedBytes(uint64_t size) { return (size + PageBytes() - 1) / PageBytes() * PageBytes(); }

absl::Status Invalid(absl::string_view problem) { return MakeError(Reason::kShmInvalid, problem); }

// The first question, because the system answers it without asking a file system, which may be in
// the client's hands and never answer.
absl::Status CheckSeals(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) return Invalid("the descriptor is not one of memfd_create");
  if ((seals & F_SEAL_SHRINK) == 0 || (seals & F_SEAL_SEAL) == 0) {
    return Invalid("the memory must have the seals F_SEAL_SHRINK and F_SEAL_SEAL");
  }
  return absl::OkStatus();
}

absl::Status CheckFile(int fd, struct stat* info) {
  struct statfs system = {};
  if (fstat(fd, info) != 0 || fstatfs(fd, &system) != 0) {
    return Invalid(absl::StrCat("the descriptor cannot be examined: ", std::strerror(errno)));
  }
  // Not hugetlbfs: the owner could punch holes into it, and touching a hole raises SIGBUS when the
  // system has no huge page left.
  if (!S_ISREG(info->st_mode) || static_cast<uint64_t>(system.f_type) != TMPFS_MAGIC) {
    return Invalid("the descriptor is not one of memfd_create with ordinary pages");
  }
  return absl::OkStatus();
}

absl::Status CheckPart(const SharedRegionSpec& spec, uint64_t file_size) {
  if (spec.size == 0) return Invalid("a region of 0 bytes");
  if (spec.offset % PageBytes() != 0) {
    return Invalid(
        absl::StrCat("offset ", spec.offset, ", must be a multiple of ", PageBytes(), " bytes"));
  }
  // As two comparisons, since the sum of both may wrap.
  if (spec.offset > file_size || spec.size > file_size - spec.offset) {
    return Invalid(absl::StrCat(spec.size, " bytes from ", spec.offset, " on of a file of ",
                                file_size, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CutOff() { return Invalid("the shared memory has become smaller"); }

// Calls `copy`, a system call that copies the rest after `done` bytes, until all is done.
absl::Status CopyAll(uint64_t bytes, absl::FunctionRef<ssize_t(uint64_t done)> copy) {
  for (uint64_t done = 0; done < bytes;) {
    // A signal may interrupt the call, or make it copy a part only.
    const ssize_t copied = copy(done);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) {
      return Invalid(absl::StrCat("the shared memory cannot be used: ", std::strerror(errno)));
    }
    // The end of the file is before the region's, so its owner has cut it.
    if (copied == 0) return CutOff();
    done += static_cast<uint64_t>(copied);
  }
  return absl::OkStatus();
}

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
  return Invalid(absl::StrCat("the memory cannot be mapped: ", std::strerror(error)));
}

}  // namespace

class SharedRegion::Mapping {
 public:
  Mapping(void* address, uint64_t bytes) : address_(address), bytes_(bytes) {}
  ~Mapping() { munmap(address_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  void* address() const { return address_; }

 private:
  void* const address_;
  const uint64_t bytes_;
};

class SharedRegion::File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

  uint64_t size() const {
    struct stat info = {};
    return fstat(fd_, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  }

 private:
  const int fd_;
};

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::Map(int fd,
                                                                const SharedRegionSpec& spec,
                                                                const Retire& retire,
                                                                TakeCharge take_charge) {
  struct stat info = {};
  OPSERVE_RETURN_IF_ERROR(CheckSeals(fd));
  OPSERVE_RETURN_IF_ERROR(CheckFile(fd, &info));
  OPSERVE_RETURN_IF_ERROR(CheckPart(spec, static_cast<uint64_t>(info.st_size)));
  // Charged before the mapping, so that a refusal maps nothing.
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<void> charge, take_charge());
  auto region = std::shared_ptr<SharedRegion>(new SharedRegion(spec, &retire, std::move(charge)));
  region->part_ = {info.st_dev, info.st_ino, spec.offset, spec.offset + spec.size};
  const int access = spec.read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const address =
      mmap(nullptr, spec.size, access, MAP_SHARED, fd, static_cast<off_t>(spec.offset));
  if (address == MAP_FAILED) return MappingError(errno, spec);
  region->mapping_ = std::make_shared<const Mapping>(address, spec.size);
  return region;
}

std::shared_ptr<SharedRegion> SharedRegion::Open(int fd, const SharedRegionSpec& spec,
                                                 std::shared_ptr<void> charge) {
  auto region = std::shared_ptr<SharedRegion>(new SharedRegion(spec, nullptr, std::move(charge)));
  region->file_ = std::make_shared<const File>(fd);
  struct stat info = {};
  if (fstat(fd, &info) == 0)
    region->part_ = {info.st_dev, info.st_ino, spec.offset, spec.offset + spec.size};
  return region;
}

absl::Status SharedRegion::Read(uint64_t offset, absl::Span<char> to) const {
  return CopyAll(to.size(), [&](uint64_t done) {
    return pread(file_->fd(), to.data() + done, to.size() - done,
                 static_cast<off_t>(spec_.offset + offset + done));
  });
}

absl::Status SharedRegion::Write(uint64_t offset, absl::string_view from) const {
  // Writing behind the end would make the file grow again. (Between question and write its owner
  // can still cut it; then it grows to no more than was registered.)
  if (file_->size() < spec_.offset + offset + from.size()) return CutOff();
  return CopyAll(from.size(), [&](uint64_t done) {
    return pwrite(file_->fd(), from.data() + done, from.size() - done,
                  static_cast<off_t>(spec_.offset + offset + done));
  });
}

SharedRegion::~SharedRegion() {
  // Each registration keeps the mapping until its device has destroyed it.
  for (auto& [device, on_device] : devices_) {
    if (on_device.registration != nullptr) (*retire_)(device, std::move(on_device.registration));
  }
}

char* SharedRegion::data() const { return static_cast<char*>(mapping_->address()); }

absl::StatusOr<std::shared_ptr<const HostRegistration>> SharedRegion::RegistrationOn(
    const Device& device, absl::Time until) {
  const int32_t id = device.id();
  {
    absl::MutexLock lock(&mutex_);
    // One caller at a time shows the region to a device; the others wait for its result.
    const auto is_settled = [this, id]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      const auto found = devices_.find(id);
      return found == devices_.end() || !found->second.is_being_registered;
    };
    if (!mutex_.AwaitWithDeadline(absl::Condition(&is_settled), until)) {
      return MakeError(Reason::kDeadlineExpired,
                       "the deadline passed while the device was being shown the shared memory");
    }
    const auto found = devices_.find(id);
    // Tried in this life of the device, be it in vain.
    if (found != devices_.end() && found->second.generation == device.generation()) {
      return found->second.registration;
    }
    devices_[id].is_being_registered = true;
  }
  // Without the lock, since the call may take long.
  auto made = HostRegistration::Create(device, data(), MappedBytes(size()), mapping_);
  // Destroyed without the lock; void, if there was one before.
  std::shared_ptr<const HostRegistration> old;
  absl::MutexLock lock(&mutex_);
  OnDevice& on_device = devices_[id];
  on_device.is_being_registered = false;
  // Nothing was found out about the region: the next caller tries again.
  if (absl::IsUnavailable(made.status())) return made.status();
  old = std::exchange(on_device.registration, made.ok() ? *std::move(made) : nullptr);
  on_device.generation = device.generation();
  return on_device.registration;
}

bool SharedRegion::FitsInPlace(uint64_t offset, uint64_t size) const {
  return is_mapped() && offset % kInPlaceAlignment == 0 &&
         MappedBytes(this->size()) - offset - size >= kInPlaceSlack;
}

FilePart SharedRegion::PartOf(uint64_t offset, uint64_t size) const {
  FilePart part = part_;
  part.begin += offset;
  part.end = part.begin + size;
  return part;
}

}  // namespace opserve::server
