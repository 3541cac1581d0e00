#include "server/rpc/execution_start.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/rpc/execute_response.h"
#include "server/rpc/idempotency_cache.h"
#include "server/rpc/message_bytes.h"
#include "server/rpc/program_calls.h"
#include "server/rpc/refusal.h"
#include "server/rpc/request_trace.h"
#include "server/rpc/tensor_effects.h"
#include "server/scheduling/execution_request.h"

namespace opserve::server {
namespace {

// As many tensors as a list may have (catalog::kMaxListLength).
constexpr size_t kMaxPayloads = 4096;
// More parts than any request has beside its payloads.
constexpr size_t kMaxHeaderFields = 65536;

absl::Status Malformed(const absl::Status& status) {
  return InvalidCall("", "", status.message(), 0);
}

absl::StatusOr<codec::PayloadMessage> Split(codec::Slices&& message, uint64_t max_header_bytes,
                                            uint32_t payloads_field) {
  absl::StatusOr<codec::PayloadMessage> split =
      codec::PayloadMessage::Split(std::move(message), kMaxPayloads, payloads_field);
  if (!split.ok()) return Malformed(split.status());
  OPSERVE_RETURN_IF_ERROR(CheckHeaderBytes(split->header().size(), max_header_bytes));
  if (split->header_fields() > kMaxHeaderFields) {
    return Malformed(absl::InvalidArgumentError(
        absl::StrCat("the message has ", split->header_fields(),
                     " fields beside its payloads, at most ", kMaxHeaderFields, " allowed")));
  }
  return split;
}

// For metrics: of a request that is not bound, or not yet, and of one that is.
int OperatorOf(const ExecuteContext& context, const v1::ExecuteRequest& request) {
  if (request.invocations_size() > 1 || request.has_prepared()) return RequestMetrics::kProgram;
  if (request.invocations().empty()) return RequestMetrics::kUnknown;
  const LoadedOperator* op = context.operators->Find(request.invocations(0).operator_());
  return op != nullptr ? op->index : RequestMetrics::kUnknown;
}

int OperatorOf(const Program& program) {
  return program.operator_index().value_or(RequestMetrics::kProgram);
}

absl::Status CheckAccepted(const ExecuteContext& context, const CallState& call, absl::Time now) {
  return context.is_draining.load(std::memory_order_acquire) ? DrainingError(context.moved_to)
                                                             : call.Check(now);
}

absl::Status CheckIdentity(const v1::ExecuteRequest& request) {
  constexpr size_t kClientBytes = 16;
  if (!request.has_identity()) return absl::OkStatus();
  const v1::RequestIdentity& identity = request.identity();
  const auto invalid = [](absl::string_view problem) {
    return InvalidCall("", "identity", problem, 0);
  };
  if (!request.idempotency_key().empty()) {
    return invalid("a request has an identity or an idempotency_key, not both");
  }
  if (identity.client().size() != kClientBytes) {
    return invalid(absl::StrCat("its client has ", identity.client().size(), " bytes, ",
                                kClientBytes, " expected"));
  }
  if (identity.answered_below() > identity.number()) {
    return invalid(absl::StrCat("answered_below is ", identity.answered_below(),
                                ", above the request's own number, ", identity.number()));
  }
  return absl::OkStatus();
}

// The region of a range that the request names.
absl::StatusOr<std::shared_ptr<SharedRegion>> FindRegion(const ExecuteContext& context,
                                                         const ExecutionInput& input,
                                                         const v1::SharedMemoryRange& range) {
  const bool is_named = !input.named_regions.empty();
  if (!is_named && context.shared_regions == nullptr) return NoSharedMemory(range);
  // Peers on the Unix socket may use memory of this machine; others cannot even have any.
  if (!is_named && !absl::StartsWith(input.rpc->peer(), "unix:")) {
    return MakeError(Reason::kForbidden, "shared memory can be used over Unix sockets only");
  }
  if (!input.header.idempotency_key().empty()) {
    return MakeError(
        Reason::kShmInvalid,
        "a request with an idempotency_key cannot use shared memory, whose contents may change "
        "from one repetition to the next");
  }
  if (is_named) return input.named_regions[range.region()];
  return context.shared_regions->Find(input.tenant->id(), range.connection(), range.region());
}

// Whether every operator of the program can still be had: if not, binding anew tells why.
bool IsAvailable(const Program& program) {
  return std::all_of(program.operators.begin(), program.operators.end(),
                     [](const LoadedOperator* op) { return op->CheckAvailable().ok(); });
}

absl::Status CheckMayCall(const ExecutionInput& input) {
  for (const v1::Invocation& invocation : input.header.invocations()) {
    OPSERVE_RETURN_IF_ERROR(input.tenant->CheckMayCall(invocation.operator_()));
  }
  return absl::OkStatus();
}

absl::Status CheckResults(const ExecuteContext& context, const ExecutionInput& input,
                          const Program& program) {
  return input.takes_any_results ? absl::OkStatus()
                                 : CheckResponseFits(program, context.max_response_bytes);
}

// `apart`: the payloads of a message that has none itself, as in BindApart, and their bytes.
absl::StatusOr<ProgramCall> Bind(const ExecuteContext& context, const ExecutionInput& input,
                                 absl::Span<const uint64_t> bytes_apart = {},
                                 absl::Span<const std::shared_ptr<ResidentTensor>> apart = {}) {
  OPSERVE_RETURN_IF_ERROR(CheckMayCall(input));
  const bool is_prepared = input.header.has_prepared();
  if (input.known != nullptr && !is_prepared && IsAvailable(*input.known->program)) {
    ProgramCall call;
    call.program = input.known->program;
    // A client that takes more may have brought it here.
    OPSERVE_RETURN_IF_ERROR(CheckResults(context, input, *call.program));
    return call;
  }
  absl::InlinedVector<uint64_t, 8> payload_bytes(bytes_apart.begin(), bytes_apart.end());
  for (const codec::Payload& payload : input.message.payloads()) {
    payload_bytes.push_back(payload.size);
  }
  const auto find_resident = [&](absl::string_view handle) {
    return context.residents->Find(input.tenant->id(), handle, absl::Now());
  };
  const auto find_region = [&](const v1::SharedMemoryRange& range) {
    return FindRegion(context, input, range);
  };
  OPSERVE_ASSIGN_OR_RETURN(ProgramCall bound,
                           is_prepared
                               ? BindPrepared(context, *input.tenant, input.header, payload_bytes,
                                              find_resident, find_region)
                               : BindApart(input.header, payload_bytes, apart, *context.operators,
                                           context.limits, find_resident, find_region));
  // Of a prepared program this was checked once.
  if (!is_prepared) OPSERVE_RETURN_IF_ERROR(CheckResults(context, input, *bound.program));
  if (input.programs != nullptr && input.known == nullptr) {
    bound.program = input.programs->Keep(input.message.header(), input.header, bound);
  }
  return bound;
}

Priority ToPriority(v1::Priority priority) {
  switch (priority) {
    case v1::PRIORITY_HIGH:
      return Priority::kHigh;
    case v1::PRIORITY_LOW:
      return Priority::kLow;
    default:
      return Priority::kNormal;
  }
}

// As far as it does not depend on the run.
AnswerForm FormOfAnswer(const ExecutionInput& input, const Program& program) {
  if (input.header.prepared().want_brief()) {
    return BriefForm(program, input.header.want_receipt());
  }
  AnswerForm form{.has_receipt = input.header.want_receipt()};
  // A handle may have come back for another prepared program.
  if (input.known != nullptr && input.known->program.get() == &program && !form.has_receipt) {
    form.header = {input.known, &input.known->answer};
    form.header_bytes = input.known->answer_bytes;
  }
  return form;
}

// The end of a request that has not ended yet.
ExecutionEnd OpenEnd(const ExecutionInput& input, int op) {
  ExecutionEnd end;
  end.tenant = input.tenant;
  end.trace = input.trace;
  end.clock = input.clock;
  end.op = op;
  end.request_bytes = input.request_bytes;
  return end;
}

ExecutionEnd Refusal(const ExecuteContext& context, const ExecutionInput& input,
                     const absl::Status& status) {
  ExecutionEnd end = OpenEnd(input, OperatorOf(context, input.header));
  end.status = status;
  end.clock.Book(Stage::kValidate);
  return end;
}

// The end of a request that its tenant was allowed to begin.
void EndRequest(const ExecutionEnd& end, const OnExecutionEnd& on_end) {
  end.tenant->EndRequest();
  on_end(end);
}

// After the answer. Nothing of the context may be used then.
void CheckAgain(ShadowChecks& checks, ExecutionRequest& request, const ExecutionEnd& end) {
  std::vector<absl::string_view> results;
  for (const grpc::Slice& slice : end.answer->payloads) {
    results.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  checks.Check({.message = request.TakeMessage(),
                .program = request.TakeProgram(),
                .demand = request.demand(),
                .device = *end.device,
                .results = std::move(results)});
}

// Books what a call keeps.
using BookEffects = std::function<absl::Status(ProgramCall* call)>;

// Hands the request to a device when its turn with the program's resident tensors comes. Only from
// then on they stay where they are, so only then it is known where it runs.
absl::Status SubmitInTurn(ExecuteContext& context, const std::shared_ptr<CallState>& call,
                          TensorClaims::Ticket ticket, absl::Span<const TensorClaims::Wish> wishes,
                          const BookEffects& book, std::unique_ptr<ExecutionRequest> request) {
  TensorClaims& claims = context.residents->claims();
  const auto submit = [&context, book, request = request.get()](std::unique_ptr<LaneTask>* task) {
    const absl::Status status = request->Place(book);
    return status.ok() ? context.scheduler->Submit(task) : status;
  };
  const auto waiting = std::make_shared<std::unique_ptr<LaneTask>>(std::move(request));
  const auto refuse = [waiting](const absl::Status& status) {
    const std::unique_ptr<LaneTask> refused = std::move(*waiting);
    refused->Refuse(status);
  };
  const auto leave = [&claims, ticket, refuse, call = call.get()] {
    if (claims.Withdraw(ticket)) refuse(call->Check());
  };
  const bool can_be_cancelled = call->OnCancel(leave);
  const auto on_end = [submit, waiting, refuse, call = call.get()](TensorClaims::Outcome outcome) {
    const absl::Status status =
        outcome == TensorClaims::Outcome::kExpired ? call->Check() : submit(waiting.get());
    if (!status.ok()) refuse(status);
  };
  if (claims.Claim(ticket, wishes, call->deadline(), on_end)) {
    absl::Status status = submit(waiting.get());
    // The call refers to the task through `leave`, as the task refers to the call.
    waiting->reset();
    return status;
  }
  if (!can_be_cancelled) leave();
  return absl::OkStatus();
}

// Whether a run changes tensors that were there before it.
bool ChangesTensors(const Program& program) {
  return program.has_donations ||
         std::any_of(program.kept.begin(), program.kept.end(),
                     [](const KeptOutput& kept) { return kept.replaced.has_value(); });
}

// Hands the program to a device; `on_end` is called if and only if the result is OK.
// `run`: of the idempotency cache, if the request has a key.
absl::Status Submit(ExecuteContext& context, ExecutionInput& input, ProgramCall bound,
                    std::shared_ptr<CallState> call, std::optional<uint64_t> run,
                    OnExecutionEnd on_end) {
  const Program& program = *bound.program;
  const bool has_effects = program.has_effects();
  OPSERVE_RETURN_IF_ERROR(TensorEffects::CheckLeases(program, context.residents->limits()));
  // Null: there are none.
  const auto effects = has_effects ? std::make_shared<std::optional<TensorEffects>>() : nullptr;
  const auto book = [&context, effects,
                     tenant = input.tenant->id()](ProgramCall* call) -> absl::Status {
    OPSERVE_RETURN_IF_ERROR(TensorEffects::CheckOneDevice(*context.scheduler, *call));
    if (effects == nullptr) return absl::OkStatus();
    OPSERVE_ASSIGN_OR_RETURN(
        *effects, TensorEffects::Book(*context.scheduler, *context.residents, tenant, call));
    return absl::OkStatus();
  };
  if (bound.residents.empty()) OPSERVE_RETURN_IF_ERROR(book(&bound));
  // A run that changes tensors begins only when there is room to remember that it was made.
  using Remembered = IdempotencyCache::Memory;
  Remembered remembered = Remembered::kNothing;
  if (run && has_effects) {
    remembered =
        context.idempotency->Reserve(*run, program.results.size(), program.result_bytes,
                                     IdempotencyCache::Keeping::kForItsLifetime, absl::Now());
    if (remembered == Remembered::kNothing) {
      return MakeError(Reason::kTenantMemory,
                       "there is no room to remember the answer of a request that changes resident "
                       "tensors; nothing was done");
    }
  }
  std::vector<TensorClaims::Wish> wishes;
  for (size_t i = 0; i < bound.residents.size(); ++i) {
    wishes.push_back({bound.residents[i].tensor.get(), program.residents[i].is_alone()});
  }
  const TensorClaims::Ticket ticket = wishes.empty() ? 0 : context.residents->claims().NewTicket();
  // Ends with the run, or with a task that was never run.
  absl::Cleanup claim = [&claims = context.residents->claims(), ticket] {
    if (ticket != 0) claims.Release(ticket);
  };
  input.clock.Book(Stage::kValidate);
  auto done = [&context, run, effects, has_effects, remembered, claim = std::move(claim),
               form = FormOfAnswer(input, program), end = OpenEnd(input, OperatorOf(program)),
               on_end = std::move(on_end)](ExecutionRequest& request,
                                           absl::StatusOr<ProgramResult> result) mutable {
    // The caller left while its results were copied: nobody gets them, nor the handles of new
    // tensors. Tensors that the request has changed stay changed, and a run with a key is
    // remembered for a repetition.
    if (result.ok() && !run && request.call()->is_cancelled() &&
        !ChangesTensors(request.program())) {
      result = request.call()->Check();
    }
    std::vector<KeptTensor> kept;
    if (result.ok() && has_effects) {
      auto committed = (*effects)->Commit(request.bound(), absl::Now());
      if (committed.ok()) {
        kept = *std::move(committed);
      } else {
        result = committed.status();
      }
    }
    // The booked memory is free before the answer: a repetition may follow it at once.
    if (!result.ok() && has_effects) effects->reset();
    // The next request with the tensors begins while this one's answer is written: a device that is
    // slower than its callers has no break then.
    std::move(claim).Invoke();
    if (has_effects && !result.ok()) {
      context.residents->changes().failed.fetch_add(1, std::memory_order_relaxed);
    }
    if (context.request_log->Wants(end.trace, result.status(), request.clock())) {
      end.details = DetailsOf(request.program(), result);
    }
    if (result.ok()) {
      const uint64_t shared_to = result->shared_to_device_bytes;
      const uint64_t shared_from = result->shared_from_device_bytes;
      context.metrics->RecordCopies(CopyPath::kGrpc, result->copied_to_device_bytes - shared_to,
                                    result->copied_from_device_bytes - shared_from);
      context.metrics->RecordCopies(CopyPath::kShm, shared_to, shared_from);
      if (result->contiguous_copies > 0) {
        context.metrics->RecordContiguousCopies(result->contiguous_copies);
      }
      end.device = result->device;
      if (run && !has_effects) {
        remembered = context.idempotency->Reserve(
            *run, result->outputs.size(), request.program().result_bytes,
            IdempotencyCache::Keeping::kWhileThereIsRoom, absl::Now());
      }
      // An answer that is remembered is kept for minutes, while the results' own buffers are
      // page-locked memory of a pool that all requests share.
      if (remembered == Remembered::kAnswer) form.memory = AnswerMemory::kCopied;
      form.says_not_remembered = run && remembered != Remembered::kAnswer;
      end.answer = std::make_shared<const ExecuteAnswer>(BuildExecuteAnswer(
          request.program(), *std::move(result), kept, form, end.trace, &request.clock()));
    } else {
      // A refusal is not the device's doing, but it is where the request had got to.
      end.status = result.status();
    }
    end.clock = request.clock();
    ShadowChecks& checks = *context.shadow_checks;
    if (run) {
      on_end(end);  // of the run: those that wait for it end by themselves
    } else {
      EndRequest(end, on_end);
    }
    if (end.status.ok() && checks.Draw()) CheckAgain(checks, request, end);
  };
  // The results count against the connection until their memory is free: once an answer to be
  // remembered is copied, else once it has been read.
  auto request = std::make_unique<ExecutionRequest>(
      std::move(input.message), std::move(bound), call, input.tenant->id(), input.connection,
      ToPriority(input.header.priority()), context.scheduler->costs(), input.clock,
      std::move(done));
  if (!wishes.empty()) {
    return SubmitInTurn(context, call, ticket, wishes, book, std::move(request));
  }
  std::unique_ptr<LaneTask> task = std::move(request);
  return context.scheduler->Submit(&task);
}

void StartOnce(ExecuteContext& context, ExecutionInput& input, const OnExecutionEnd& on_end) {
  absl::StatusOr<ProgramCall> bound = Bind(context, input);
  absl::Status status = bound.status();
  if (status.ok()) {
    status = Submit(context, input, *std::move(bound), input.call, /*run=*/std::nullopt, on_end);
  }
  if (!status.ok()) EndRequest(Refusal(context, input, status), on_end);
}

// Lets a request in as far as its tenant may send it now; false: on_end was told why not.
bool LetIn(const ExecuteContext& context, ExecutionInput& input, const OnExecutionEnd& on_end) {
  input.trace = input.traceparent.empty() ? TraceOf(*input.rpc) : BeginSpan(input.traceparent);
  const absl::Time now = absl::Now();
  absl::Status status = CheckAccepted(context, *input.call, now);
  if (status.ok()) status = CheckIdentity(input.header);
  if (status.ok()) status = input.tenant->BeginRequest(input.request_bytes, now);
  if (!status.ok()) on_end(Refusal(context, input, status));
  return status.ok();
}

// A caller that shares one run with others. Used by one thread at a time: the one that starts it,
// then the one that ends it.
struct KeyedCaller {
  ExecutionEnd own;
  OnExecutionEnd on_end;
  bool makes_the_run = false;

  // Tells the caller how the run ended. The run's stages and device matter only to the caller that
  // made it; the others just waited.
  void Tell(const ExecutionEnd& run) {
    own.status = run.status;
    own.answer = run.answer;
    if (makes_the_run) {
      own.details = run.details;
      own.clock = run.clock;
      own.device = run.device;
    } else {
      own.clock.Book(Stage::kQueue);
    }
    EndRequest(own, on_end);
  }
  // Tells the caller that it left before the end, for this reason.
  void TellLeft(const absl::Status& why) {
    own.status = why;
    own.clock.Book(Stage::kQueue);
    EndRequest(own, on_end);
  }
};

// Makes a run that the cache did not know. It has a call state of its own, with the deadline of the
// caller that makes it: it goes on as long as anybody waits for it.
void MakeRun(ExecuteContext& context, ExecutionInput input, uint64_t run,
             std::shared_ptr<CallState> run_call) {
  IdempotencyCache& cache = *context.idempotency;
  const auto end_run = [&cache, run](const ExecutionEnd& end) { cache.End(run, end, absl::Now()); };
  absl::StatusOr<ProgramCall> bound = Bind(context, input);
  absl::Status status = bound.status();
  if (status.ok()) {
    status = Submit(context, input, *std::move(bound), std::move(run_call), run, end_run);
  }
  if (!status.ok()) end_run(Refusal(context, input, status));
}

void StartKeyed(ExecuteContext& context, ExecutionInput input, OnExecutionEnd on_end) {
  IdempotencyCache& cache = *context.idempotency;
  IdempotencyCache::Repeatable repeatable{.tenant = input.tenant->id(),
                                          .weight = input.tenant->config()->weight};
  if (input.header.has_identity()) {
    const v1::RequestIdentity& identity = input.header.identity();
    repeatable.identity = {identity.client(), identity.number(), identity.answered_below()};
  } else {
    repeatable.key = input.header.idempotency_key();
    repeatable.digest = DigestOf(input.header, input.message.payloads());
  }
  input.clock.Book(Stage::kValidate);
  auto run_call = std::make_shared<CallState>(input.call->deadline());
  const auto caller = std::make_shared<KeyedCaller>();
  caller->own = OpenEnd(input, OperatorOf(context, input.header));
  caller->on_end = std::move(on_end);
  const auto begun = cache.Begin(
      repeatable, run_call, [caller](const ExecutionEnd& run) { caller->Tell(run); }, absl::Now());
  if (!begun.ok() || begun->answer != nullptr) {
    ExecutionEnd end;
    end.status = begun.status();
    if (begun.ok() && begun->answer->header != nullptr) {
      end.answer = begun->answer;
    } else if (begun.ok()) {
      end.status = NeverFits(Reason::kTenantMemory,
                             "the request has run, but there was no room to remember its results");
    }
    caller->Tell(end);
    return;
  }
  if (begun->is_first) caller->makes_the_run = true;
  const auto leave = [&cache, caller, place = begun->place, call = input.call.get()] {
    if (cache.Leave(place)) caller->TellLeft(call->Check());
  };
  if (!input.call->OnCancel(leave)) leave();
  if (begun->is_first) {
    MakeRun(context, std::move(input), begun->place.run, std::move(run_call));
  }
}

}  // namespace

absl::StatusOr<codec::PayloadMessage> SplitRequest(const grpc::ByteBuffer& message,
                                                   uint64_t max_header_bytes,
                                                   google::protobuf::MessageLite* header,
                                                   uint32_t payloads_field) {
  codec::Slices slices;
  OPSERVE_RETURN_IF_ERROR(codec::TakeSlices(message, &slices));
  OPSERVE_ASSIGN_OR_RETURN(codec::PayloadMessage split,
                           Split(std::move(slices), max_header_bytes, payloads_field));
  if (absl::Status status = split.ParseHeader(header); !status.ok()) return Malformed(status);
  return split;
}

absl::StatusOr<ReceivedRequest> ReadRequest(const ExecuteContext& context, codec::Slices&& message,
                                            codec::HeaderArena* arena) {
  absl::StatusOr<codec::PayloadMessage> split =
      Split(std::move(message), context.calls->max_header_bytes, codec::kPayloadsField);
  if (!split.ok()) return split.status();
  ReceivedRequest request{.message = *std::move(split), .programs = context.ProgramsOfThread()};
  if (request.programs != nullptr) {
    request.known = request.programs->Find(request.message.header(), request.message.payloads());
  }
  if (request.known != nullptr) {
    request.header = &request.known->request;
    return request;
  }
  auto& header = arena->Make<v1::ExecuteRequest>();
  request.header = &header;
  absl::Status status = request.message.ParseHeader(&header);
  if (!status.ok()) return Malformed(status);
  return request;
}

ExecutionEnd RefuseMessage(const absl::Status& status, Tenant* tenant, const StageClock& clock,
                           const grpc::ServerContextBase& rpc, uint64_t message_bytes) {
  ExecutionEnd end;
  end.tenant = tenant;
  end.trace = TraceOf(rpc);
  end.status = status;
  end.clock = clock;
  end.clock.Book(Stage::kRead);
  end.request_bytes = message_bytes;
  return end;
}

absl::Time RequestDeadline(const ExecuteContext& context,
                           std::chrono::system_clock::time_point call_deadline,
                           absl::Duration timeout) {
  const absl::Time now = absl::Now();
  const bool call_has_one = call_deadline != std::chrono::system_clock::time_point::max();
  absl::Time deadline = now + context.max_deadline;
  if (call_has_one) deadline = std::min(deadline, absl::FromChrono(call_deadline));
  if (timeout < absl::InfiniteDuration()) {
    deadline = std::min(deadline, now + timeout);
  } else if (!call_has_one) {
    deadline = std::min(deadline, now + context.default_deadline);
  }
  return deadline;
}

std::optional<ProgramCall> Admit(ExecuteContext& context, ExecutionInput& input,
                                 absl::Span<const uint64_t> payload_bytes,
                                 absl::Span<const std::shared_ptr<ResidentTensor>> apart,
                                 const OnExecutionEnd& on_end) {
  if (!LetIn(context, input, on_end)) return std::nullopt;
  const v1::ExecuteRequest& header = input.header;
  absl::StatusOr<ProgramCall> bound =
      header.has_prepared() || header.has_identity() || !header.idempotency_key().empty()
          ? InvalidCall("", "",
                        "a request with a prepared program, an identity or an idempotency_key "
                        "cannot be announced")
          : Bind(context, input, payload_bytes, apart);
  if (bound.ok()) return *std::move(bound);
  RefuseAdmitted(context, input, bound.status(), on_end);
  return std::nullopt;
}

void StartAdmitted(ExecuteContext& context, ExecutionInput input, ProgramCall bound,
                   const OnExecutionEnd& on_end) {
  input.clock.Book(Stage::kRead);
  const absl::Status status =
      Submit(context, input, std::move(bound), input.call, /*run=*/std::nullopt, on_end);
  if (!status.ok()) EndRequest(Refusal(context, input, status), on_end);
}

void RefuseAdmitted(const ExecuteContext& context, ExecutionInput& input,
                    const absl::Status& status, const OnExecutionEnd& on_end) {
  input.clock.Book(Stage::kRead);
  EndRequest(Refusal(context, input, status), on_end);
}

void StartExecution(ExecuteContext& context, ExecutionInput input, OnExecutionEnd on_end) {
  input.clock.Book(Stage::kRead);
  if (!LetIn(context, input, on_end)) return;
  if (input.header.idempotency_key().empty() && !input.header.has_identity()) {
    StartOnce(context, input, on_end);
  } else {
    StartKeyed(context, std::move(input), std::move(on_end));
  }
}

void RecordExecution(const ExecuteContext& context, const ExecutionEnd& end,
                     uint64_t response_bytes) {
  const absl::Time now = absl::Now();
  const auto tenant = end.tenant != nullptr ? std::optional(end.tenant->id()) : std::nullopt;
  absl::string_view op;
  if (end.tenant != nullptr) {
    end.tenant->CountEnded(end.status.ok(), absl::Nanoseconds(end.clock.total_nanoseconds()),
                           end.request_bytes, response_bytes);
  }
  if (end.op >= 0) {
    const auto index = static_cast<size_t>(end.op);
    context.statistics->Record(index, end.status.ok(), end.clock, now);
    op = context.operators->operators()[index].descriptor->name;
  }
  context.metrics->Record({.tenant = tenant,
                           .op = end.op,
                           .device = end.device,
                           .status = end.status,
                           .clock = &end.clock,
                           .request_bytes = end.request_bytes,
                           .response_bytes = response_bytes});
  context.request_log->Record(
      {.trace = end.trace,
       .tenant = tenant,
       .tenant_name = end.tenant != nullptr ? absl::string_view(end.tenant->name()) : "",
       .op = op,
       .device = end.device,
       .status = end.status,
       .clock = end.clock,
       .request_bytes = end.request_bytes,
       .response_bytes = response_bytes,
       .details = end.details.get()},
      now);
}

}  // namespace opserve::server
