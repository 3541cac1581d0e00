// Finds writes to device memory that is not lent: marked zones before and behind lent bytes, and a
// pattern in memory that is free. For looking into faulty kernels, since it copies whole blocks to
// the host and waits for streams.
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/strings/string_view.h"
#include "server/device/acl/acl_library.h"
#include "server/device/memory/memory_region.h"

namespace opserve::server {

// Thread-safe for different blocks. Calling threads are bound to the device, or become so. Where
// the device fails a call, nothing is said of the block.
class MemoryGuard {
 public:
  // Of the zone before the lent bytes, and least size of the one behind them.
  static constexpr size_t kZoneBytes = kBlockAlignment;

  explicit MemoryGuard(const AclLibrary& acl) : acl_(acl) {}

  // The bytes of a lent block that its user may touch.
  static char* UserData(const MemoryBlock& block) { return block.data + kZoneBytes; }

  // Puts the pattern into free memory; whether it is there.
  bool Poison(char* data, size_t bytes) const;

  // For a block just lent: if it had the pattern, aborts unless it still has. Marks the zones.
  void BeginUse(const MemoryBlock& block) const;

  // For a block that comes back: waits for its stream, aborts if a zone has changed, and puts the
  // pattern in. Sets is_poisoned.
  void EndUse(MemoryBlock* block) const;

  // Remembers the context of the calling thread, which is bound, for threads that are not.
  void NoteContext();

 private:
  void Bind() const;
  bool Fill(char* data, size_t bytes, char value) const;
  // Aborts with `text` if a byte differs.
  void Check(const char* data, size_t bytes, char value, const MemoryBlock& block,
             absl::string_view text) const;

  const AclLibrary& acl_;
  std::atomic<aclrtContext> context_ = nullptr;
};

// Writes the line device_memory_overwritten to the log, and aborts.
[[noreturn]] void AbortForDamage(absl::string_view text);

}  // namespace opserve::server
