#include "server/device/memory/memory_guard.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// As floating-point numbers of any type these are far from what programs compute with.
constexpr char kZone = '\xa5';
constexpr char kFree = '\xdb';

constexpr size_t kPieceBytes = size_t{1} << 20;
// Streams end their work or are aborted before their blocks come back.
constexpr int32_t kStreamTimeoutMs = 10'000;

}  // namespace

void AbortForDamage(absl::string_view text) {
  LogError("device_memory_overwritten", {{"reason", std::string(text)}});
  FlushLog();
  std::abort();
}

void MemoryGuard::NoteContext() {
  aclrtContext context = nullptr;
  if (acl_.aclrtGetCurrentContext(&context) == ACL_SUCCESS) context_ = context;
}

void MemoryGuard::Bind() const {
  aclrtContext context = nullptr;
  // The thread is bound already, be it to this device's default context.
  if (acl_.aclrtGetCurrentContext(&context) == ACL_SUCCESS && context != nullptr) return;
  if (context_ != nullptr) acl_.aclrtSetCurrentContext(context_);
}

bool MemoryGuard::Fill(char* data, size_t bytes, char value) const {
  const std::vector<char> piece(std::min(bytes, kPieceBytes), value);
  // In pieces, since a block may be larger than the host's free memory.
  for (size_t done = 0; done < bytes; done += piece.size()) {
    const size_t size = std::min(piece.size(), bytes - done);
    if (acl_.aclrtMemcpy(data + done, size, piece.data(), size, ACL_MEMCPY_HOST_TO_DEVICE) !=
        ACL_SUCCESS) {
      return false;
    }
  }
  return true;
}

void MemoryGuard::Check(const char* data, size_t bytes, char value, const MemoryBlock& block,
                        absl::string_view text) const {
  std::vector<char> piece(std::min(bytes, kPieceBytes));
  for (size_t done = 0; done < bytes; done += piece.size()) {
    const size_t size = std::min(piece.size(), bytes - done);
    if (acl_.aclrtMemcpy(piece.data(), size, data + done, size, ACL_MEMCPY_DEVICE_TO_HOST) !=
        ACL_SUCCESS) {
      // A device that fails the copy has other faults than a damaged block.
      return;
    }
    const auto end = piece.begin() + static_cast<ptrdiff_t>(size);
    const auto changed = std::find_if(piece.begin(), end, [value](char c) { return c != value; });
    if (changed == end) continue;
    // Counted from the first byte that the user has, so it is negative in the zone before it.
    const ptrdiff_t at = data + done + (changed - piece.begin()) - UserData(block);
    AbortForDamage(absl::StrCat(text, " has changed at byte ", at, " of a buffer of ",
                                block.requested_bytes, " bytes of tenant ", block.owner));
  }
}

bool MemoryGuard::Poison(char* data, size_t bytes) const { return Fill(data, bytes, kFree); }

void MemoryGuard::BeginUse(const MemoryBlock& block) const {
  if (block.is_poisoned) {
    Check(block.data, block.bytes, kFree, block, "device memory that was given back");
  }
  char* const behind = UserData(block) + block.requested_bytes;
  Fill(block.data, kZoneBytes, kZone);
  Fill(behind, static_cast<size_t>(block.data + block.bytes - behind), kZone);
}

void MemoryGuard::EndUse(MemoryBlock* block) const {
  Bind();
  block->is_poisoned = false;
  if (block->stream != nullptr) {
    const int code = acl_.aclrtSynchronizeStreamWithTimeout != nullptr
                         ? acl_.aclrtSynchronizeStreamWithTimeout(block->stream, kStreamTimeoutMs)
                         : acl_.aclrtSynchronizeStream(block->stream);
    if (code != ACL_SUCCESS) return;  // its work may have been cut off, the marking too
  }
  const char* const behind = UserData(*block) + block->requested_bytes;
  Check(block->data, kZoneBytes, kZone, *block, "the zone before device memory");
  Check(behind, static_cast<size_t>(block->data + block->bytes - behind), kZone, *block,
        "the zone behind device memory");
  block->is_poisoned = Poison(block->data, block->bytes);
}

}  // namespace opserve::server
