#include "server/rpc/execute_response.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/slice.h"
#include "ops/catalog/error.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/payload_message.h"

namespace opserve::server {
namespace {

// More than everything but payloads can take: names, shapes and the receipt.
constexpr uint64_t kHeaderBytes = 64 << 10;

// A slice of gRPC's that owns a pooled buffer.
grpc::Slice ToSlice(PinnedBuffer buffer) {
  if (buffer.size() == 0) return grpc::Slice();
  auto* owner = new PinnedBuffer(std::move(buffer));
  return grpc::Slice(
      owner->data(), owner->size(), [](void* owner) { delete static_cast<PinnedBuffer*>(owner); },
      owner);
}

void FillReceipt(const ProgramResult& result, const StageClock& clock, v1::Receipt* receipt) {
  receipt->set_read_ns(clock.nanoseconds(Stage::kRead));
  receipt->set_validate_ns(clock.nanoseconds(Stage::kValidate));
  receipt->set_queue_ns(clock.nanoseconds(Stage::kQueue));
  receipt->set_h2d_ns(clock.nanoseconds(Stage::kH2d));
  receipt->set_prepare_ns(clock.nanoseconds(Stage::kPrepare));
  receipt->set_execute_ns(clock.nanoseconds(Stage::kExecute));
  receipt->set_d2h_ns(clock.nanoseconds(Stage::kD2h));
  receipt->set_write_ns(clock.nanoseconds(Stage::kWrite));
  receipt->set_total_ns(clock.total_nanoseconds());
  receipt->set_device(result.device);
  receipt->set_lane(result.lane);
  receipt->set_workspace_bytes(result.workspace_bytes);
  receipt->set_copied_to_device_bytes(result.copied_to_device_bytes);
  receipt->set_copied_from_device_bytes(result.copied_from_device_bytes);
}

}  // namespace

absl::Status CheckResponseFits(const Program& program, uint64_t limit) {
  uint64_t bytes = kHeaderBytes;
  for (uint32_t source : program.results) {
    bytes += static_cast<uint64_t>(catalog::NumBytes(program.invocations[source].output));
  }
  if (bytes <= limit) return absl::OkStatus();
  return catalog::ErrorWithReason(
      absl::StatusCode::kInvalidArgument, "too_large",
      absl::StrCat("the results make a message of about ", bytes, " bytes, at most ", limit,
                   " allowed (--max_message_bytes)"));
}

grpc::ByteBuffer BuildExecuteResponse(ProgramResult result, bool want_receipt, StageClock* clock) {
  v1::ExecuteResponse header;
  std::vector<grpc::Slice> payloads;
  for (ProgramResult::Output& output : result.outputs) {
    v1::Result* to = header.add_results();
    to->mutable_source()->set_invocation(output.invocation);
    to->mutable_source()->set_output(std::string(output.name));
    to->mutable_tensor()->set_dtype(output.spec.dtype);
    to->mutable_tensor()->mutable_shape()->Add(output.spec.shape.begin(), output.spec.shape.end());
    to->mutable_tensor()->set_payload(static_cast<uint32_t>(payloads.size()));
    payloads.push_back(ToSlice(std::move(output.data)));
  }
  clock->Book(Stage::kWrite);
  if (want_receipt) FillReceipt(result, *clock, header.mutable_receipt());
  return codec::BuildPayloadMessage(header, payloads);
}

}  // namespace opserve::server
