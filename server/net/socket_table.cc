#include "server/net/socket_table.h"

#include <array>
#include <charconv>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opserve::server {
namespace {

// 8 MiB of addresses, of which pages are used as far as descriptors go.
std::array<std::atomic<SocketEntry*>, socket_table::kMaxDescriptors> entries = {};
std::atomic<int> largest = -1;  // descriptor with an entry

constexpr absl::string_view kUnixScheme = "unix:";
// An abstract name passes through gRPC as it is, and no client of ours has one.
constexpr absl::string_view kOtherScheme = "unix-abstract:";
constexpr absl::string_view kStem = "connection-";

}  // namespace

namespace socket_table {

SocketEntry* FindOrMake(int fd) {
  if (fd < 0 || fd >= kMaxDescriptors) return nullptr;
  SocketEntry* entry = entries[fd].load(std::memory_order_acquire);
  if (entry != nullptr) return entry;
  auto made = std::make_unique<SocketEntry>();
  // Another thread was faster; its entry serves as well.
  if (!entries[fd].compare_exchange_strong(entry, made.get(), std::memory_order_acq_rel)) {
    return entry;
  }
  for (int before = largest.load(std::memory_order_relaxed);
       before < fd && !largest.compare_exchange_weak(before, fd, std::memory_order_acq_rel);) {
  }
  return made.release();
}

SocketEntry* Find(int fd) {
  if (fd < 0 || fd >= kMaxDescriptors) return nullptr;
  return entries[fd].load(std::memory_order_acquire);
}

std::string PeerText(const SocketName& name, bool is_unix) {
  return absl::StrCat(is_unix ? kUnixScheme : kOtherScheme, kStem, name.fd, "-", name.generation);
}

std::optional<SocketName> ParsePeer(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, kUnixScheme)) absl::ConsumePrefix(&peer, kOtherScheme);
  if (!absl::ConsumePrefix(&peer, kStem)) return std::nullopt;
  // A peer's real address never has this form, so it names no connection here.
  SocketName name;
  const char* const end = peer.data() + peer.size();
  const auto [dash, fd_error] = std::from_chars(peer.data(), end, name.fd);
  if (fd_error != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [rest, generation_error] = std::from_chars(dash + 1, end, name.generation);
  if (generation_error != std::errc() || rest != end) return std::nullopt;
  return name;
}

// New TLS sessions are rare, and cost the processor a thousand times as much as this.
std::optional<SocketName> FindSession(const ClientRandom& random) {
  const int end = largest.load(std::memory_order_acquire) + 1;
  for (int fd = 0; fd < end; ++fd) {
    SocketEntry* const entry = Find(fd);
    if (entry == nullptr || !entry->facts.is_open()) continue;
    const uint32_t generation = entry->facts.generation();
    if (entry->guard.Claims(random)) return SocketName{fd, generation};
  }
  return std::nullopt;
}

}  // namespace socket_table

}  // namespace opserve::server
