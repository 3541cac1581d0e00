// One Download call: each chunk is copied from the device while the one before it is sent. The
// contents of all its tensors are taken at one moment; a request that replaces one meanwhile
// gives it another content.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/native/tensor_service.h"
#include "server/native/transfer_call.h"
#include "server/run/resident_tensors.h"
#include "server/run/tensor_transfer.h"

namespace opserve::server {

// At most two chunks are in memory, however slowly the client reads: one that gRPC is sending, and
// one that waits for it or is being copied.
class DownloadCall final : public TransferCall {
 public:
  // Waits for the next call on `queue`, unless the server takes no more.
  static void Listen(TensorContext& context, grpc::ServerCompletionQueue* queue);

 private:
  DownloadCall(TensorContext& context, grpc::ServerCompletionQueue* queue);

  void OnArrival(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnStepEnded(const absl::Status& status) override;
  void OnDeadline(const absl::Status& status) override;
  void OnEnd() override;

  // A tensor to send.
  struct Part {
    std::shared_ptr<ResidentTensor> tensor;
    // Null before the claim is granted and once all is copied.
    std::shared_ptr<const ResidentContent> content = nullptr;
    // Of the content; the tensor may be moved afterwards.
    int32_t device = 0;
    uint64_t device_generation = 0;
    uint64_t version = 0;
    uint64_t bytes = 0;
  };

  // Finds the tensors and claims them.
  absl::Status Start();
  // Does whatever can be done now.
  void Proceed();
  // Keeps the tensors' contents, as they are now, whatever becomes of the tensors.
  // kFailedPrecondition (reason "tensor_lost").
  absl::Status TakeContents();
  void LetGo(Part& part);
  // Writes the next header or the chunk that waits, if there is one.
  void WriteNext();
  grpc::ByteBuffer HeaderMessage(const Part& part) const;
  // Copies the next chunk, if there is one.
  absl::Status CopyNext();
  void Write(const grpc::ByteBuffer& message);
  // The first error ends the call.
  void Fail(const absl::Status& status);
  void Finish();

  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> stream_{&rpc_};
  MemberEvent<DownloadCall, &DownloadCall::OnArrival> arrival_{this};
  MemberEvent<DownloadCall, &DownloadCall::OnWritten> written_{this};
  MemberEvent<DownloadCall, &DownloadCall::OnFinished> finished_{this};

  std::vector<Part> parts_;
  bool has_contents_ = false;
  uint64_t chunk_bytes_ = 0;
  uint64_t total_bytes_ = 0;            // of all parts
  uint64_t submitted_bytes_ = 0;        // of all steps so far
  size_t num_announced_ = 0;            // parts whose header was written
  size_t copied_part_ = 0;              // of the chunk whose step was submitted last
  uint64_t copied_bytes_ = 0;           // of that part, up to that chunk's end
  std::optional<DownloadChunk> chunk_;  // written by the device's thread while a step runs
  absl::Status failure_;
  bool is_writing_ = false;
  bool is_finished_ = false;  // the answer is on its way
};

}  // namespace opserve::server
