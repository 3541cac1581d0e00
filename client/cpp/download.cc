#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/blocking_stream.h"
#include "client/cpp/message.h"
#include "client/cpp/tensor_layout.h"
#include "client/cpp/transfer.h"
#include "opserve/v1/tensor_service.pb.h"
#include "proto/codec/crc32c.h"
#include "proto/codec/payload_message.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr char kDownload[] = "/opserve.v1.TensorService/Download";

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("download: ", what));
}

// The elements that have arrived, in one block.
class ArrivingTensor {
 public:
  // Takes the first message, which announces the tensor. kInternal: it does not.
  // kResourceExhausted: there is no memory for it.
  absl::Status Begin(const grpc::ByteBuffer& first) {
    v1::DownloadResponse message;
    OPSERVE_RETURN_IF_ERROR(DecodeMessage(first, &message));
    header_ = std::move(*message.mutable_header());
    const std::optional<uint64_t> num_bytes = ContiguousBytes(header_.dtype(), header_.shape());
    if (!num_bytes) return BadAnswer("a download of no such tensor");
    OPSERVE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte[]> bytes, AllocateBytes(*num_bytes));
    bytes_ = std::move(bytes);
    num_bytes_ = *num_bytes;
    return absl::OkStatus();
  }

  // Takes the next chunk.
  // kDataLoss: its size or its checksum is another one. kInternal: not a chunk.
  absl::Status Append(const grpc::ByteBuffer& buffer) {
    const auto split = codec::PayloadMessage::Split(buffer, /*max_payloads=*/1);
    if (!split.ok()) return BadAnswer(split.status().message());
    v1::DownloadResponse message;
    if (absl::Status status = split->ParseHeader(&message); !status.ok()) {
      return BadAnswer(status.message());
    }
    const codec::Payload chunk =
        split->payloads().empty() ? codec::Payload() : split->payloads()[0];
    const uint64_t expected = std::min(header_.chunk_bytes(), num_bytes_ - arrived_bytes_);
    if (chunk.size != expected) {
      return Damaged(absl::StrCat("a chunk of ", chunk.size, " bytes at ", arrived_bytes_, " of ",
                                  num_bytes_, "; expected ", expected));
    }
    uint32_t crc = 0;
    uint64_t end = arrived_bytes_;
    for (const absl::string_view piece : chunk.pieces) {
      crc = codec::Crc32c(piece, crc);
      std::memcpy(bytes_.get() + end, piece.data(), piece.size());
      end += piece.size();
    }
    if (crc != message.crc32c()) {
      return Damaged(absl::StrCat("the chunk at byte ", arrived_bytes_, " has another checksum (",
                                  crc, ") than it was sent with (", message.crc32c(), ")"));
    }
    arrived_bytes_ = end;
    return absl::OkStatus();
  }

  // kDataLoss: there are elements missing.
  absl::StatusOr<Result> End() const {
    if (arrived_bytes_ != num_bytes_) {
      return Damaged(absl::StrCat("it ended after ", arrived_bytes_, " of ", num_bytes_, " bytes"));
    }
    struct Block {
      std::shared_ptr<std::byte[]> bytes;
      absl::string_view piece;
    };
    auto block = std::make_shared<Block>();
    block->bytes = bytes_;
    block->piece = {reinterpret_cast<const char*>(bytes_.get()), num_bytes_};
    const auto pieces = absl::MakeConstSpan(&block->piece, 1);
    return Result(OutputOf(), header_.dtype(), {header_.shape().begin(), header_.shape().end()},
                  pieces, std::move(block));
  }

  uint64_t num_bytes() const { return num_bytes_; }
  uint64_t arrived_bytes() const { return arrived_bytes_; }

 private:
  v1::DownloadHeader header_;
  std::shared_ptr<std::byte[]> bytes_;
  uint64_t num_bytes_ = 0;
  uint64_t arrived_bytes_ = 0;
};

}  // namespace

absl::StatusOr<Result> DownloadTensor(Transport& transport, const std::string& handle,
                                      const DownloadOptions& options) {
  v1::DownloadRequest request;
  request.set_handle(handle);
  request.set_chunk_bytes(options.chunk_bytes);
  ArrivingTensor tensor;
  OPSERVE_RETURN_IF_ERROR(CallByStream(
      transport, kDownload, options.timeout, [&](BlockingStream& stream) -> absl::Status {
        tensor = ArrivingTensor();
        grpc::ByteBuffer message = codec::BuildPayloadMessage(request, {});
        const bool has_begun = stream.Write(&message, /*is_last=*/true) && stream.Read(&message);
        if (has_begun) {
          OPSERVE_RETURN_IF_ERROR(tensor.Begin(message));  // the stream's end cancels the call
          while (stream.Read(&message)) {
            OPSERVE_RETURN_IF_ERROR(tensor.Append(message));
            if (options.on_progress) {
              options.on_progress(tensor.arrived_bytes(), tensor.num_bytes());
            }
          }
        }
        OPSERVE_RETURN_IF_ERROR(stream.Finish());
        return has_begun ? absl::OkStatus() : BadAnswer("a download without header");
      }));
  return tensor.End();
}

}  // namespace opserve
