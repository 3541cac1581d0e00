// Results on their way out.
#pragma once

#include <utility>

#include "grpcpp/support/slice.h"
#include "server/device/memory/pinned_pool.h"
#include "server/request/result_bytes.h"

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

// The same of a result, which goes when its last slice has been sent.
inline grpc::Slice ToSlice(const ResultBytes& result) {
  const absl::string_view bytes = result.view();
  if (bytes.empty()) return grpc::Slice();
  // gRPC changes nothing, though it asks for bytes that may be changed.
  return grpc::Slice(const_cast<char*>(bytes.data()), bytes.size(), ResultBytes::Release,
                     result.Share());
}

// For a writer that copies it at once: nobody owns the slice's bytes.
inline grpc::Slice BorrowedSlice(const ResultBytes& result) {
  if (result.view().empty()) return grpc::Slice();  // it may be nowhere, which no slice is
  return grpc::Slice(result.view().data(), result.view().size(), grpc::Slice::STATIC_SLICE);
}

}  // namespace opserve::server
