// A client's messages on its connection for shared memory (opserve/v1/shared_memory.proto), and
// their answers.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "opserve/v1/shared_memory.pb.h"
#include "server/identity/tenants.h"
#include "server/net/file_descriptor.h"
#include "server/observability/request_metrics.h"
#include "server/shared_memory/shared_regions.h"

namespace opserve::server {

// Knows no socket. Used by one thread.
class SharedMemorySession {
 public:
  static constexpr size_t kMaxPacketBytes = 4096;

  // The parts that sessions use; all outlive them.
  struct Parts {
    const Tenants& tenants;
    SharedRegions& regions;
    RequestMetrics& metrics;
  };

  struct Packet {
    absl::string_view bytes;
    absl::Span<const FileDescriptor> descriptors;
    bool is_whole = true;  // false: the packet had more bytes or descriptors
  };

  // `uid`: the user at the other end.
  SharedMemorySession(const Parts& parts, uint32_t uid) : parts_(parts), uid_(uid) {}
  // Its regions can be used by no further request.
  ~SharedMemorySession();
  SharedMemorySession(const SharedMemorySession&) = delete;
  SharedMemorySession& operator=(const SharedMemorySession&) = delete;

  // The answer to `packet`, ready to be sent.
  std::string Answer(const Packet& packet);

  bool is_identified() const { return tenant_ != nullptr; }
  // After the last answer: the connection's tenant is not known.
  bool is_over() const { return is_over_; }

 private:
  absl::Status Handle(const Packet& packet, v1::SharedMemoryResponse* response);
  absl::Status Identify(const std::string& token);
  absl::Status Dispatch(const v1::SharedMemoryRequest& request, const Packet& packet,
                        v1::SharedMemoryResponse* response);
  absl::Status Register(const v1::RegisterRegion& request, const Packet& packet);

  const Parts parts_;
  const uint32_t uid_;
  const Tenant* tenant_ = nullptr;  // from the first request on
  std::string key_;                 // likewise
  bool is_over_ = false;
};

}  // namespace opserve::server
