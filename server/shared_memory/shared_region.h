// Memory that a client shares with the daemon: a part of a file in memory, mapped here and, where
// that is possible, by devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/device/device.h"
#include "server/device/host_registration.h"
#include "server/net/file_descriptor.h"
#include "server/shared_memory/file_parts.h"
#include "server/shared_memory/shared_mapping.h"

namespace opserve::server {

// Mapped until the last owner lets go of it, and no device has it registered any more.
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
  // the mapping.
  //
  // kInvalidArgument (reason "shm_invalid"): `fd` is no such file, or the part is not in it.
  // Else the errors of SharedMapping::Create.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> Map(int fd, const SharedRegionSpec& spec,
                                                           const Retire& retire,
                                                           TakeCharge take_charge);
  // The same for a file in memory that its owner may cut off at any time. The caller has checked
  // the file and the part; the region gets a descriptor of its own.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> MapShrinkable(int fd,
                                                                     const SharedRegionSpec& spec,
                                                                     const Retire& retire,
                                                                     TakeCharge take_charge);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Whether its owner may cut the file off.
  bool may_shrink() const { return file_.get() >= 0; }
  uint64_t size() const { return spec_.size; }
  bool is_read_only() const { return spec_.read_only; }

  // The mapping, for a use of the region's first `bytes` bytes; a new one if bytes were missing in
  // the last, but the file has them again.
  // kInvalidArgument (reason "shm_invalid"): the file has become too small.
  absl::StatusOr<std::shared_ptr<const SharedMapping>> MappingOf(uint64_t bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // After the use: whether these bytes were there all the time. Error as of MappingOf.
  absl::Status CheckIntact(const SharedMapping& mapping, uint64_t bytes) const;

  // `mapping` as `device` sees it; null if it cannot map it. The first call on a device registers
  // the mapping there, which others wait for until `until`; after a reset of the device it is done
  // again. The calling thread must be bound to the device.
  // kUnavailable: the device is lost.  kDeadlineExceeded (reason "deadline_expired"): waited in
  // vain.
  absl::StatusOr<std::shared_ptr<const HostRegistration>> RegistrationOn(
      const Device& device, const std::shared_ptr<const SharedMapping>& mapping, absl::Time until)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, if an earlier call has registered it; else null. Never waits.
  std::shared_ptr<const HostRegistration> KnownRegistrationOn(const Device& device,
                                                              const SharedMapping& mapping)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Where the `size` bytes from `offset` on are in the file.
  FilePart PartOf(uint64_t offset, uint64_t size) const;

 private:
  struct OnDevice {
    bool is_being_registered = false;
    // The last one that was tried, and in which life of the device.
    const SharedMapping* mapping = nullptr;
    std::optional<uint64_t> generation;
    std::shared_ptr<const HostRegistration> registration;  // null: it cannot be mapped
  };

  SharedRegion(const SharedRegionSpec& spec, const FilePart& part, const Retire& retire,
               std::shared_ptr<void> charge, FileDescriptor file,
               std::shared_ptr<const SharedMapping> mapping)
      : spec_(spec),
        part_(part),
        retire_(retire),
        charge_(std::move(charge)),
        file_(std::move(file)),
        mapping_(std::move(mapping)) {}

  absl::Status CheckSize(uint64_t bytes) const;
  // Has the devices destroy their registrations. Without the lock.
  void GiveUp(std::map<int32_t, OnDevice>* devices) const;
  // The finding of an earlier call in this life of the device; null: none.
  const OnDevice* FindTried(const Device& device, const SharedMapping& mapping) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const SharedRegionSpec spec_;
  const FilePart part_;  // of the file
  const Retire& retire_;
  const std::shared_ptr<void> charge_;
  const FileDescriptor file_;  // none: it cannot shrink
  absl::Mutex mutex_;
  std::shared_ptr<const SharedMapping> mapping_ ABSL_GUARDED_BY(mutex_);
  std::map<int32_t, OnDevice> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
