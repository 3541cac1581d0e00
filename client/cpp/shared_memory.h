// Memory shared with a daemon on the same machine, so that tensors need not be sent.
//
//   auto memory = SharedMemory::Open("unix:/run/opserve/opserve.sock");
//   auto region = (*memory)->CreateRegion(3 * bytes);
//   ... write elements to (*region)->bytes() ...
//   Request request = {.invocations = {{..., .inputs = {{"self", SharedTensor{
//                          kFloat, {rows, columns}, (*region)->Range(0, bytes)}}, ...}}},
//                      .destinations = {(*region)->Range(2 * bytes, bytes)}};
//
// The daemon must allow it (--enable_shm). A region is made once and used for any number of calls:
// fresh memory costs more than copying. Tensors that begin at multiples of 64 bytes, with 32 bytes
// between them, are used in place by every device that can map host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/request.h"
#include "client/cpp/shared_range.h"

namespace opserve {

class SharedMapping;
class SharedMemoryConnection;

struct SharedMemoryOptions {
  // A bearer token, for tenants that are known by one; the same as for the calls that use the
  // memory (ConnectOptions::token). Empty: the daemon knows the user.
  std::string token = {};

  // How long the daemon may take to answer.
  absl::Duration timeout = kDefaultTimeout;
};

struct SharedRegionOptions {
  // The daemon can read it, and write no result to it.
  bool read_only = false;
};

// Memory that both sides have. Thread-safe; its bytes are the caller's to protect.
class SharedRegion {
 public:
  // Unregisters the region; calls in progress keep the parts that they use. Results that are in it
  // stay readable as long as they live.
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  // Begins on a page boundary; zeros at first. A call that was cancelled, or has passed its
  // deadline, may write its results here until it has left the device.
  absl::Span<std::byte> bytes() const;

  // `size` bytes from `offset` on, for tensors. Whether they are in the region is checked by the
  // daemon.
  SharedRange Range(uint64_t offset, uint64_t size) const;

 private:
  friend class SharedMemory;
  SharedRegion(std::shared_ptr<SharedMemoryConnection> connection, std::string key, uint64_t id,
               std::shared_ptr<SharedMapping> mapping, size_t size);

  const std::shared_ptr<SharedMemoryConnection> connection_;
  const std::string key_;
  const uint64_t id_;
  const std::shared_ptr<SharedMapping> mapping_;
  const size_t size_;
};

// A connection to a daemon on which regions are registered; all of them are unregistered when it
// ends, as when this process does. It is not made anew after it broke: then neither are its
// regions. Thread-safe; requests wait for each other.
//
// Errors have the daemon's code and message, and ErrorDetailOf tells more. Those that arise here:
// kUnavailable (no daemon, or one without shared memory, or the connection broke),
// kDeadlineExceeded, kResourceExhausted (the system has no memory) and kInternal (the answer breaks
// the protocol).
class SharedMemory {
 public:
  struct RegionStatus {
    uint64_t region = 0;  // SharedRange::region
    uint64_t size = 0;    // in bytes, as registered: whole pages
    bool read_only = false;
  };

  // `target`: "unix:PATH", as for Client::Connect. kInvalidArgument: it is no Unix socket of one
  // daemon.
  static absl::StatusOr<std::unique_ptr<SharedMemory>> Open(
      const std::string& target, const SharedMemoryOptions& options = {});

  // May go before its regions, which keep the connection.
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Makes a region of at least 1 byte. kResourceExhausted: the tenant's quota, or the system's
  // memory. kInvalidArgument: 0 bytes.
  absl::StatusOr<std::unique_ptr<SharedRegion>> CreateRegion(
      size_t bytes, const SharedRegionOptions& options = {});

  // The regions of this connection that the daemon knows.
  absl::StatusOr<std::vector<RegionStatus>> ListRegions();

 private:
  explicit SharedMemory(std::shared_ptr<SharedMemoryConnection> connection);

  const std::shared_ptr<SharedMemoryConnection> connection_;
};

}  // namespace opserve
