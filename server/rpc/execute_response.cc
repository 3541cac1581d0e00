#include "server/rpc/execute_response.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "server/execution/result_message.h"
#include "server/rpc/pinned_slice.h"
#include "server/rpc/tensor_service.h"

namespace opserve::server {
namespace {

// More than everything but payloads can take: names, shapes and the receipt.
constexpr uint64_t kHeaderBytes = 64 << 10;

grpc::Slice ToSlice(PinnedBuffer buffer, AnswerMemory memory) {
  if (memory == AnswerMemory::kCopied && buffer.size() > 0) {
    return grpc::Slice(buffer.data(), buffer.size());
  }
  return ToSlice(std::move(buffer));
}

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

void FillReceipt(const ProgramResult& result, const TraceContext& trace, const StageClock& clock,
                 v1::Receipt* receipt) {
  FillTimes(clock, receipt);
  receipt->set_trace_id(trace.TraceId());
  receipt->set_span_id(trace.SpanId());
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
  receipt->set_pool_outcome(PoolOutcomeOf(result));
}

// Of the results that travel as payloads. Requires: there is one.
OutputRef LargestResult(const Program& program) {
  OutputRef largest = {};
  // Below 0, for results without bytes.
  int64_t largest_bytes = -1;
  for (const BoundResult& result : program.results) {
    const BoundOutput& output = program.output(result.source);
    // Kept results and those in shared memory take no room in the message.
    if (result.is_kept || output.window || NumBytes(output.spec) <= largest_bytes) continue;
    largest = result.source;
    largest_bytes = NumBytes(output.spec);
  }
  return largest;
}

}  // namespace

absl::Status CheckResponseFits(const Program& program, uint64_t limit) {
  const uint64_t bytes = kHeaderBytes + program.result_bytes;
  if (bytes <= limit) return absl::OkStatus();
  const OutputRef largest = LargestResult(program);
  const BoundInvocation& invocation = program.invocations[largest.invocation];
  return WithLimit(
      limit,
      CallError(
          Reason::kTooLarge,
          {.operator_name = invocation.op->descriptor->name,
           .argument = invocation.OutputName(largest.output),
           .invocation = largest.invocation},
          absl::StrCat("is the largest of results that make a message of about ", bytes,
                       " bytes, at most ", limit,
                       " allowed (--max_message_bytes); keep large results as resident tensors and "
                       "download them, or take them in shared memory")));
}

v1::Receipt::PoolOutcome PoolOutcomeOf(const ProgramResult& result) {
  // A run without device memory has not asked the pool.
  return result.device_memory_bytes > 0 ? ToProto(result.pool_outcome)
                                        : v1::Receipt::POOL_OUTCOME_UNSPECIFIED;
}

AnswerForm BriefForm(const Program& program, bool has_receipt) {
  AnswerForm form{.is_brief = true, .has_receipt = has_receipt};
  if (has_receipt || !program.kept.empty()) return form;
  // The caller knows all but the payloads: each such answer is the same.
  struct Header {
    v1::ExecuteResponse message;
    std::string bytes;
  };
  static const Header* const header = [] {
    auto* const made = new Header;
    made->message.mutable_brief();
    made->bytes = made->message.SerializeAsString();
    return made;
  }();
  // Without an owner, whose count all threads would share.
  form.header = {std::shared_ptr<const Header>(), &header->message};
  form.header_bytes = header->bytes;
  return form;
}

ExecuteAnswer BuildExecuteAnswer(const Program& program, ProgramResult result,
                                 absl::Span<const KeptTensor> kept, const AnswerForm& form,
                                 const TraceContext& trace, StageClock* clock) {
  ExecuteAnswer answer;
  // The header is the same for each such call, and was made once.
  if (form.header != nullptr) {
    for (ProgramResult::Output& output : result.outputs) {
      answer.payloads.push_back(ToSlice(std::move(output.data), form.memory));
    }
    answer.header = form.header;
    answer.header_bytes = form.header_bytes;
    clock->Book(Stage::kWrite);
    return answer;
  }
  auto header = std::make_shared<v1::ExecuteResponse>();
  const auto device = static_cast<uint32_t>(result.device);
  if (form.is_brief) header->mutable_brief()->set_device(device);
  for (ProgramResult::Output& output : result.outputs) {
    const KeptTensor* const stayed = output.kept ? &kept[*output.kept] : nullptr;
    if (!output.range && stayed == nullptr) {
      answer.payloads.push_back(ToSlice(std::move(output.data), form.memory));
    }
    if (form.is_brief) {
      if (stayed != nullptr) FillBrief(*stayed, header->mutable_brief());
      continue;
    }
    v1::Result* to = header->add_results();
    DescribeResult(program, output.source, to);
    if (output.range) {
      *to->mutable_tensor()->mutable_shared_memory() = *std::move(output.range);
    } else if (stayed != nullptr) {
      FillKept(*stayed, device, to);
    } else {
      // Payloads count only the results that travel.
      to->mutable_tensor()->set_payload(static_cast<uint32_t>(answer.payloads.size() - 1));
    }
  }
  // Before the receipt, which tells this time, too.
  clock->Book(Stage::kWrite);
  if (form.has_receipt) {
    FillReceipt(result, trace, *clock, header->mutable_receipt());
    if (form.says_not_remembered) header->mutable_receipt()->set_not_remembered(true);
  }
  answer.header = std::move(header);
  return answer;
}

}  // namespace opserve::server
