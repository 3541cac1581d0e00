#include "server/request/request.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/request/admission.h"
#include "server/request/keyed_caller.h"
#include "server/request/request_details.h"
#include "server/request/request_digest.h"
#include "server/schedule/lanes/run_costs.h"
#include "server/schedule/policy/retry_pushback.h"

namespace opserve::server {
namespace {

// Whether a run changes tensors that were there before it.
bool ChangesTensors(const Program& program) {
  return program.has_donations ||
         std::any_of(program.kept.begin(), program.kept.end(),
                     [](const KeptOutput& kept) { return kept.replaced.has_value(); });
}

// Of results together: smaller ones gain nothing by leaving part by part.
constexpr uint64_t kLeastHeldBytes = 1 << 20;

// Of a request that has not ended yet.
RequestEnd OpenEnd(const RequestInput& input) {
  return {.status = absl::OkStatus(),
          .answer = nullptr,
          .trace = input.trace,
          .tenant = input.tenant,
          .clock = input.clock,
          .op = RequestMetrics::kUnknown,
          .device = std::nullopt,
          .request_bytes = input.request_bytes,
          .details = nullptr};
}

}  // namespace

Request::Request(RequestContext& context, RequestInput& input, OnRequestEnd on_end)
    : LaneTask(std::move(input.call), std::nullopt, TaskDemand{.tenant = input.tenant->id()}),
      context_(context),
      message_(std::move(input.message)),
      end_(OpenEnd(input)),
      on_end_(std::move(on_end)),
      connection_(input.connection),
      priority_(input.asked.priority) {}

Request::~Request() { ReleaseClaim(); }

std::unique_ptr<Request> Request::HandOver(RequestContext& context, RequestInput& input,
                                           OnRequestEnd on_end) {
  const absl::Status status = LetIn(context, input);
  std::unique_ptr<Request> request(new Request(context, input, std::move(on_end)));
  if (status.ok()) return request;
  // Without Tell: its tenant has not begun a request.
  request->end_.op = OperatorOf(context, input.asked);
  request->end_.status = status;
  request->end_.clock.Book(Stage::kValidate);
  request->on_end_(request->end_);
  return nullptr;
}

void Request::Start(RequestContext& context, RequestInput input, OnRequestEnd on_end) {
  input.clock.Book(Stage::kRead);
  std::unique_ptr<Request> request = HandOver(context, input, std::move(on_end));
  if (request == nullptr) return;
  if (input.asked.is_repeatable()) {
    IdempotencyCache::Repeatable repeatable = KeyedCaller::RepeatableOf(input);
    if (!input.asked.identity) {
      repeatable.digest = DigestOf(input.asked.fields, request->message_.payloads());
    }
    request->end_.op = OperatorOf(context, input.asked);
    request = KeyedCaller::Enter(std::move(request), std::move(repeatable));
    if (request == nullptr) return;
  }
  BindAndSubmit(std::move(request), input);
}

void Request::BindAndSubmit(std::unique_ptr<Request> request, const RequestInput& input) {
  const absl::Status status = Bind(request->context_, input, request->message_, &request->bound_);
  if (!status.ok()) {
    request->End(OperatorOf(request->context_, input.asked), status);
    return;
  }
  request->WasBound(input);
  Submit(std::move(request));
}

void Request::WasBound(const RequestInput& input) {
  // A handle may have come back for another prepared program.
  has_known_results_ =
      input.knows_results || (input.is_answer_known && bound_.program == input.known);
  end_.op = OperatorOf(program());
  is_checked_ = context_.shadow_checks->Draw();
  if (input.held_limit != nullptr && !input.asked.is_repeatable() && MayHoldResults()) {
    held_place_ = input.held_limit->TryTake();
  }
}

void Request::Submit(std::unique_ptr<Request> request, EarlyClaim* claim) {
  Request& self = *request;
  absl::Status status = self.Prepare();
  if (!status.ok()) return self.End(self.end_.op, status);
  if (!self.bound_.residents.empty()) return SubmitInTurn(std::move(request), claim);
  std::unique_ptr<LaneTask> task = std::move(request);
  status = self.context_.scheduler->Submit(&task);
  if (!status.ok()) self.End(self.end_.op, status);
}

absl::Status Request::Prepare() {
  const Program& program = this->program();
  OPSERVE_RETURN_IF_ERROR(TensorEffects::CheckLeases(program, context_.residents->limits()));
  if (bound_.residents.empty()) OPSERVE_RETURN_IF_ERROR(BookEffects());
  OPSERVE_RETURN_IF_ERROR(ReserveMemoryOfAnswer());
  const CostModel::Estimate cost = EstimateCost(context_.scheduler->costs(), &bound_);
  is_prompt_ = IsPrompt(program, cost);
  set_demand({.tenant = end_.tenant->id(),
              .priority = priority_,
              .may_hold = held_place_ != nullptr,
              .cost = cost,
              .work = program.work,
              .device_bytes = bound_.booked != nullptr ? 0 : program.memory_plan.total_bytes,
              .pinned_bytes = bound_.program->pinned_bytes,
              .connection = connection_});
  end_.clock.Book(Stage::kValidate);
  return absl::OkStatus();
}

absl::Status Request::BookEffects() {
  OPSERVE_RETURN_IF_ERROR(TensorEffects::CheckOneDevice(*context_.scheduler, bound_));
  if (program().has_effects()) {
    OPSERVE_ASSIGN_OR_RETURN(
        TensorEffects effects,
        TensorEffects::Book(*context_.scheduler, *context_.residents, end_.tenant->id(), &bound_));
    effects_ = std::make_unique<TensorEffects>(std::move(effects));
  }
  // Booking chooses the device for tensors that are to be kept; only then is it known.
  set_device(bound_.device());
  return absl::OkStatus();
}

// A run that changes tensors begins only when there is room to remember that it was made.
absl::Status Request::ReserveMemoryOfAnswer() {
  if (!shared_run_ || !program().has_effects()) return absl::OkStatus();
  remembered_ =
      context_.idempotency->Reserve(*shared_run_, program().results.size(), program().result_bytes,
                                    IdempotencyCache::Keeping::kForItsLifetime, absl::Now());
  if (remembered_ != IdempotencyCache::Memory::kNothing) return absl::OkStatus();
  return MakeError(Reason::kTenantMemory,
                   "there is no room to remember the answer of a request that changes resident "
                   "tensors; nothing was done");
}

bool Request::MayHoldResults() const {
  // Copied when the run ends: those of a captured run, whose memory is for its replays; and those
  // of a run that changes tensors, which could not be repeated if the device broke while they
  // leave.
  const Program& program = this->program();
  return program.result_bytes >= kLeastHeldBytes && program.windows.empty() && !is_checked_ &&
         !program.is_capturable && !program.has_effects();
}

std::vector<TensorClaims::Wish> Request::Wishes() const {
  std::vector<TensorClaims::Wish> wishes;
  for (size_t i = 0; i < bound_.residents.size(); ++i) {
    wishes.push_back({bound_.residents[i].tensor.get(), program().residents[i].is_alone()});
  }
  return wishes;
}

void Request::SubmitInTurn(std::unique_ptr<Request> request, EarlyClaim* claim) {
  Request& self = *request;
  TensorClaims& claims = self.context_.residents->claims();
  std::vector<TensorClaims::Wish> wishes;
  if (claim == nullptr) {
    wishes = self.Wishes();
    self.ticket_ = claims.NewTicket();
  }
  const TensorClaims::Ticket ticket = self.ticket_;
  const auto submit = [&self](std::unique_ptr<LaneTask>* task) {
    const absl::Status status = self.BookEffects();
    return status.ok() ? self.context_.scheduler->Submit(task) : status;
  };
  const std::shared_ptr<CallState> call = self.call();
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
  // A caller that leaves may have ended the request by now, if it was claimed before.
  const bool has_turn = claim != nullptr ? claim->Await(on_end)
                                         : claims.Claim(ticket, wishes, call->deadline(), on_end);
  if (has_turn) {
    const absl::Status status = submit(waiting.get());
    if (!status.ok()) self.End(self.end_.op, status);
    // The call refers to the task through `leave`, as the task refers to the call.
    waiting->reset();
    return;
  }
  if (!can_be_cancelled) leave();
}

bool Request::Queue(LaneContext& lane) {
  end_.clock.Book(Stage::kQueue);
  start_ = lane.start;
  // For the hint to the caller, should the run lack memory.
  drain_time_ = lane.drain_time;
  auto& run = run_.emplace<ProgramRun>(bound_, message_.payloads(), *call(), demand().tenant, lane,
                                       end_.clock);
  if (run.Queue()) return true;
  run_.emplace<std::monostate>();
  return false;
}

void Request::Finish() {
  auto& run = std::get<ProgramRun>(run_);
  absl::StatusOr<ProgramResult> result = run.Finish();
  if (absl::IsCancelled(result.status())) {
    // It may have been the deadline for which the caller left.
    if (absl::Status why = call()->Check(); !why.ok()) result = why;
  }
  if (!result.ok()) result = WithPushback(result.status(), drain_time_);
  if (result.ok()) RecordRun(bound_, start_, run.slice_waits(), &context_.scheduler->costs());
  run_ = std::move(result);
}

void Request::KeepMemory(Keep keep) {
  const auto& result = std::get<absl::StatusOr<ProgramResult>>(run_);
  if (!result.ok() || result->held == nullptr) return;
  result->held->place = std::move(held_place_);
  result->held->content.zone_share =
      bound_.booked != nullptr ? std::move(bound_.booked) : keep(demand().device_bytes);
}

void Request::Answer() { EndRun(std::move(std::get<absl::StatusOr<ProgramResult>>(run_))); }

void Request::Refuse(const absl::Status& status) {
  end_.clock.Book(Stage::kQueue);
  EndRun(status);
}

void Request::EndRun(absl::StatusOr<ProgramResult>&& result) {
  // Released before the answer: after it, the client may expect that no device uses the memory any
  // more, and the daemon that no memory has to be unregistered after its last call.
  bound_.windows.clear();
  bound_.apart.clear();
  bound_.booked.reset();
  if (!result.ok()) bound_.kept.clear();
  // The caller left while its results were copied: nobody gets them, nor the handles of new
  // tensors. Tensors that the request has changed stay changed, and a run with a key is remembered
  // for a repetition.
  if (result.ok() && !shared_run_ && call()->is_cancelled() && !ChangesTensors(program())) {
    result = call()->Check();
  }
  const bool has_effects = program().has_effects();
  std::vector<KeptTensor> kept;
  if (result.ok() && has_effects) {
    absl::StatusOr<std::vector<KeptTensor>> committed = effects_->Commit(bound_, absl::Now());
    if (committed.ok()) {
      kept = *std::move(committed);
    } else {
      result = committed.status();
    }
  }
  // The booked memory is free before the answer: a repetition may follow it at once.
  if (!result.ok()) effects_.reset();
  // The next request with the tensors begins while this one's answer is written: a device that is
  // slower than its callers has no break then.
  ReleaseClaim();
  if (has_effects && !result.ok()) {
    context_.residents->changes().failed.fetch_add(1, std::memory_order_relaxed);
  }
  if (context_.request_log->Wants(end_.trace, result.status(), end_.clock)) {
    end_.details = DetailsOf(program(), result);
  }
  if (result.ok()) {
    RecordCopies(*result);
    BuildAnswer(*std::move(result), std::move(kept));
  } else {
    // A refusal is not the device's doing, but it is where the request had got to.
    end_.status = result.status();
  }
  ShadowChecks& checks = *context_.shadow_checks;
  Tell();
  // Nothing of the context may be used now.
  if (end_.status.ok() && is_checked_) CheckAgain(checks);
}

void Request::RecordCopies(const ProgramResult& result) const {
  const uint64_t shared_to = result.shared_to_device_bytes;
  const uint64_t shared_from = result.shared_from_device_bytes;
  context_.metrics->RecordCopies(CopyPath::kGrpc, result.copied_to_device_bytes - shared_to,
                                 result.copied_from_device_bytes - shared_from);
  context_.metrics->RecordCopies(CopyPath::kShm, shared_to, shared_from);
  if (result.contiguous_copies > 0)
    context_.metrics->RecordContiguousCopies(result.contiguous_copies);
}

void Request::BuildAnswer(ProgramResult&& result, std::vector<KeptTensor> kept) {
  if (shared_run_ && !program().has_effects()) {
    remembered_ =
        context_.idempotency->Reserve(*shared_run_, result.outputs.size(), program().result_bytes,
                                      IdempotencyCache::Keeping::kWhileThereIsRoom, absl::Now());
  }
  // An answer that is remembered is kept for minutes, while the results' own buffers are
  // page-locked memory of a pool that all requests share.
  const bool is_remembered = remembered_ == IdempotencyCache::Memory::kAnswer;
  end_.device = result.device;
  auto answer =
      MakeAnswer(program(), std::move(result), std::move(kept),
                 {.has_results = !has_known_results_, .are_results_copied = is_remembered});
  answer->trace = end_.trace;
  answer->is_not_remembered = shared_run_ && !is_remembered;
  end_.clock.Book(Stage::kWrite);
  answer->clock = end_.clock;
  end_.answer = std::move(answer);
}

void Request::ReleaseClaim() {
  if (ticket_ != 0) context_.residents->claims().Release(std::exchange(ticket_, 0));
}

void Request::End(int op, const absl::Status& status) {
  // Nothing stays booked: a repetition may follow the answer at once.
  effects_.reset();
  ReleaseClaim();
  bound_ = ProgramCall();
  end_.op = op;
  end_.status = status;
  end_.clock.Book(Stage::kValidate);
  Tell();
}

void Request::Tell() {
  // Of a run that others share, its callers have begun their requests.
  if (!shared_run_) end_.tenant->EndRequest();
  on_end_(end_);
}

void Request::CheckAgain(ShadowChecks& checks) {
  std::vector<absl::string_view> results;
  for (const ResultBytes& payload : end_.answer->payloads) results.push_back(payload.view());
  checks.Check({.message = std::move(message_),
                .program = std::move(bound_),
                .demand = demand(),
                .device = *end_.device,
                .results = std::move(results)});
}

}  // namespace opserve::server
