// Internal: requests and responses to and from gRPC's buffers.
#pragma once

#include <atomic>
#include <memory>

#include "absl/status/statusor.h"
#include "client/cpp/request.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

// Tells when gRPC has let go of the borrowed storages of a request.
class Borrow {
 public:
  // What a slice holds as long as it refers to borrowed bytes.
  std::shared_ptr<const void> Hold();

  // Whether all holders are gone (or there never were any); if so, the storages may be changed.
  bool IsReleased() const { return released_ == nullptr || released_->load(); }

 private:
  std::shared_ptr<std::atomic<bool>> released_;
  std::weak_ptr<const void> hold_;
};

struct EncodedRequest {
  grpc::ByteBuffer buffer;
  Borrow borrow;
};

// The message of an Execute call. Refers to the storages of the tensors, except small ones, which
// are copied. Tensors with the same storage share a payload.
//
// kInvalidArgument: more bytes than a gRPC message can have.
absl::StatusOr<EncodedRequest> EncodeRequest(const Request& request);

// kInternal: not an answer that the protocol allows.
absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer);

}  // namespace opserve
