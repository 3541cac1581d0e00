#include "server/access/socket_table.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace opserve::server {
namespace {

// 8 MiB of addresses, of which pages are used as far as descriptors go.
std::array<std::atomic<SocketEntry*>, socket_table::kMaxDescriptors> entries = {};

constexpr absl::string_view kUnixScheme = "unix:";
// An abstract name passes through gRPC as it is, and no client of ours has one.
constexpr absl::string_view kOtherScheme = "unix-abstract:";
constexpr absl::string_view kStem = "connection-";

}  // namespace

uint32_t ConnectionFacts::Begin() {
  uint64_t before = word_.load(std::memory_order_relaxed);
  uint64_t after = 0;
  do {
    after = (((before >> 32) + 1) << 32) | kOpen;
  } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
  return static_cast<uint32_t>(after >> 32);
}

void ConnectionFacts::End() { word_.fetch_and(~kOpen, std::memory_order_acq_rel); }

void ConnectionFacts::AddIdentifiedCall(uint32_t generation) {
  uint64_t before = word();
  uint64_t after = 0;
  do {
    if (before >> 32 != generation || (before & kOpen) == 0) return;
    // The count overflows within its half.
    const uint32_t low = (static_cast<uint32_t>(before) | kIdentified) + kOneCall;
    after = (before >> 32 << 32) | low;
  } while (!word_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
}

void ConnectionFacts::SetHealthChecked(uint32_t generation) {
  uint64_t before = word();
  do {
    if (before >> 32 != generation || (before & (kOpen | kHealthChecked)) != kOpen) return;
  } while (
      !word_.compare_exchange_weak(before, before | kHealthChecked, std::memory_order_acq_rel));
}

namespace socket_table {

SocketEntry* FindOrMake(int fd) {
  if (fd < 0 || fd >= kMaxDescriptors) return nullptr;
  SocketEntry* entry = entries[fd].load(std::memory_order_acquire);
  if (entry != nullptr) return entry;
  auto* made = new SocketEntry;
  if (entries[fd].compare_exchange_strong(entry, made, std::memory_order_acq_rel)) return made;
  delete made;
  return entry;
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
  const size_t dash = peer.find('-');
  SocketName name;
  if (dash == absl::string_view::npos || !absl::SimpleAtoi(peer.substr(0, dash), &name.fd) ||
      !absl::SimpleAtoi(peer.substr(dash + 1), &name.generation)) {
    return std::nullopt;
  }
  return name;
}

}  // namespace socket_table

namespace {

// The function that would have been called if this program had none of that name.
template <typename Function>
Function* Next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();  // the daemon cannot run without it
  return reinterpret_cast<Function*>(found);
}

// The open connection of `fd`; null: the descriptor is something else.
SocketEntry* OpenConnection(int fd) {
  SocketEntry* const entry = socket_table::Find(fd);
  return entry != nullptr && entry->facts.is_open() ? entry : nullptr;
}

// Writes the made-up address as the system would: as much as there is room for, and its length.
void FillName(const SocketEntry& entry, int fd, sockaddr* address, socklen_t* size) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string text = socket_table::PeerText({fd, entry.facts.generation()}, entry.is_unix);
  const absl::string_view path = absl::string_view(text).substr(text.find(':') + 1);
  // A name without a leading zero byte is a path, and ends with one; with it, it is abstract.
  std::memcpy(name.sun_path + (entry.is_unix ? 0 : 1), path.data(), path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  std::memcpy(address, &name, std::min(length, *size));
  *size = length;
}

}  // namespace
}  // namespace opserve::server

// The functions of the C library that gRPC calls. Signatures are the library's.
extern "C" {

__attribute__((visibility("default"))) int getpeername(int fd, sockaddr* address,
                                                       socklen_t* size) noexcept {
  using namespace opserve::server;  // NOLINT: the function stands for a namespace of its own
  static auto* const next = Next<int(int, sockaddr*, socklen_t*)>("getpeername");
  const SocketEntry* const entry = OpenConnection(fd);
  if (entry == nullptr) return next(fd, address, size);
  FillName(*entry, fd, address, size);
  return 0;
}

// The number may be given to another socket as soon as this returns, so the connection ends before.
__attribute__((visibility("default"))) int close(int fd) {
  using namespace opserve::server;  // NOLINT
  static auto* const next = Next<int(int)>("close");
  if (SocketEntry* const entry = OpenConnection(fd)) entry->facts.End();
  return next(fd);
}

}  // extern "C"
