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

// The elements of a tensor that have arrived, in one block.
class ArrivingTensor {
 public:
  // kInternal: the header describes no tensor. kResourceExhausted: there is no memory for it.
  static absl::StatusOr<ArrivingTensor> Of(v1::DownloadHeader header) {
    ArrivingTensor tensor;
    const std::optional<uint64_t> num_bytes = ContiguousBytes(header.dtype(), header.shape());
    // The header is the daemon's, and its product of extents may not fit.
    if (!num_bytes) return BadAnswer("a download of no such tensor");
    OPSERVE_ASSIGN_OR_RETURN(tensor.bytes_, AllocateBytes(*num_bytes));
    tensor.num_bytes_ = *num_bytes;
    tensor.header_ = std::move(header);
    return tensor;
  }

  // Takes the next chunk. kDataLoss: its size or its checksum is another one.
  absl::Status Append(const codec::Payload& chunk, uint32_t crc32c) {
    // The last chunk is the rest.
    const uint64_t expected = std::min(header_.chunk_bytes(), num_bytes_ - arrived_bytes_);
    if (chunk.size != expected) {
      return Damaged(absl::StrCat("a chunk of ", chunk.size, " bytes at ", arrived_bytes_, " of ",
                                  num_bytes_, "; expected ", expected));
    }
    uint32_t crc = 0;
    uint64_t end = arrived_bytes_;
    for (const absl::string_view piece : chunk.pieces) {
      crc = codec::Crc32c(piece, crc);
      // Copied and counted in one pass over the pieces. Nothing is believed before the checksum
      // fits.
      std::memcpy(bytes_.get() + end, piece.data(), piece.size());
      end += piece.size();
    }
    if (crc != crc32c) {
      return Damaged(absl::StrCat("the chunk at byte ", arrived_bytes_, " has another checksum (",
                                  crc, ") than it was sent with (", crc32c, ")"));
    }
    arrived_bytes_ = end;
    return absl::OkStatus();
  }

  uint64_t num_bytes() const { return num_bytes_; }

  // kDataLoss: there are elements missing.
  absl::Status CheckComplete() const {
    if (arrived_bytes_ == num_bytes_) return absl::OkStatus();
    return Damaged(absl::StrCat("it ended after ", arrived_bytes_, " of ", num_bytes_, " bytes"));
  }

  SnapshotTensor Take() && {
    // The result refers to its pieces, so the block holds both.
    struct Block {
      std::shared_ptr<std::byte[]> bytes;
      absl::string_view piece;
    };
    auto block = std::make_shared<Block>();
    block->bytes = std::move(bytes_);
    block->piece = {reinterpret_cast<const char*>(block->bytes.get()), num_bytes_};
    const auto pieces = absl::MakeConstSpan(&block->piece, 1);
    return {.tensor =
                Result(OutputOf(), header_.dtype(),
                       {header_.shape().begin(), header_.shape().end()}, pieces, std::move(block)),
            .version = header_.version()};
  }

 private:
  v1::DownloadHeader header_;
  std::shared_ptr<std::byte[]> bytes_;
  uint64_t num_bytes_ = 0;
  uint64_t arrived_bytes_ = 0;
};

// The tensors of a download: each a header, then its chunks.
class ArrivingTensors {
 public:
  explicit ArrivingTensors(size_t count) : count_(count) {}

  // Takes the next message.
  // kDataLoss: a tensor is not complete, or a chunk is another one. kInternal: no such message.
  // kResourceExhausted: there is no memory for the tensor.
  absl::Status Add(const grpc::ByteBuffer& buffer) {
    // A header has no payload, a chunk has one.
    const auto split = codec::PayloadMessage::Split(buffer, /*max_payloads=*/1);
    if (!split.ok()) return BadAnswer(split.status().message());
    v1::DownloadResponse message;
    if (absl::Status status = split->ParseHeader(&message); !status.ok()) {
      return BadAnswer(status.message());
    }
    if (message.has_header()) {
      // The tensor before must be whole when the next begins.
      OPSERVE_RETURN_IF_ERROR(CheckComplete());
      if (tensors_.size() == count_) return WrongCount(count_ + 1);
      if (tensors_.empty()) told_bytes_ = message.header().total_bytes();
      OPSERVE_ASSIGN_OR_RETURN(ArrivingTensor tensor,
                               ArrivingTensor::Of(std::move(*message.mutable_header())));
      begun_bytes_ += tensor.num_bytes();
      tensors_.push_back(std::move(tensor));
      return absl::OkStatus();
    }
    if (tensors_.empty()) return BadAnswer("a download without header");
    // An empty tensor's chunk has no payload.
    const codec::Payload chunk =
        split->payloads().empty() ? codec::Payload() : split->payloads()[0];
    OPSERVE_RETURN_IF_ERROR(tensors_.back().Append(chunk, message.crc32c()));
    arrived_bytes_ += chunk.size;
    return absl::OkStatus();
  }

  // kDataLoss: there are elements missing. kInternal: tensors are.
  absl::StatusOr<std::vector<SnapshotTensor>> End() && {
    OPSERVE_RETURN_IF_ERROR(CheckComplete());
    if (tensors_.size() < count_) return WrongCount(tensors_.size());
    std::vector<SnapshotTensor> taken;
    for (ArrivingTensor& tensor : tensors_) taken.push_back(std::move(tensor).Take());
    return taken;
  }

  // A daemon that does not know snapshots does not tell.
  uint64_t total_bytes() const { return std::max(told_bytes_, begun_bytes_); }
  uint64_t arrived_bytes() const { return arrived_bytes_; }

 private:
  absl::Status WrongCount(size_t count) const {
    return BadAnswer(absl::StrCat("a download of ", count, " tensors, not ", count_));
  }

  absl::Status CheckComplete() const {
    return tensors_.empty() ? absl::OkStatus() : tensors_.back().CheckComplete();
  }

  size_t count_;
  std::vector<ArrivingTensor> tensors_;
  uint64_t told_bytes_ = 0;   // of all tensors, as the daemon says
  uint64_t begun_bytes_ = 0;  // of those whose header has come
  uint64_t arrived_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<SnapshotTensor>> DownloadTensors(Transport& transport,
                                                            const std::vector<std::string>& handles,
                                                            const DownloadOptions& options) {
  if (handles.empty()) return std::vector<SnapshotTensor>();
  v1::DownloadRequest request;
  // A daemon that does not know snapshots takes a single handle.
  if (handles.size() == 1) {
    request.set_handle(handles[0]);
  } else {
    request.mutable_handles()->Add(handles.begin(), handles.end());
  }
  request.set_chunk_bytes(options.chunk_bytes);
  ArrivingTensors tensors(handles.size());
  OPSERVE_RETURN_IF_ERROR(CallByStream(
      transport, kDownload, options.timeout, [&](BlockingStream& stream) -> absl::Status {
        // Each attempt begins anew: chunks of a broken one are dropped.
        tensors = ArrivingTensors(handles.size());
        grpc::ByteBuffer message = codec::BuildPayloadMessage(request, {});
        if (stream.Write(&message, /*is_last=*/true)) {
          while (stream.Read(&message)) {
            OPSERVE_RETURN_IF_ERROR(tensors.Add(message));  // the stream's end cancels the call
            if (options.on_progress && tensors.arrived_bytes() > 0) {
              options.on_progress(tensors.arrived_bytes(), tensors.total_bytes());
            }
          }
        }
        return stream.Finish();
      }));
  return std::move(tensors).End();
}

}  // namespace opserve
