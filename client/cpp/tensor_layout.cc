#include "client/cpp/tensor_layout.h"

#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/dtypes/element.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

absl::Status DoesNotFit(const Tensor& tensor, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("tensor of ", DataTypeName(tensor.dtype()), " [",
                                                 absl::StrJoin(tensor.shape(), ", "), "]: ", why));
}

// Whether neighbours along each axis have the distance of a row-major tensor.
bool IsRowMajor(const Tensor& tensor) {
  int64_t stride = 1;
  for (size_t axis = tensor.strides().size(); axis-- > 0;) {
    const int64_t extent = tensor.shape()[axis];
    // A stride along an axis of one element is never used.
    if (extent != 1 && tensor.strides()[axis] != stride) return false;
    stride *= extent;
  }
  return true;
}

// Position in the storage, in elements, after the last element that the view addresses; nothing if
// there is no such position. Requires: as many strides as extents (or none), no extent is 0.
std::optional<int64_t> EndOfView(const Tensor& tensor, int64_t num_elements) {
  // Without strides the last element follows from their number.
  int64_t last = tensor.strides().empty() ? num_elements - 1 : 0;
  for (size_t axis = 0; axis < tensor.strides().size(); ++axis) {
    int64_t distance = 0;
    if (tensor.strides()[axis] < 0 ||
        __builtin_mul_overflow(tensor.shape()[axis] - 1, tensor.strides()[axis], &distance) ||
        __builtin_add_overflow(last, distance, &last)) {
      return std::nullopt;
    }
  }
  int64_t end = 0;
  if (tensor.offset() < 0 || __builtin_add_overflow(last, tensor.offset(), &end) ||
      __builtin_add_overflow(end, 1, &end)) {
    return std::nullopt;
  }
  return end;
}

absl::Status CheckView(const Tensor& tensor, uint64_t num_bytes) {
  if (!tensor.strides().empty() && tensor.strides().size() != tensor.shape().size()) {
    return DoesNotFit(tensor, absl::StrCat(tensor.strides().size(), " strides"));
  }
  const size_t element_bytes = DataTypeBytes(tensor.dtype());
  const uint64_t storage_bytes = tensor.storage().size();
  // Without strides and offset the storage is the tensor, neither more nor less.
  if (tensor.strides().empty() && tensor.offset() == 0 && storage_bytes != num_bytes) {
    return DoesNotFit(tensor,
                      absl::StrCat("takes ", num_bytes, " bytes, the storage has ", storage_bytes));
  }
  // An empty view addresses nothing, wherever it points.
  if (num_bytes == 0) return absl::OkStatus();
  const std::optional<int64_t> end =
      EndOfView(tensor, static_cast<int64_t>(num_bytes / element_bytes));
  if (!end || static_cast<uint64_t>(*end) > storage_bytes / element_bytes) {
    return DoesNotFit(
        tensor, absl::StrCat("strides [", absl::StrJoin(tensor.strides(), ", "), "] and offset ",
                             tensor.offset(), " lead out of a storage of ",
                             storage_bytes / element_bytes, " elements"));
  }
  return absl::OkStatus();
}

// Copies the elements along the axes of `shape`, one or more of them, and returns the end of the
// copy. `source` and `destination` need not be aligned.
template <size_t kElementBytes>
std::byte* CopyAxes(const std::byte* source, absl::Span<const int64_t> shape,
                    absl::Span<const int64_t> strides, std::byte* destination) {
  const auto step = static_cast<ptrdiff_t>(strides[0] * kElementBytes);
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (shape.size() > 1) {
      destination = CopyAxes<kElementBytes>(source + i * step, shape.subspan(1), strides.subspan(1),
                                            destination);
    } else {
      std::memcpy(destination, source + i * step, kElementBytes);
      destination += kElementBytes;
    }
  }
  return destination;
}

void CopyElements(const Tensor& tensor, std::byte* destination) {
  const size_t element_bytes = DataTypeBytes(tensor.dtype());
  const std::byte* source = tensor.storage().data() + tensor.offset() * element_bytes;
  // By size: the bytes are moved, not read as numbers.
  const auto copy = VisitElement(
      tensor.dtype(), []<typename T>(std::type_identity<T>) { return &CopyAxes<sizeof(T)>; });
  copy(source, tensor.shape(), tensor.strides(), destination);
}

}  // namespace

std::optional<uint64_t> ContiguousBytes(DataType dtype, absl::Span<const int64_t> shape) {
  uint64_t num_bytes = DataTypeBytes(dtype);
  if (num_bytes == 0) return std::nullopt;
  bool is_representable = true;
  bool is_empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    // An extent of 0 makes the tensor empty even if the others overflow.
    is_empty |= extent == 0;
    is_representable &=
        !__builtin_mul_overflow(num_bytes, static_cast<uint64_t>(extent), &num_bytes);
  }
  if (is_empty) return 0;
  if (!is_representable || num_bytes > std::numeric_limits<int64_t>::max()) return std::nullopt;
  return num_bytes;
}

absl::StatusOr<std::shared_ptr<std::byte[]>> AllocateBytes(uint64_t num_bytes) {
  // Without a constructor: all of it is written next. nothrow, as the size may be the daemon's.
  std::byte* bytes = new (std::nothrow) std::byte[num_bytes];
  if (bytes == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a tensor of ", num_bytes, " bytes"));
  }
  return std::shared_ptr<std::byte[]>(bytes);
}

absl::StatusOr<Tensor> MakeContiguous(const Tensor& tensor) {
  const std::optional<uint64_t> num_bytes = ContiguousBytes(tensor.dtype(), tensor.shape());
  if (!num_bytes) return DoesNotFit(tensor, "there is no such tensor");
  OPSERVE_RETURN_IF_ERROR(CheckView(tensor, *num_bytes));
  if (*num_bytes == 0) return Tensor::FromBytes(tensor.dtype(), tensor.shape(), {});
  if (IsRowMajor(tensor)) {
    const size_t first_byte = tensor.offset() * DataTypeBytes(tensor.dtype());
    return Tensor::FromBytes(tensor.dtype(), tensor.shape(),
                             tensor.storage().subspan(first_byte, *num_bytes), tensor.owner());
  }
  OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte[]> copy, AllocateBytes(*num_bytes));
  CopyElements(tensor, copy.get());
  const auto bytes = absl::MakeConstSpan(copy.get(), *num_bytes);
  return Tensor::FromBytes(tensor.dtype(), tensor.shape(), bytes, std::move(copy));
}

}  // namespace opserve
