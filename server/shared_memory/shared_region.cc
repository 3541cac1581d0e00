#include "server/shared_memory/shared_region.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

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
  const uint64_t page_bytes = SharedMapping::PageBytes();
  if (spec.offset % page_bytes != 0) {
    return Invalid(
        absl::StrCat("offset ", spec.offset, ", must be a multiple of ", page_bytes, " bytes"));
  }
  // As two comparisons, since the sum of both may wrap.
  if (spec.offset > file_size || spec.size > file_size - spec.offset) {
    return Invalid(absl::StrCat(spec.size, " bytes from ", spec.offset, " on of a file of ",
                                file_size, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CutOff() { return Invalid("the shared memory has become smaller"); }

FilePart PartOfFile(const struct stat& info, const SharedRegionSpec& spec) {
  return {info.st_dev, info.st_ino, spec.offset, spec.offset + spec.size};
}

}  // namespace

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
  OPSERVE_ASSIGN_OR_RETURN(auto mapping, SharedMapping::Create(fd, spec, /*may_shrink=*/false));
  return std::shared_ptr<SharedRegion>(
      new SharedRegion(spec, PartOfFile(info, spec), retire, std::move(charge),
                       /*file=*/FileDescriptor(), std::move(mapping)));
}

absl::StatusOr<std::shared_ptr<SharedRegion>> SharedRegion::MapShrinkable(
    int fd, const SharedRegionSpec& spec, const Retire& retire, TakeCharge take_charge) {
  struct stat info = {};
  FileDescriptor file(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (file.get() < 0 || fstat(fd, &info) != 0) {
    return Invalid(absl::StrCat("the memory cannot be kept open: ", std::strerror(errno)));
  }
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<void> charge, take_charge());
  OPSERVE_ASSIGN_OR_RETURN(auto mapping, SharedMapping::Create(fd, spec, /*may_shrink=*/true));
  return std::shared_ptr<SharedRegion>(new SharedRegion(spec, PartOfFile(info, spec), retire,
                                                        std::move(charge), std::move(file),
                                                        std::move(mapping)));
}

SharedRegion::~SharedRegion() { GiveUp(&devices_); }

void SharedRegion::GiveUp(std::map<int32_t, OnDevice>* devices) const {
  // Each registration keeps the mapping until its device has destroyed it.
  for (auto& [device, on_device] : *devices) {
    if (on_device.registration != nullptr) retire_(device, std::move(on_device.registration));
  }
}

absl::Status SharedRegion::CheckSize(uint64_t bytes) const {
  if (file_.get() < 0) return absl::OkStatus();
  struct stat info = {};
  const bool is_told = fstat(file_.get(), &info) == 0;
  if (is_told && static_cast<uint64_t>(info.st_size) >= spec_.offset + bytes) {
    return absl::OkStatus();
  }
  return CutOff();
}

absl::StatusOr<std::shared_ptr<const SharedMapping>> SharedRegion::MappingOf(uint64_t bytes) {
  OPSERVE_RETURN_IF_ERROR(CheckSize(bytes));
  // Given up without the lock.
  std::shared_ptr<const SharedMapping> torn;
  std::map<int32_t, OnDevice> shown;
  const absl::Cleanup give_up = [&] { GiveUp(&shown); };
  absl::MutexLock lock(&mutex_);
  if (!mapping_->IsIntact(spec_.size)) {
    // Missing bytes are zeros of nobody's there for ever. Runs that use it fail; others get the
    // file's bytes. No device keeps it: zeros that were written to take memory that nobody is
    // charged for.
    OPSERVE_ASSIGN_OR_RETURN(auto fresh,
                             SharedMapping::Create(file_.get(), spec_, /*may_shrink=*/true));
    torn = std::exchange(mapping_, std::move(fresh));
    for (auto& [device, on_device] : devices_) {
      shown[device].registration = std::move(on_device.registration);
      on_device.mapping = nullptr;
    }
  }
  return mapping_;
}

absl::Status SharedRegion::CheckIntact(const SharedMapping& mapping, uint64_t bytes) const {
  if (!mapping.IsIntact(bytes)) return CutOff();
  // It may have been cut off without anybody looking there: results would be lost.
  return CheckSize(bytes);
}

const SharedRegion::OnDevice* SharedRegion::FindTried(const Device& device,
                                                      const SharedMapping& mapping) const {
  const auto found = devices_.find(device.id());
  const bool is_tried = found != devices_.end() && found->second.mapping == &mapping &&
                        found->second.generation == device.generation();
  return is_tried ? &found->second : nullptr;
}

std::shared_ptr<const HostRegistration> SharedRegion::KnownRegistrationOn(
    const Device& device, const SharedMapping& mapping) {
  absl::MutexLock lock(&mutex_);
  const OnDevice* tried = FindTried(device, mapping);
  return tried == nullptr ? nullptr : tried->registration;
}

absl::StatusOr<std::shared_ptr<const HostRegistration>> SharedRegion::RegistrationOn(
    const Device& device, const std::shared_ptr<const SharedMapping>& mapping, absl::Time until) {
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
    if (const OnDevice* tried = FindTried(device, *mapping)) return tried->registration;
    devices_[id].is_being_registered = true;
  }
  // Without the lock, since the call may take long.
  auto made = HostRegistration::Create(device, mapping->begin(), mapping->bytes(), mapping);
  // Destroyed without the lock; void, if there was one before.
  std::shared_ptr<const HostRegistration> old;
  absl::MutexLock lock(&mutex_);
  OnDevice& on_device = devices_[id];
  on_device.is_being_registered = false;
  // Nothing was found out about the region: the next caller tries again.
  if (absl::IsUnavailable(made.status())) return made.status();
  std::shared_ptr<const HostRegistration> registration = made.ok() ? *std::move(made) : nullptr;
  // The mapping was torn meanwhile, so nobody else will use it.
  if (mapping != mapping_) return registration;
  old = std::exchange(on_device.registration, std::move(registration));
  on_device.mapping = mapping.get();
  on_device.generation = device.generation();
  return on_device.registration;
}

FilePart SharedRegion::PartOf(uint64_t offset, uint64_t size) const {
  FilePart part = part_;
  part.begin += offset;
  part.end = part.begin + size;
  return part;
}

}  // namespace opserve::server
