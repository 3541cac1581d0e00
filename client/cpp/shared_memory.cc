#include "client/cpp/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/message.h"
#include "client/cpp/shared_mapping.h"
#include "client/cpp/shared_memory_connection.h"
#include "client/cpp/target.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

// Bytes that a device may touch behind a tensor; so a tensor at the very end is used in place.
constexpr size_t kSlackBytes = 32;

// A file in memory of whole pages that cannot change its size any more. The caller closes it.
absl::StatusOr<int> CreateSealedFile(size_t bytes) {
  // Sealed, so that neither side can shrink the file: the other would get a SIGBUS.
  const int fd = memfd_create("opserve", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    return fd;
  }
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrCat("cannot make shared memory of ", bytes, " bytes: ", std::strerror(errno)));
  if (fd >= 0) close(fd);
  return status;
}

}  // namespace

SharedRegion::SharedRegion(std::shared_ptr<SharedMemoryConnection> connection, std::string key,
                           uint64_t id, std::shared_ptr<SharedMapping> mapping, size_t size)
    : connection_(std::move(connection)),
      key_(std::move(key)),
      id_(id),
      mapping_(std::move(mapping)),
      size_(size) {
  SharedMappings::Get().Add(key_, id_, mapping_);
}

SharedRegion::~SharedRegion() {
  // First: an answer that arrives from now on finds no mapping, instead of one that goes away.
  SharedMappings::Get().Remove(key_, id_);
  v1::SharedMemoryRequest request;
  request.mutable_unregister_region()->set_region(id_);
  // A connection that broke has taken the region with it.
  connection_->Call(request).status().IgnoreError();
}

absl::Span<std::byte> SharedRegion::bytes() const { return {mapping_->data(), size_}; }

SharedRange SharedRegion::Range(uint64_t offset, uint64_t size) const {
  return {.connection = key_, .region = id_, .offset = offset, .size = size};
}

SharedMemory::SharedMemory(std::shared_ptr<SharedMemoryConnection> connection)
    : connection_(std::move(connection)) {}

SharedMemory::~SharedMemory() = default;

absl::StatusOr<std::unique_ptr<SharedMemory>> SharedMemory::Open(
    const std::string& target, const SharedMemoryOptions& options) {
  OPSERVE_ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
  if (parsed.socket_path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target \"", target, "\" is not unix:PATH, which shared memory needs"));
  }
  OPSERVE_ASSIGN_OR_RETURN(auto connection,
                           SharedMemoryConnection::Open(parsed.socket_path, options));
  return std::unique_ptr<SharedMemory>(new SharedMemory(std::move(connection)));
}

absl::StatusOr<std::unique_ptr<SharedRegion>> SharedMemory::CreateRegion(
    size_t bytes, const SharedRegionOptions& options) {
  if (bytes == 0) return absl::InvalidArgumentError("a region of 0 bytes");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX / 2) return absl::ResourceExhaustedError("more bytes than can be mapped");
  // The slack may take a further page.
  const size_t whole = (bytes + kSlackBytes + page - 1) / page * page;
  OPSERVE_ASSIGN_OR_RETURN(const int fd, CreateSealedFile(whole));
  // The daemon has its own descriptor by then, and the mapping needs none.
  const auto closer = absl::MakeCleanup([fd] { close(fd); });
  // Mapped before it is registered: a mapping that fails leaves nothing registered.
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<SharedMapping> mapping, SharedMapping::Map(fd, whole));

  const uint64_t id = connection_->NextRegion();
  v1::SharedMemoryRequest request;
  request.mutable_register_region()->set_region(id);
  request.mutable_register_region()->set_size(whole);
  request.mutable_register_region()->set_read_only(options.read_only);
  OPSERVE_ASSIGN_OR_RETURN(v1::SharedMemoryResponse response, connection_->Call(request, fd));
  return std::unique_ptr<SharedRegion>(
      new SharedRegion(connection_, response.connection(), id, std::move(mapping), bytes));
}

absl::StatusOr<std::vector<SharedMemory::RegionStatus>> SharedMemory::ListRegions() {
  v1::SharedMemoryRequest request;
  request.mutable_list_regions();
  OPSERVE_ASSIGN_OR_RETURN(const v1::SharedMemoryResponse response, connection_->Call(request));
  std::vector<RegionStatus> regions;
  for (const v1::SharedRegionStatus& region : response.regions()) {
    regions.push_back({region.region(), region.size(), region.read_only()});
  }
  return regions;
}

}  // namespace opserve
