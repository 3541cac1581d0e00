// Shared memory as a client that is not ours would use it: packets on the daemon's socket for it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "opserve/v1/shared_memory.pb.h"
#include "opserve/v1/tensor.pb.h"
#include "server/net/file_descriptor.h"
#include "tests/unit/server/shared_files.h"

namespace opserve::server {

// A connection for shared memory.
class SharedMemorySocket {
 public:
  // `target`: of the daemon's calls, "unix:PATH". Aborts the test program if nobody listens.
  explicit SharedMemorySocket(const std::string& target);

  // Sends a packet and waits for the answer; none (an empty message with is_closed()) if the
  // daemon ended the connection.
  v1::SharedMemoryResponse Send(absl::string_view packet, absl::Span<const int> descriptors = {});
  v1::SharedMemoryResponse Send(const v1::SharedMemoryRequest& request,
                                absl::Span<const int> descriptors = {});

  struct Region {
    uint64_t id = 1;
    uint64_t offset = 0;
    uint64_t size = kPageBytes;
    bool read_only = false;
    std::string token = "";
  };
  v1::SharedMemoryResponse Register(const Region& region, int fd);
  // Of a sealed file of its own.
  v1::SharedMemoryResponse Register(const Region& region);
  v1::SharedMemoryResponse Unregister(uint64_t id);
  v1::SharedMemoryResponse List();

  // As the last answer said.
  const std::string& key() const { return key_; }
  v1::SharedMemoryRange Range(uint64_t region, uint64_t offset, uint64_t size) const;

  bool is_closed() const { return is_closed_; }
  int fd() const { return socket_.get(); }
  void Close() { socket_ = FileDescriptor(); }

 private:
  FileDescriptor socket_;
  std::string key_;
  bool is_closed_ = false;
};

}  // namespace opserve::server
