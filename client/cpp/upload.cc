#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/blocking_stream.h"
#include "client/cpp/borrow.h"
#include "client/cpp/message.h"
#include "client/cpp/tensor_layout.h"
#include "client/cpp/time_message.h"
#include "client/cpp/transfer.h"
#include "opserve/v1/tensor_service.pb.h"
#include "proto/codec/crc32c.h"
#include "proto/codec/payload_message.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr char kUpload[] = "/opserve.v1.TensorService/Upload";
// The limit of a gRPC message, less the parts around a chunk.
constexpr uint64_t kMaxChunkBytes = std::numeric_limits<uint32_t>::max() - (64 << 10);

void FillHeader(const Tensor& tensor, const UploadOptions& options, v1::UploadHeader* header) {
  header->set_dtype(tensor.dtype());
  header->mutable_shape()->Add(tensor.shape().begin(), tensor.shape().end());
  header->set_chunk_bytes(options.chunk_bytes);
  if (options.lease != absl::ZeroDuration()) {
    EncodeDuration(options.lease, header->mutable_lease());
  }
  if (options.device) header->set_device(*options.device);
}

// Sends the tensor; false: the daemon ended the call before it had all. The first chunk travels
// with the header, so that a small tensor takes one message.
bool SendChunks(const Tensor& tensor, const UploadOptions& options, BlockingStream& stream,
                Borrow* borrow) {
  const absl::Span<const std::byte> bytes = tensor.storage();
  v1::UploadRequest message;
  FillHeader(tensor, options, message.mutable_header());
  size_t sent = 0;
  // At least once: an empty tensor is a header with an empty chunk.
  do {
    const absl::Span<const std::byte> chunk = bytes.subspan(sent, options.chunk_bytes);
    message.set_crc32c(codec::Crc32c({reinterpret_cast<const char*>(chunk.data()), chunk.size()}));
    const grpc::Slice payload = SliceOf(chunk, tensor.owner(), borrow);
    grpc::ByteBuffer buffer = codec::BuildPayloadMessage(message, {&payload, 1});
    sent += chunk.size();
    if (!stream.Write(&buffer, /*is_last=*/sent == bytes.size())) return false;
    if (options.on_progress) options.on_progress(sent, bytes.size());
    // The header travels with the first chunk only.
    message.clear_header();
  } while (sent < bytes.size());
  return true;
}

}  // namespace

absl::StatusOr<ResidentTensor> UploadTensor(Transport& transport, const Tensor& tensor,
                                            const UploadOptions& options) {
  if (options.chunk_bytes < 1 || options.chunk_bytes > kMaxChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunks of ", options.chunk_bytes, " bytes; expected 1 to ", kMaxChunkBytes));
  }
  OPSERVE_ASSIGN_OR_RETURN(const Tensor contiguous, MakeContiguous(tensor));

  v1::UploadResponse response;
  OPSERVE_RETURN_IF_ERROR(
      CallByStream(transport, kUpload, options.timeout, [&](BlockingStream& stream) {
        Borrow borrow;
        grpc::ByteBuffer received;
        // A daemon that refuses may end the call before it has all; Finish then tells why.
        const bool is_sent = SendChunks(contiguous, options, stream, &borrow);
        const bool is_answered = is_sent && stream.Read(&received);
        // Before anything is returned: gRPC may still refer to the tensor's bytes.
        OPSERVE_RETURN_IF_ERROR(stream.Finish(borrow));
        if (!is_answered) return BadAnswer("an upload ended without answer");
        return DecodeMessage(received, &response);
      }));
  return ResidentTensor{.handle = std::move(*response.mutable_handle()),
                        .dtype = tensor.dtype(),
                        .shape = tensor.shape(),
                        .lease_end = DecodeTime(response.lease_end()),
                        .device = response.device()};
}

}  // namespace opserve
