// A pooled buffer on its way out.
#pragma once

#include <utility>

#include "grpcpp/support/slice.h"
#include "server/device/pinned_pool.h"

namespace opserve::server {

// A slice of gRPC's that owns `buffer`, without copying it: it goes back to its pool when gRPC has
// sent it.
inline grpc::Slice ToSlice(PinnedBuffer buffer) {
  if (buffer.size() == 0) return grpc::Slice();
  auto* owner = new PinnedBuffer(std::move(buffer));
  return grpc::Slice(
      owner->data(), owner->size(), [](void* owner) { delete static_cast<PinnedBuffer*>(owner); },
      owner);
}

}  // namespace opserve::server
