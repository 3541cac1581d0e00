#include "server/native/received_request.h"

#include <utility>

#include "proto/status/status_macros.h"
#include "server/grpc/split_message.h"
#include "server/native/native_request.h"

namespace opserve::server {

absl::Status ReceivedRequest::Read(const NativeContext& context, codec::Slices&& message,
                                   codec::HeaderArena* arena) {
  OPSERVE_ASSIGN_OR_RETURN(message_,
                           SplitMessage(std::move(message), context.calls->max_header_bytes));
  known_requests_ = context.KnownRequestsOfThread();
  if (known_requests_ != nullptr) {
    known_ = known_requests_->Find(message_->header(), message_->payloads());
  }
  if (known_ != nullptr) {
    header_ = &known_->message;
    return absl::OkStatus();
  }
  auto& header = arena->Make<v1::ExecuteRequest>();
  header_ = &header;
  OPSERVE_RETURN_IF_ERROR(ReadHeader(*message_, &header));
  translated_ = TranslateRequest(header);
  return absl::OkStatus();
}

void ReceivedRequest::Take(codec::PayloadMessage&& message, const v1::ExecuteRequest& header) {
  message_ = std::move(message);
  header_ = &header;
  translated_ = TranslateRequest(header);
}

AnswerForm ReceivedRequest::form() const {
  return {.is_brief = header_->prepared().want_brief(),
          .has_receipt = header_->want_receipt(),
          .known = known_};
}

RequestInput ReceivedRequest::ToInput(Tenant* tenant, std::shared_ptr<CallState> call,
                                      const StageClock& clock) {
  return {.tenant = tenant,
          .message = *std::exchange(message_, std::nullopt),
          .asked = known_ != nullptr ? known_->request : *translated_,
          .knows_results = header_->prepared().want_brief(),
          .known = known_ != nullptr ? known_->program : nullptr,
          .is_answer_known = true,
          .keeper = known_requests_ != nullptr ? this : nullptr,
          .call = std::move(call),
          .clock = clock};
}

std::shared_ptr<const Program> ReceivedRequest::Keep(const codec::PayloadMessage& message,
                                                     const ProgramCall& bound) {
  return known_requests_->Keep(message.header(), *header_, bound);
}

}  // namespace opserve::server
