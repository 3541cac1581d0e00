#include "server/request/keyed_caller.h"

#include <utility>

#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "server/request/idempotency_cache.h"

namespace opserve::server {

IdempotencyCache::Repeatable KeyedCaller::RepeatableOf(const RequestInput& input) {
  return {.tenant = input.tenant->id(),
          .weight = input.tenant->config()->weight,
          .key = std::string(input.asked.idempotency_key),
          .identity = input.asked.identity};
}

std::unique_ptr<Request> KeyedCaller::Enter(std::unique_ptr<Request> request,
                                            IdempotencyCache::Repeatable repeatable) {
  IdempotencyCache& cache = *request->context_.idempotency;
  request->end_.clock.Book(Stage::kValidate);
  const std::shared_ptr<CallState> call = request->call();
  auto run_call = std::make_shared<CallState>(call->deadline());
  const std::shared_ptr<KeyedCaller> caller(
      new KeyedCaller(request->end_, std::move(request->on_end_)));
  const auto begun = cache.Begin(
      repeatable, run_call, [caller](const RequestEnd& run) { caller->Tell(run); }, absl::Now());
  if (!begun.ok() || begun->answer != nullptr) {
    RequestEnd end;
    end.status = begun.status();
    if (begun.ok() && begun->answer->is_known) {
      end.answer = begun->answer;
    } else if (begun.ok()) {
      end.status = NeverFits(Reason::kTenantMemory,
                             "the request has run, but there was no room to remember its results");
    }
    caller->Tell(end);
    return nullptr;
  }
  caller->makes_the_run_ = begun->is_first;
  const auto leave = [&cache, caller, place = begun->place, call = call.get()] {
    if (cache.Leave(place)) caller->TellLeft(call->Check());
  };
  if (!call->OnCancel(leave)) leave();
  if (!begun->is_first) return nullptr;
  const uint64_t run = begun->place.run;
  request->set_call(std::move(run_call));
  request->shared_run_ = run;
  request->on_end_ = [&cache, run](const RequestEnd& end) { cache.End(run, end, absl::Now()); };
  return request;
}

void KeyedCaller::Tell(const RequestEnd& run) {
  own_.status = run.status;
  // Only a run whose payloads have not come ends with its first caller.
  if (!makes_the_run_ && absl::IsCancelled(run.status)) {
    own_.status = absl::UnavailableError(
        "the client that sent the request's payloads has left before they were complete; send it "
        "again");
  }
  own_.answer = run.answer;
  if (makes_the_run_) {
    own_.details = run.details;
    own_.clock = run.clock;
    own_.device = run.device;
  } else {
    own_.clock.Book(Stage::kQueue);
  }
  own_.tenant->EndRequest();
  on_end_(own_);
}

void KeyedCaller::TellLeft(const absl::Status& why) {
  own_.status = why;
  own_.clock.Book(Stage::kQueue);
  own_.tenant->EndRequest();
  on_end_(own_);
}

}  // namespace opserve::server
