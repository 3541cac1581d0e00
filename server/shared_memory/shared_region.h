// Memory that a client shares with the daemon: a part of a file in memory, mapped here and, where
// that is possible, by devices; or only read and written, if its owner might take it away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/device/device.h"
#include "server/device/host_registration.h"
#include "server/shared_memory/file_parts.h"

namespace opserve::server {

// Which part of a file, in bytes.
struct SharedRegionSpec {
  uint64_t offset = 0;  // a multiple of the page size
  uint64_t size = 0;    // at least 1
  bool read_only = false;
};

// Mapped, or open, until the last owner lets go of it, and no device has it registered any more.
// Thread-safe.
class SharedRegion {
 public:
  // Destroys `registration` on a thread that is bound to the device, soon. Called on any thread;
  // must not block.
  using Retire =
      std::function<void(int32_t device, std::shared_ptr<const HostRegistration> registration)>;

  // Charges the region to a quota; given back when it is destroyed. Errors become Map's.
  using TakeCharge = absl::FunctionRef<absl::StatusOr<std::shared_ptr<void>>()>;

  // Maps a part of the file `fd`, which stays the caller's. `retire` outlives the region.
  // `take_charge` is called when everything has been checked, before the mapping.
  //
  // Accepts only memory of memfd_create, with its seals: it can neither disappear nor shrink under
  // the mapping, which would kill a reading thread by SIGBUS.
  //
  // kInvalidArgument (reason "shm_invalid"): `fd` is no such file, or the part is not in it.
  // kPermissionDenied (reason "forbidden"): it may not be read, or written to.
  // kResourceExhausted: there is no room for the mapping.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Map(int fd, const SharedRegionSpec& spec,
                                                           const Retire& retire,
                                                           TakeCharge take_charge);
  // A part of the file `fd`, which becomes the region's, that is never mapped: it may be cut off at
  // any time, which reading and writing by system calls survives. The caller has checked the file.
  static std::shared_ptr<SharedRegion> Open(int fd, const SharedRegionSpec& spec,
                                            std::shared_ptr<void> charge);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  bool is_mapped() const { return mapping_ != nullptr; }
  char* data() const;  // if it is
  // Copy from `offset` on, if it is not.
  // kInvalidArgument (reason "shm_invalid"): that part of the file is gone.
  absl::Status Read(uint64_t offset, absl::Span<char> to) const;
  absl::Status Write(uint64_t offset, absl::string_view from) const;
  uint64_t size() const { return spec_.size; }
  bool is_read_only() const { return spec_.read_only; }

  // The region as `device` sees it; null if it cannot map it. The first call on a device registers
  // the region there, which others wait for until `until`; after a reset of the device it is done
  // again. The calling thread must be bound to the device.
  // kUnavailable: the device is lost.  kDeadlineExceeded (reason "deadline_expired"): waited in
  // vain.
  absl::StatusOr<std::shared_ptr<const HostRegistration>> RegistrationOn(const Device& device,
                                                                         absl::Time until)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether kernels may use the bytes [offset, offset + size) where they are, as far as aclnn asks:
  // their alignment, and room behind them that is mapped as well.
  bool FitsInPlace(uint64_t offset, uint64_t size) const;

  // Where the `size` bytes from `offset` on are in the file.
  FilePart PartOf(uint64_t offset, uint64_t size) const;

 private:
  class Mapping;
  class File;
  struct OnDevice {
    bool is_being_registered = false;
    std::optional<uint64_t> generation;  // of the device, when that was tried last
    std::shared_ptr<const HostRegistration> registration;  // null: it cannot be mapped
  };

  SharedRegion(const SharedRegionSpec& spec, const Retire* retire, std::shared_ptr<void> charge)
      : spec_(spec), retire_(retire), charge_(std::move(charge)) {}

  const SharedRegionSpec spec_;
  const Retire* const retire_;  // null: it is not mapped, so no device ever sees it
  const std::shared_ptr<void> charge_;
  FilePart part_;                           // of the file
  std::shared_ptr<const Mapping> mapping_;  // registrations have it, too; null: not mapped
  std::shared_ptr<const File> file_;        // null: mapped
  absl::Mutex mutex_;
  std::map<int32_t, OnDevice> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
