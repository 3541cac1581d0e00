#include "client/cpp/tensor.h"

#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"

namespace opserve {

Tensor Tensor::FromBytes(DataType dtype, std::vector<int64_t> shape,
                         absl::Span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.storage_ = bytes;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::WithStrides(std::vector<int64_t> strides, int64_t offset) const {
  Tensor view = *this;
  view.strides_ = std::move(strides);
  view.offset_ = offset;
  return view;
}

struct Result::State {
  OutputOf source;
  DataType dtype;
  std::vector<int64_t> shape;
  absl::Span<const absl::string_view> pieces;
  std::shared_ptr<const void> owner;
  size_t num_bytes = 0;

  std::once_flag gather_once;  // guards the members below
  std::unique_ptr<std::byte[]> gathered;
  absl::Span<const std::byte> block;

  void CopyTo(std::byte* destination) const {
    for (const absl::string_view piece : pieces) {
      std::memcpy(destination, piece.data(), piece.size());
      destination += piece.size();
    }
  }

  void Gather() {
    // No piece to begin with.
    if (num_bytes == 0) return;
    const auto* first = reinterpret_cast<const std::byte*>(pieces.front().data());
    // gRPC's buffers begin anywhere.
    const bool is_aligned = reinterpret_cast<uintptr_t>(first) % DataTypeBytes(dtype) == 0;
    if (pieces.size() > 1 || !is_aligned) {
      gathered = std::make_unique_for_overwrite<std::byte[]>(num_bytes);
      CopyTo(gathered.get());
      first = gathered.get();
    }
    block = absl::MakeConstSpan(first, num_bytes);
  }
};

Result::Result(OutputOf source, DataType dtype, std::vector<int64_t> shape,
               absl::Span<const absl::string_view> pieces, std::shared_ptr<const void> owner)
    : state_(std::make_shared<State>()) {
  state_->source = std::move(source);
  state_->dtype = dtype;
  state_->shape = std::move(shape);
  state_->pieces = pieces;
  state_->owner = std::move(owner);
  for (const absl::string_view piece : pieces) state_->num_bytes += piece.size();
}

const OutputOf& Result::source() const { return state_->source; }
DataType Result::dtype() const { return state_->dtype; }
const std::vector<int64_t>& Result::shape() const { return state_->shape; }
size_t Result::num_bytes() const { return state_->num_bytes; }

int64_t Result::num_elements() const {
  return static_cast<int64_t>(state_->num_bytes / DataTypeBytes(state_->dtype));
}

absl::Span<const std::byte> Result::bytes() const {
  // Copies of a result share the state, and any of them may be read on any thread.
  std::call_once(state_->gather_once, [this] { state_->Gather(); });
  return state_->block;
}

absl::Status Result::CopyTo(absl::Span<std::byte> destination) const {
  if (destination.size() != state_->num_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the result has ", state_->num_bytes,
                                                   " bytes, the destination ", destination.size()));
  }
  state_->CopyTo(destination.data());
  return absl::OkStatus();
}

absl::Status Result::WrongType(DataType wanted) const {
  return absl::FailedPreconditionError(absl::StrCat("the result's dtype is ", DataTypeName(dtype()),
                                                    ", not ", DataTypeName(wanted)));
}

}  // namespace opserve
