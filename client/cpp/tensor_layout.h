// Internal: where the elements of a tensor lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/tensor.h"

namespace opserve {

// Bytes of a contiguous tensor; nothing if there is no such tensor: an unknown dtype, a negative
// extent, more bytes than can be counted.
std::optional<uint64_t> ContiguousBytes(DataType dtype, absl::Span<const int64_t> shape);

// Uninitialised memory, aligned for elements of every dtype. kResourceExhausted: there is not as
// much.
absl::StatusOr<std::shared_ptr<std::byte[]>> AllocateBytes(uint64_t num_bytes);

// The same tensor with nothing in its storage but its elements, row-major. Refers to the storage of
// `tensor` if they lie there like this, else owns a copy.
//
// kInvalidArgument: the view does not fit the storage, by the rules that Tensor in the protocol
// has. kResourceExhausted: no memory for a copy.
absl::StatusOr<Tensor> MakeContiguous(const Tensor& tensor);

}  // namespace opserve
