// Tensors that a call takes and gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cpp/data_type.h"

namespace opserve {

// A tensor to send: a view (dtype, shape, strides and offset in elements) of a storage, which is
// memory of this process. Never copies a large storage; the bytes are read while the call runs.
//
// The storage must stay alive and unchanged until the call has ended (the blocking call has
// returned, the callback runs): the caller sees to that if it is borrowed, gRPC itself if the
// tensor has an owner. A call that ends early (deadline, cancellation) is reported only when gRPC
// has let go of borrowed bytes. If the peer has stopped reading its connection in the middle of a
// message, calls on it end only when it reads on or the connection breaks: gRPC does not abandon a
// write that it has begun.
//
// A value type; copies share the storage. Whether view and storage fit is checked by the daemon,
// and before an upload here.
class Tensor {
 public:
  // Contiguous, row-major, borrowed.
  template <Element T>
  static Tensor Of(std::vector<int64_t> shape, absl::Span<const T> elements) {
    return FromBytes(kDataTypeOf<T>, std::move(shape), AsBytes(elements));
  }

  // Contiguous, row-major, owns its elements.
  template <Element T>
  static Tensor Owning(std::vector<int64_t> shape, std::vector<T> elements) {
    if constexpr (std::is_same_v<T, bool>) {  // vector<bool> has no elements to point to
      const std::vector<uint8_t> bytes(elements.begin(), elements.end());
      Tensor tensor = Owning<uint8_t>(std::move(shape), bytes);
      tensor.dtype_ = kBool;
      return tensor;
    } else {
      auto owner = std::make_shared<const std::vector<T>>(std::move(elements));
      const auto bytes = AsBytes(absl::MakeConstSpan(*owner));
      return FromBytes(kDataTypeOf<T>, std::move(shape), bytes, std::move(owner));
    }
  }

  // Contiguous, row-major, of any dtype. `bytes` are little-endian elements; `owner`, if given,
  // keeps them valid.
  static Tensor FromBytes(DataType dtype, std::vector<int64_t> shape,
                          absl::Span<const std::byte> bytes,
                          std::shared_ptr<const void> owner = nullptr);

  // The same storage seen with `strides` (one per axis) from element `offset` on.
  Tensor WithStrides(std::vector<int64_t> strides, int64_t offset = 0) const;

  DataType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::vector<int64_t>& strides() const { return strides_; }  // empty: contiguous
  int64_t offset() const { return offset_; }
  absl::Span<const std::byte> storage() const { return storage_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }  // null: borrowed

 private:
  template <typename T>
  static absl::Span<const std::byte> AsBytes(absl::Span<const T> elements) {
    return {reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T)};
  }

  DataType dtype_ = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  int64_t offset_ = 0;
  absl::Span<const std::byte> storage_;
  std::shared_ptr<const void> owner_;
};

// Names an output of an invocation of the same request.
struct OutputOf {
  uint32_t invocation = 0;  // position in Request::invocations
  std::string output = {};  // empty: the operator's first output; of a list: "out.2"
};

// A tensor that came back: contiguous, row-major. That of a call refers to the memory in which gRPC
// received the response, shared by all results of that response and freed with the last of them;
// one in shared memory refers to the region's memory, and shows later writes to it.
//
// A value type; copies share the bytes. Thread-safe.
class Result {
 public:
  // A result of `shape` with the bytes of `pieces` in order, kept valid by `owner`.
  Result(OutputOf source, DataType dtype, std::vector<int64_t> shape,
         absl::Span<const absl::string_view> pieces, std::shared_ptr<const void> owner);

  const OutputOf& source() const;
  DataType dtype() const;
  const std::vector<int64_t>& shape() const;
  int64_t num_elements() const;
  size_t num_bytes() const;

  // The elements as one block, aligned for them. The first call copies if they arrived in several
  // pieces (large results do) or unaligned; later calls give the same block.
  absl::Span<const std::byte> bytes() const;

  // bytes() as elements of type T. kFailedPrecondition: the dtype is not T's.
  template <Element T>
  absl::StatusOr<absl::Span<const T>> values() const {
    if (dtype() != kDataTypeOf<T>) return WrongType(kDataTypeOf<T>);
    return absl::MakeConstSpan(reinterpret_cast<const T*>(bytes().data()), num_elements());
  }

  // Copies the elements to `destination`, of num_bytes() bytes, without the detour of bytes().
  // kInvalidArgument: another size; nothing is written.
  absl::Status CopyTo(absl::Span<std::byte> destination) const;

 private:
  struct State;

  absl::Status WrongType(DataType wanted) const;

  std::shared_ptr<State> state_;  // never null
};

// A resident tensor as it was at the moment of a snapshot (Client::Snapshot).
struct SnapshotTensor {
  Result tensor;         // a block of its own; no source()
  uint64_t version = 0;  // 1 and how often it was replaced before; 0: the daemon does not tell
};

}  // namespace opserve
