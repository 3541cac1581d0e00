#include "server/request/admitted_request.h"

#include <string>
#include <utility>

#include "server/request/admission.h"
#include "server/request/keyed_caller.h"

namespace opserve::server {

std::unique_ptr<AdmittedRequest> AdmittedRequest::Admit(
    RequestContext& context, RequestInput input, absl::Span<const uint64_t> payload_bytes,
    absl::Span<const std::shared_ptr<ResidentTensor>> apart, OnRequestEnd on_end) {
  std::unique_ptr<Request> request = Request::HandOver(context, input, std::move(on_end));
  if (request == nullptr) return nullptr;
  const GivenRequest& asked = input.asked;
  request->end_.op = OperatorOf(context, asked);
  // An identity needs no payloads to be known by.
  if (asked.identity) {
    request = KeyedCaller::Enter(std::move(request), KeyedCaller::RepeatableOf(input));
    if (request == nullptr) return nullptr;
  }
  const absl::Status status = BindAnnounced(context, input, payload_bytes, apart, &request->bound_);
  if (!status.ok()) {
    request->end_.clock.Book(Stage::kRead);
    request->End(request->end_.op, status);
    return nullptr;
  }
  request->WasBound(input);
  std::unique_ptr<AdmittedRequest> admitted(new AdmittedRequest(std::move(request)));
  Request& own = *admitted->request_;
  if (!asked.idempotency_key.empty()) {
    admitted->keyed_.emplace(Keyed{.repeatable = KeyedCaller::RepeatableOf(input),
                                   .digester = RequestDigester(asked.fields, payload_bytes)});
  }
  if (!own.bound_.residents.empty()) {
    TensorClaims& claims = context.residents->claims();
    own.ticket_ = claims.NewTicket();
    admitted->claim_ = EarlyClaim::Take(claims, own.ticket_, own.Wishes(), own.call()->deadline());
  }
  return admitted;
}

void AdmittedRequest::Add(absl::string_view bytes) {
  if (keyed_) keyed_->digester.Add(bytes);
}

void AdmittedRequest::Start(std::unique_ptr<AdmittedRequest> admitted,
                            std::shared_ptr<void> booked) {
  std::unique_ptr<Request> request = std::move(admitted->request_);
  request->bound_.booked = std::move(booked);
  request->end_.clock.Book(Stage::kRead);
  if (admitted->keyed_) {
    IdempotencyCache::Repeatable& repeatable = admitted->keyed_->repeatable;
    repeatable.digest = admitted->keyed_->digester.Finish();
    request = KeyedCaller::Enter(std::move(request), std::move(repeatable));
    if (request == nullptr) return;
  }
  Request::Submit(std::move(request), admitted->claim_.get());
}

void AdmittedRequest::Refuse(std::unique_ptr<AdmittedRequest> admitted,
                             const absl::Status& status) {
  Request& request = *admitted->request_;
  request.end_.clock.Book(Stage::kRead);
  request.End(request.end_.op, status);
}

}  // namespace opserve::server
