// The one way from a request message to a device, for single calls and for those of a stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "proto/codec/slices.h"
#include "server/execution/bound_programs.h"
#include "server/execution/call_state.h"
#include "server/observability/stage_clock.h"
#include "server/rpc/execute_service.h"
#include "server/rpc/execution_end.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// Takes a message apart; `header` gets all but its payloads, which are in that field.
// kInvalidArgument: malformed, more payloads or other fields than a request could have, or more
// than `max_header_bytes` beside the payloads (reason "too_large").
absl::StatusOr<codec::PayloadMessage> SplitRequest(const grpc::ByteBuffer& message,
                                                   uint64_t max_header_bytes,
                                                   google::protobuf::MessageLite* header,
                                                   uint32_t payloads_field = codec::kPayloadsField);

// An ExecuteRequest's message, taken apart.
struct ReceivedRequest {
  codec::PayloadMessage message;
  const v1::ExecuteRequest* header = nullptr;  // without payloads; of `known`, or in an arena
  std::shared_ptr<const BoundPrograms::Known> known = nullptr;  // as in ExecutionInput
  BoundPrograms* programs = nullptr;                            // likewise
};

// The same of an ExecuteRequest, whose header is read into *arena unless it is known. On a polling
// thread. Errors: as SplitRequest.
absl::StatusOr<ReceivedRequest> ReadRequest(const ExecuteContext& context, codec::Slices&& message,
                                            codec::HeaderArena* arena);

// The end of a request of the call `rpc` whose message was refused before its program was read.
// `tenant`: null if it was refused because its tenant is not known.
ExecutionEnd RefuseMessage(const absl::Status& status, Tenant* tenant, const StageClock& clock,
                           const grpc::ServerContextBase& rpc, uint64_t message_bytes);

// Until when a request may take: the call's own deadline (time_point::max(): none), and `timeout`
// from now (infinite: none); with neither, the default. Never beyond the longest allowed.
absl::Time RequestDeadline(const ExecuteContext& context,
                           std::chrono::system_clock::time_point call_deadline,
                           absl::Duration timeout = absl::InfiniteDuration());

// A request after its message was taken apart.
struct ExecutionInput {
  Tenant* tenant = nullptr;                      // the request's
  codec::PayloadMessage message;                 // owns the payloads' bytes
  const v1::ExecuteRequest& header;              // without payloads; likewise as `rpc`
  uint64_t request_bytes = 0;                    // of the whole message
  const grpc::ServerContextBase* rpc = nullptr;  // used only before StartExecution returns
  std::string traceparent = {};                  // the request's own; "": that of `rpc`
  uint64_t connection = 0;                       // ConnectionKey of `rpc`
  bool takes_any_results = false;                // else they must fit one message
  // Regions that the protocol has found by name already, for the ranges of `header`, by position.
  // None: ranges name those of the tenant's connections.
  std::vector<std::shared_ptr<SharedRegion>> named_regions = {};
  // The program that an equal message had; null: it is to be bound.
  std::shared_ptr<const BoundPrograms::Known> known = nullptr;
  // Where to keep the program, if `message` has no other header than `header`. Null: nowhere.
  BoundPrograms* programs = nullptr;
  std::shared_ptr<CallState> call;
  StageClock clock;         // running since the request's arrival
  TraceContext trace = {};  // set by StartExecution
};

// Lets the request in as far as its tenant may send it, checks it and hands it to a device, or
// refuses it, or finds that an equal one with its idempotency key is running or has run. Never
// waits for a device.
//
// `on_end` is called exactly once: here, on a thread of a device, or inside input.call->Cancel().
// After it nothing of the request is in use, unless its run goes on for others with its key.
// `context` outlives the last end.
void StartExecution(ExecuteContext& context, ExecutionInput input, OnExecutionEnd on_end);

// The same in two steps, of a request whose payloads follow its header. Admit lets it in and binds
// it to `apart`, into which they are to be brought (BindApart); nothing, if it calls on_end with
// why not. StartAdmitted or RefuseAdmitted, whichever comes, is called once after it. Neither
// idempotency keys nor prepared programs: kInvalidArgument.
std::optional<ProgramCall> Admit(ExecuteContext& context, ExecutionInput& input,
                                 absl::Span<const uint64_t> payload_bytes,
                                 absl::Span<const std::shared_ptr<ResidentTensor>> apart,
                                 const OnExecutionEnd& on_end);
void StartAdmitted(ExecuteContext& context, ExecutionInput input, ProgramCall bound,
                   const OnExecutionEnd& on_end);
void RefuseAdmitted(const ExecuteContext& context, ExecutionInput& input,
                    const absl::Status& status, const OnExecutionEnd& on_end);

// Counts a request that has ended. `response_bytes`: of the message that answers it; 0 on failure.
void RecordExecution(const ExecuteContext& context, const ExecutionEnd& end,
                     uint64_t response_bytes);

}  // namespace opserve::server
