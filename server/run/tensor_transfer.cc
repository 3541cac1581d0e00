#include "server/run/tensor_transfer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/crc32c.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"

namespace opserve::server {
namespace {

absl::Status CheckGeneration(uint64_t generation, const Device& device) {
  if (generation == device.generation()) return absl::OkStatus();
  return MakeError(
      Reason::kTensorLost,
      "the device was reset since the upload of the resident tensor began; upload it again");
}

absl::Status CheckChecksum(const UploadChunk& chunk) {
  if (!chunk.crc32c) return absl::OkStatus();
  // Over the elements in their order, however they were cut into pieces on the way.
  uint32_t crc = 0;
  for (absl::string_view piece : chunk.payload.pieces) crc = codec::Crc32c(piece, crc);
  if (crc == *chunk.crc32c) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the ", chunk.payload.size, " bytes from ", chunk.offset,
                                          " on have the CRC32C ", absl::Hex(crc, absl::kZeroPad8),
                                          ", not ", absl::Hex(*chunk.crc32c, absl::kZeroPad8)));
}

absl::Status TakeMemory(const CallState& call, uint32_t tenant, LaneContext& context,
                        ResidentTensor* tensor) {
  // A wait for memory is no hold-up by the device.
  context.BeginWait();
  absl::StatusOr<DeviceBuffer> memory =
      context.lane.device().memory().Allocate({.bytes = static_cast<size_t>(NumBytes(tensor->spec)),
                                               // In no stream's order, as the tensor outlives the
                                               // lane's work.
                                               .stream = nullptr,
                                               .tenant = tenant,
                                               .wait_until = call.deadline(),
                                               .is_cancelled = &call.is_cancelled()});
  context.BeginStep();
  OPSERVE_ASSIGN_OR_RETURN(tensor->content->memory, std::move(memory));
  return absl::OkStatus();
}

absl::Status Copy(const AclLibrary& acl, void* to, const void* from, size_t bytes,
                  aclrtMemcpyKind kind) {
  return AclCallStatus(acl, "aclrtMemcpy", acl.aclrtMemcpy(to, bytes, from, bytes, kind));
}

absl::Status CopyPieces(const UploadChunk& chunk, const CallState& call, uint32_t tenant,
                        LaneContext& context, ResidentTensor* tensor) {
  // With the first elements: an upload that sends none takes no memory.
  if (tensor->content->memory.data() == nullptr) {
    OPSERVE_RETURN_IF_ERROR(TakeMemory(call, tenant, context, tensor));
  }
  char* to = static_cast<char*>(tensor->content->memory.data()) + chunk.offset;
  for (absl::string_view piece : chunk.payload.pieces) {
    OPSERVE_RETURN_IF_ERROR(Copy(context.lane.device().acl(), to, piece.data(), piece.size(),
                                 ACL_MEMCPY_HOST_TO_DEVICE));
    to += piece.size();
  }
  return absl::OkStatus();
}

absl::Status CopyToHost(const ResidentContent& content, absl::Span<const HeldResults::Result> parts,
                        LaneContext& context, PinnedBuffer* to) {
  uint64_t bytes = 0;
  for (const HeldResults::Result& part : parts) bytes += part.bytes;
  OPSERVE_ASSIGN_OR_RETURN(*to, context.pinned.Allocate(bytes, context.pinned_allowance));
  char* next = static_cast<char*>(to->data());
  for (const HeldResults::Result& part : parts) {
    const char* from = static_cast<const char*>(content.memory.data()) + part.offset;
    OPSERVE_RETURN_IF_ERROR(
        Copy(context.lane.device().acl(), next, from, part.bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    next += part.bytes;
  }
  return absl::OkStatus();
}

// No other request may have to find out that the device is lost.
absl::Status ReportLoss(const absl::Status& status, Device& device) {
  if (IsDeviceLoss(status)) device.QuarantineLost(status);
  return status;
}

}  // namespace

absl::Status CopyToDevice(const UploadChunk& chunk, const CallState& call, uint32_t tenant,
                          LaneContext& context, ResidentTensor* tensor) {
  // Before anything is read or written: the addresses may be another tensor's by now.
  OPSERVE_RETURN_IF_ERROR(CheckGeneration(tensor->device_generation, context.lane.device()));
  OPSERVE_RETURN_IF_ERROR(CheckChecksum(chunk));
  return ReportLoss(CopyPieces(chunk, call, tenant, context, tensor), context.lane.device());
}

absl::StatusOr<DownloadChunk> CopyFromDevice(const ResidentContent& content, uint64_t generation,
                                             uint64_t offset, uint64_t bytes,
                                             LaneContext& context) {
  OPSERVE_RETURN_IF_ERROR(CheckGeneration(generation, context.lane.device()));
  DownloadChunk chunk;
  OPSERVE_RETURN_IF_ERROR(ReportLoss(CopyToHost(content, {{offset, bytes}}, context, &chunk.data),
                                     context.lane.device()));
  chunk.crc32c =
      codec::Crc32c(absl::string_view(static_cast<const char*>(chunk.data.data()), bytes));
  return chunk;
}

absl::StatusOr<PinnedBuffer> CopyHeld(const HeldResults& held,
                                      absl::Span<const HeldResults::Result> parts,
                                      LaneContext& context) {
  Device& device = context.lane.device();
  if (held.device_generation != device.generation()) {
    return MakeError(Reason::kDeviceUnavailable,
                     "the device was reset before the results had left it");
  }
  PinnedBuffer copied;
  OPSERVE_RETURN_IF_ERROR(ReportLoss(CopyToHost(held.content, parts, context, &copied), device));
  return copied;
}

}  // namespace opserve::server
