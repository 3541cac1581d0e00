// One Upload call: chunks come in, each is copied to the device while the next is read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/codec/payload_message.h"
#include "server/grpc/pace_watch.h"
#include "server/native/chunk_writer.h"
#include "server/native/tensor_service.h"
#include "server/native/transfer_call.h"
#include "server/run/resident_tensors.h"

namespace opserve::server {

// The answer follows the last byte's way to the device, whether the client has ended its messages
// or not. Whatever goes wrong, memory and quota are free again before the client hears of it.
//
// An announcement counts against its tenant's quota and takes nothing of the device. The tensor is
// one block, so all of its memory is booked when the first chunk is there; from then on the client
// has to keep a least pace, or the upload ends.
class UploadCall final : public TransferCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(TensorContext& context, grpc::ServerCompletionQueue* queue);

 private:
  UploadCall(TensorContext& context, grpc::ServerCompletionQueue* queue);

  void OnArrival(bool ok);
  void OnRead(bool ok);
  void OnFinished(bool ok);
  void OnStepEnded(const absl::Status& status) override;
  void OnDeadline(const absl::Status& status) override { Fail(status); }
  void OnEnd() override;

  void Read();
  // Checks a message and hands its chunk, if it has one, to chunks_.
  absl::Status Take(const grpc::ByteBuffer& message);
  // Checks the header, chooses the device and reserves the quota.
  absl::Status Start(const v1::UploadHeader& header);
  absl::Status TakeChunk(codec::PayloadMessage message, uint32_t crc32c);
  // Books the device's memory for the whole tensor.
  absl::Status Book();
  // The next message may have so many bytes of the tensor.
  uint64_t NextBytes() const;
  // All bytes are here, at least in memory.
  bool is_complete() const { return tensor_ != nullptr && received_bytes_ == total_bytes_; }
  absl::Status Stalled() const;
  // Does whatever can be done now.
  void Proceed();
  absl::Status CopyNext();
  // All has been received and copied.
  void Complete();
  absl::Status AddTensor(v1::UploadResponse* response);
  // The first error ends the call.
  void Fail(const absl::Status& status);

  grpc::ByteBuffer incoming_;
  grpc::ServerAsyncReader<grpc::ByteBuffer, grpc::ByteBuffer> stream_{&rpc_};
  MemberEvent<UploadCall, &UploadCall::OnArrival> arrival_{this};
  MemberEvent<UploadCall, &UploadCall::OnRead> read_{this};
  MemberEvent<UploadCall, &UploadCall::OnFinished> finished_{this};

  PaceWatch pace_;
  ChunkWriter chunks_{*context_.metrics};
  std::shared_ptr<ResidentTensor> tensor_;  // null before the header has come
  DeviceService* device_ = nullptr;         // the tensor's
  ResidentTensors::Reservation reservation_;
  absl::Duration lease_;
  uint64_t total_bytes_ = 0;
  uint64_t chunk_bytes_ = 0;
  uint64_t received_bytes_ = 0;
  std::string handle_;  // once it is added
  absl::Status failure_;
  bool is_reading_ = false;
  bool reads_ended_ = false;
  bool is_finished_ = false;  // the answer is on its way
};

}  // namespace opserve::server
