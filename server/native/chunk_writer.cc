#include "server/native/chunk_writer.h"

#include "server/run/tensor_transfer.h"

namespace opserve::server {

void ChunkWriter::Expect(DeviceService& device, uint64_t bytes) {
  device_ = &device;
  unwritten_bytes_ += bytes;
  device.queue().AddUnwritten(bytes);
}

ChunkWriter::Copy ChunkWriter::Begin(const CallState& call, uint32_t tenant) {
  copying_ = std::exchange(waiting_, std::nullopt);
  return {.device = copying_->tensor->device,
          .is_last = copying_->is_last,
          .step = [this, &call, tenant](LaneContext& lane) {
            const UploadChunk chunk = {.payload = copying_->message.payloads()[0],
                                       .offset = copying_->offset,
                                       .crc32c = copying_->crc32c};
            return CopyToDevice(chunk, call, tenant, lane, copying_->tensor);
          }};
}

void ChunkWriter::End(const absl::Status& status) {
  if (status.ok()) {
    const uint64_t bytes = copying_->message.payloads()[0].size;
    metrics_.RecordCopies(CopyPath::kGrpc, bytes, 0);
    SubtractUnwritten(bytes);
  }
  copying_.reset();
}

void ChunkWriter::Clear() {
  SubtractUnwritten(unwritten_bytes_);
  copying_.reset();
  waiting_.reset();
}

void ChunkWriter::SubtractUnwritten(uint64_t bytes) {
  if (bytes == 0) return;
  unwritten_bytes_ -= bytes;
  device_->queue().SubtractUnwritten(bytes);
}

}  // namespace opserve::server
