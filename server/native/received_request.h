// An ExecuteRequest that has come, taken apart and translated.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "proto/codec/slices.h"
#include "server/native/known_requests.h"
#include "server/native/native_answer.h"
#include "server/native/native_context.h"
#include "server/request/request_input.h"

namespace opserve::server {

// Outlives the hand-over, during which it keeps the program for equal messages. Of a polling
// thread.
class ReceivedRequest final : public ProgramKeeper {
 public:
  ReceivedRequest() = default;
  ReceivedRequest(const ReceivedRequest&) = delete;
  ReceivedRequest& operator=(const ReceivedRequest&) = delete;

  // The header is read into *arena, which outlives this, unless it is known. Errors: as
  // SplitMessage and ReadHeader.
  absl::Status Read(const NativeContext& context, codec::Slices&& message,
                    codec::HeaderArena* arena);
  // The same of a message that was taken apart elsewhere, and is not compared with others.
  void Take(codec::PayloadMessage&& message, const v1::ExecuteRequest& header);

  bool has_payloads() const { return !message_->payloads().empty(); }
  // What its answer is to say.
  AnswerForm form() const;

  // Hands the message over; the call adds what else it knows. Once.
  RequestInput ToInput(Tenant* tenant, std::shared_ptr<CallState> call, const StageClock& clock);

  std::shared_ptr<const Program> Keep(const codec::PayloadMessage& message,
                                      const ProgramCall& bound) override;

 private:
  std::optional<codec::PayloadMessage> message_;  // from Read to ToInput
  const v1::ExecuteRequest* header_ = nullptr;    // without payloads; of known_, or in an arena
  std::shared_ptr<const KnownRequests::Known> known_;
  std::optional<GivenRequest> translated_;   // unless it is known
  KnownRequests* known_requests_ = nullptr;  // of the thread; null: it keeps none
};

}  // namespace opserve::server
