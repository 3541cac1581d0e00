// The bytes of a message, or of a part of one, in the pieces that gRPC has them in.
#pragma once

#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace opserve::codec {

// In order; a copy refers to the same bytes. Unlike a ByteBuffer, which gRPC allocates and whose
// pieces it hands out by copies, it costs nothing to make and to take apart. Nearly all have one.
using Slices = absl::InlinedVector<grpc::Slice, 1>;

inline size_t NumBytes(absl::Span<const grpc::Slice> slices) {
  size_t bytes = 0;
  for (const grpc::Slice& slice : slices) bytes += slice.size();
  return bytes;
}

// By reference.
inline absl::string_view ViewOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// Sets *slices, in their place, since a slice that moves is copied. kInternal: gRPC could not give
// them.
inline absl::Status TakeSlices(const grpc::ByteBuffer& buffer, Slices* slices) {
  slices->resize(1);
  // For more than one, Dump takes memory.
  if (buffer.TrySingleSlice(&slices->front()).ok()) return absl::OkStatus();
  std::vector<grpc::Slice> dumped;
  if (!buffer.Valid() || !buffer.Dump(&dumped).ok()) {
    return absl::InternalError("gRPC could not give the slices of a message");
  }
  slices->assign(std::move_iterator(dumped.begin()), std::move_iterator(dumped.end()));
  return absl::OkStatus();
}

inline grpc::ByteBuffer ToByteBuffer(absl::Span<const grpc::Slice> slices) {
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace opserve::codec
