#include "client/cli/commands/shared_arena.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "proto/status/status_macros.h"

namespace opserve::cli {

// 32 bytes that operators may read behind a tensor, and the next one at a multiple of 64.
uint64_t SharedArena::BytesFor(uint64_t num_bytes) { return (num_bytes + 32 + 63) / 64 * 64; }

uint64_t SharedArena::BytesFor(const std::vector<NamedInput>& inputs) {
  uint64_t num_bytes = 0;
  const auto add = [&num_bytes](const auto& value) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor != nullptr) num_bytes += BytesFor(tensor->storage().size());
  };
  for (const NamedInput& input : inputs) {
    add(input.value);
    const auto* list = std::get_if<std::vector<ListedTensor>>(&input.value);
    if (list != nullptr) std::for_each(list->begin(), list->end(), add);
  }
  return num_bytes;
}

absl::StatusOr<std::unique_ptr<SharedArena>> SharedArena::Make(const Session& session,
                                                               uint64_t num_bytes) {
  OPSERVE_ASSIGN_OR_RETURN(auto memory,
                           SharedMemory::Open(session.target, {.token = session.connection.token,
                                                               .timeout = session.timeout}));
  // Requests without a tensor of their own take no memory, but a region has at least a byte.
  OPSERVE_ASSIGN_OR_RETURN(auto region, memory->CreateRegion(std::max<uint64_t>(num_bytes, 1)));
  return std::unique_ptr<SharedArena>(new SharedArena(std::move(memory), std::move(region)));
}

SharedArena::SharedArena(std::unique_ptr<SharedMemory> memory, std::unique_ptr<SharedRegion> region)
    : memory_(std::move(memory)), region_(std::move(region)) {}

SharedRange SharedArena::Take(uint64_t num_bytes) {
  const SharedRange range = region_->Range(used_bytes_, num_bytes);
  used_bytes_ += BytesFor(num_bytes);
  return range;
}

// Copies the storage as it is: strides and offset mean the same in the arena.
SharedTensor SharedArena::Place(const Tensor& tensor) {
  const absl::Span<const std::byte> storage = tensor.storage();
  const SharedRange range = Take(storage.size());
  // memcpy takes no null, which an empty storage has.
  if (!storage.empty()) {
    std::memcpy(region_->bytes().data() + range.offset, storage.data(), storage.size());
  }
  return {.dtype = tensor.dtype(),
          .shape = tensor.shape(),
          .range = range,
          .strides = tensor.strides(),
          .offset = tensor.offset()};
}

// Resident tensors and others without bytes here stay as they are.
void SharedArena::Place(std::vector<NamedInput>* inputs) {
  const auto place = [this](auto& value) {
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor != nullptr) value = Place(*tensor);
  };
  for (NamedInput& input : *inputs) {
    place(input.value);
    auto* list = std::get_if<std::vector<ListedTensor>>(&input.value);
    if (list != nullptr) std::for_each(list->begin(), list->end(), place);
  }
}

Failure SharingFailure(const Session& session, const Client& client, const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsInvalidArgument(status)) {
    return CallFailure(session, client, status);
  }
  return {
      .status = status,
      .hint = "it takes opserved --enable_shm on this machine, and its Unix socket as --target"};
}

}  // namespace opserve::cli
