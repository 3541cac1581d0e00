#include "server/native/native_answer.h"

#include "proto/codec/payload_message.h"
#include "server/grpc/result_slice.h"
#include "server/native/result_message.h"
#include "server/native/tensor_service.h"

namespace opserve::server {
namespace {

v1::Receipt::PoolOutcome ToProto(DeviceMemoryPool::Outcome outcome) {
  switch (outcome) {
    case DeviceMemoryPool::kHit:
      return v1::Receipt::POOL_OUTCOME_HIT;
    case DeviceMemoryPool::kSplit:
      return v1::Receipt::POOL_OUTCOME_SPLIT;
    case DeviceMemoryPool::kCrossStream:
      return v1::Receipt::POOL_OUTCOME_CROSS_STREAM;
    case DeviceMemoryPool::kGrow:
      return v1::Receipt::POOL_OUTCOME_GROW;
    case DeviceMemoryPool::kRetry:
      return v1::Receipt::POOL_OUTCOME_RETRY;
    case DeviceMemoryPool::kOutOfMemory:
    case DeviceMemoryPool::kOutcomes:
      break;
  }
  return v1::Receipt::POOL_OUTCOME_UNSPECIFIED;
}

void FillKept(const KeptTensor& kept, uint32_t device, v1::Result* to) {
  to->mutable_tensor()->set_resident_tensor(kept.handle);
  v1::KeptTensor* said = to->mutable_kept();
  // A replaced tensor keeps its lease.
  if (kept.is_new) *said->mutable_lease_end() = ToTimestamp(kept.lease_end);
  said->set_version(kept.version);
  said->set_device(device);
}

void FillBrief(const KeptTensor& kept, v1::BriefResults* brief) {
  if (!kept.is_new) {
    brief->add_versions(kept.version);
    return;
  }
  v1::BriefTensor* const said = brief->add_kept();
  said->set_handle(kept.handle);
  *said->mutable_lease_end() = ToTimestamp(kept.lease_end);
}

void FillTimes(const StageClock& clock, v1::Receipt* receipt) {
  receipt->set_read_ns(clock.nanoseconds(Stage::kRead));
  receipt->set_validate_ns(clock.nanoseconds(Stage::kValidate));
  receipt->set_queue_ns(clock.nanoseconds(Stage::kQueue));
  receipt->set_h2d_ns(clock.nanoseconds(Stage::kH2d));
  receipt->set_prepare_ns(clock.nanoseconds(Stage::kPrepare));
  receipt->set_execute_ns(clock.nanoseconds(Stage::kExecute));
  receipt->set_d2h_ns(clock.nanoseconds(Stage::kD2h));
  receipt->set_write_ns(clock.nanoseconds(Stage::kWrite));
  receipt->set_total_ns(clock.total_nanoseconds());
}

void FillReceipt(const RequestAnswer& answer, v1::Receipt* receipt) {
  const ProgramResult& result = answer.run;
  if (answer.clock) FillTimes(*answer.clock, receipt);
  receipt->set_trace_id(answer.trace.TraceId());
  receipt->set_span_id(answer.trace.SpanId());
  receipt->set_device(result.device);
  receipt->set_lane(result.lane);
  receipt->set_workspace_bytes(result.workspace_bytes);
  receipt->set_copied_to_device_bytes(result.copied_to_device_bytes);
  receipt->set_copied_from_device_bytes(result.copied_from_device_bytes);
  receipt->set_plan_hits(result.plan_hits);
  receipt->set_plan_misses(result.plan_misses);
  receipt->set_replayed(result.is_replayed);
  receipt->set_contiguous_copies(result.contiguous_copies);
  receipt->set_device_memory_bytes(result.device_memory_bytes);
  receipt->set_not_remembered(answer.is_not_remembered);
  // A run without device memory has not asked the pool.
  if (result.device_memory_bytes > 0) receipt->set_pool_outcome(ToProto(result.pool_outcome));
}

void FillRange(const MemoryRange& range, v1::SharedMemoryRange* to) {
  to->set_connection(range.connection);
  to->set_region(range.region);
  to->set_offset(range.offset);
  to->set_size(range.size);
}

void FillResult(const RequestAnswer& answer, const AnsweredResult& result, v1::Result* to) {
  DescribeResult(result.invocation, result.output, result.spec, to);
  if (result.range) {
    FillRange(*result.range, to->mutable_tensor()->mutable_shared_memory());
  } else if (result.kept) {
    FillKept(answer.kept[*result.kept], static_cast<uint32_t>(answer.run.device), to);
  } else {
    to->mutable_tensor()->set_payload(*result.payload);
  }
}

// The header of a brief answer that says nothing: its caller knows all but the payloads.
struct EmptyHeader {
  EmptyHeader() {
    v1::ExecuteResponse message;
    message.mutable_brief();
    bytes = message.SerializeAsString();
  }
  std::string bytes;
};

// A repetition has the form of the first answer, whatever it asks for.
bool IsBrief(const RequestAnswer& answer, const AnswerForm& form) {
  return !answer.has_results && (form.is_brief || form.known == nullptr);
}

}  // namespace

v1::ExecuteResponse HeaderOf(const RequestAnswer& answer, const AnswerForm& form) {
  v1::ExecuteResponse header;
  if (IsBrief(answer, form)) {
    v1::BriefResults* const brief = header.mutable_brief();
    if (!answer.kept.empty()) brief->set_device(static_cast<uint32_t>(answer.run.device));
    for (const KeptTensor& kept : answer.kept) FillBrief(kept, brief);
  } else if (answer.has_results) {
    for (const AnsweredResult& result : answer.results) {
      FillResult(answer, result, header.add_results());
    }
  } else {
    header = form.known->answer;
  }
  if (form.has_receipt) FillReceipt(answer, header.mutable_receipt());
  return header;
}

absl::string_view HeaderBytesOf(const RequestAnswer& answer, const AnswerForm& form,
                                std::string* made) {
  if (!form.has_receipt && !answer.has_results) {
    if (!IsBrief(answer, form)) return form.known->answer_bytes;
    if (answer.kept.empty()) {
      static const EmptyHeader& header = *new EmptyHeader;
      return header.bytes;
    }
  }
  *made = HeaderOf(answer, form).SerializeAsString();
  return *made;
}

codec::Slices PayloadsOf(const RequestAnswer& answer, size_t copied_bytes) {
  codec::Slices slices;
  for (const ResultBytes& payload : answer.payloads) {
    slices.push_back(payload.view().size() <= copied_bytes ? BorrowedSlice(payload)
                                                           : ToSlice(payload));
  }
  return slices;
}

grpc::ByteBuffer MessageOf(const RequestAnswer& answer, const AnswerForm& form) {
  std::string made;
  const absl::string_view header = HeaderBytesOf(answer, form, &made);
  size_t bytes = 0;
  for (const ResultBytes& payload : answer.payloads) bytes += payload.view().size();
  const bool is_copied = codec::IsMerged(header.size(), answer.payloads.size(), bytes);
  return codec::BuildPayloadMessage(header, PayloadsOf(answer, is_copied ? bytes : 0));
}

}  // namespace opserve::server
