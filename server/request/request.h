// A request to run a program, whatever its protocol: one object from the hand-over to the record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/codec/payloads.h"
#include "server/program/program.h"
#include "server/request/idempotency_cache.h"
#include "server/request/request_context.h"
#include "server/request/request_end.h"
#include "server/request/request_input.h"
#include "server/request/tensor_effects.h"
#include "server/run/early_claim.h"
#include "server/run/program_runner.h"
#include "server/run/tensor_claims.h"
#include "server/schedule/lanes/lane_task.h"

namespace opserve::server {

// Let in and bound while it is handed over, submitted as a task of a device's queue, answered
// when that ends. Used by one thread at a time. `context` outlives the last end.
class Request final : public LaneTask {
 public:
  // Lets the request in as far as its tenant may send it, checks it and hands it to a device, or
  // refuses it, or finds that an equal one with its idempotency key is running or has run. Never
  // waits for a device.
  //
  // `on_end` is called exactly once: here, on a thread of a device, or inside input.call->Cancel().
  // After it nothing of the request is in use, unless its run goes on for others with its key.
  static void Start(RequestContext& context, RequestInput input, OnRequestEnd on_end);

  ~Request() override;

  const ProgramCall& bound() const { return bound_; }

  const LoadedOperator* MissingOn(int32_t device) const override {
    return program().MissingOn(device);
  }
  bool uses_residents() const override {
    return !bound_.residents.empty() || !bound_.apart.empty();
  }
  bool is_prompt() const override { return is_prompt_; }
  bool Queue(LaneContext& lane) override;
  bool IsOver() const override { return std::get<ProgramRun>(run_).IsOver(); }
  void Finish() override;
  void KeepMemory(Keep keep) override;
  void Answer() override;
  void Refuse(const absl::Status& status) override;

 private:
  friend class AdmittedRequest;
  friend class KeyedCaller;

  Request(RequestContext& context, RequestInput& input, OnRequestEnd on_end);

  // Lets it in as far as its tenant may send it now; null, if it calls on_end with the reason.
  static std::unique_ptr<Request> HandOver(RequestContext& context, RequestInput& input,
                                           OnRequestEnd on_end);
  // Binds the request and submits it, or ends it. `input`: that of the hand-over.
  static void BindAndSubmit(std::unique_ptr<Request> request, const RequestInput& input);
  // `claim`: of its resident tensors, if they were claimed before; else null.
  static void Submit(std::unique_ptr<Request> request, EarlyClaim* claim = nullptr);
  // Hands it to a device when its turn with the program's resident tensors comes. Only from then on
  // they stay where they are, so only then it is known where it runs.
  static void SubmitInTurn(std::unique_ptr<Request> request, EarlyClaim* claim);

  // It has bound_ now.
  void WasBound(const RequestInput& input);
  // All that comes before it is submitted.
  absl::Status Prepare();
  // Books the memory of what the request keeps, once its resident tensors are claimed.
  absl::Status BookEffects();
  absl::Status ReserveMemoryOfAnswer();
  // Whether its results may leave from the device, part by part.
  bool MayHoldResults() const;
  // Of its resident tensors.
  std::vector<TensorClaims::Wish> Wishes() const;
  void ReleaseClaim();

  // Of the following, each is the last that happens to a request: the caller is told.
  // No device has had it. `op`: as in RequestEnd.
  void End(int op, const absl::Status& status);
  void EndRun(absl::StatusOr<ProgramResult>&& result);

  void RecordCopies(const ProgramResult& result) const;
  void BuildAnswer(ProgramResult&& result, std::vector<KeptTensor> kept);
  void Tell();
  // After the answer.
  void CheckAgain(ShadowChecks& checks);

  const Program& program() const { return *bound_.program; }

  RequestContext& context_;
  codec::PayloadMessage message_;  // owns the payloads' bytes
  ProgramCall bound_;
  RequestEnd end_;  // its clock is the request's
  OnRequestEnd on_end_;
  const uint64_t connection_;
  const Priority priority_;
  bool is_prompt_ = false;
  bool is_checked_ = false;  // by a shadow check, after its answer
  bool has_known_results_ = false;
  // If its results may leave from the device, until they do.
  std::unique_ptr<HeldLimit::Place> held_place_;
  // Of the idempotency cache, if it is a run that others may share.
  std::optional<uint64_t> shared_run_;
  IdempotencyCache::Memory remembered_ = IdempotencyCache::Memory::kNothing;
  std::unique_ptr<TensorEffects> effects_;  // from their booking to their end
  TensorClaims::Ticket ticket_ = 0;         // 0: it claims no resident tensor
  absl::Time start_;                        // of the run
  absl::Duration drain_time_;               // as of the start
  // From Queue to Finish a run, then its result: in one place, since malloc takes twice as long for
  // more than about 1,000 bytes.
  std::variant<std::monostate, ProgramRun, absl::StatusOr<ProgramResult>> run_;
};

}  // namespace opserve::server
