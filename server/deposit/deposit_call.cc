#include "server/deposit/deposit_call.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/message_bytes.h"
#include "server/native/program_calls.h"
#include "server/observability/log.h"
#include "server/request/refusal.h"

namespace opserve::server {
namespace {

constexpr absl::string_view kDeposit = "Deposit";

absl::string_view StepName(v1::DepositRequest::StepCase step) {
  switch (step) {
    case v1::DepositRequest::kHello:
      return "hello";
    case v1::DepositRequest::kOffer:
      return "offer";
    case v1::DepositRequest::kChunk:
      return "chunk";
    case v1::DepositRequest::kCommit:
      return "commit";
    case v1::DepositRequest::kProgram:
      return "program";
    case v1::DepositRequest::STEP_NOT_SET:
      break;
  }
  return "none";
}

// Tells the sender why a tensor or a program was refused.
template <typename Verdict>
void SetRefusal(const absl::Status& status, Verdict* to) {
  to->set_reason(std::string(ReasonText(ErrorReasonOf(status))));
  to->set_message(Shortened(status.message(), kMaxErrorBytes));
}

void ToVerdict(const absl::Status& status, v1::TensorVerdict* to) {
  if (status.ok()) {
    to->set_answer(v1::TensorVerdict::ANSWER_ACCEPTED);
    return;
  }
  to->set_answer(v1::TensorVerdict::ANSWER_REFUSED);
  SetRefusal(status, to);
}

}  // namespace

absl::Status DepositCalls::Add(const std::string& run, DepositCall* call) {
  absl::MutexLock lock(&mutex_);
  const auto older = by_run_.find(run);
  if (older != by_run_.end()) {
    older->second->rpc_.TryCancel();
    older->second = call;
    return absl::OkStatus();
  }
  if (by_run_.size() == kMaxCalls) {
    return MakeError(Reason::kQueueFull,
                     absl::StrCat(kMaxCalls, " other daemons deposit tensors here already"));
  }
  by_run_.emplace(run, call);
  return absl::OkStatus();
}

void DepositCalls::Remove(const std::string& run, DepositCall* call) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_run_.find(run);
  if (found != by_run_.end() && found->second == call) by_run_.erase(found);
}

void DepositCall::Listen(DepositContext& context, grpc::ServerCompletionQueue* queue) {
  if (context.tensors->calls->accepts_more.load(std::memory_order_acquire)) {
    new DepositCall(context, queue);
  }
}

DepositCall::DepositCall(DepositContext& context, grpc::ServerCompletionQueue* queue)
    : TransferCall(*context.tensors, queue),
      deposits_(context),
      pace_(UploadPace(context_.upload_stall_timeout, context_.upload_min_bytes_per_second), queue,
            {.expect_event = [this] { ExpectEvent(); },
             .on_overdue = [this] { Fail(Stalled()); },
             .event_ended = [this] { EventEnded(); }}) {
  deposits_.service->RequestDeposit(&rpc_, &stream_, queue_, queue_, &arrival_);
}

void DepositCall::OnArrival(bool ok) {
  if (!ok) {  // the server shuts down
    delete this;
    return;
  }
  Listen(deposits_, queue_);
  Arrive();
  const absl::StatusOr<Peer*> peer = context_.authenticator->PeerOf(rpc_);
  if (!peer.ok()) return Fail(peer.status());
  peer_ = *peer;
  if (absl::Status status = CheckTaken(); !status.ok()) return Fail(status);
  ExpectEvent();
  is_end_watched_ = true;
  deposits_.end_alarms->Add(&end_alarm_, queue_, &server_end_);
  Read();
}

void DepositCall::OnServerEnd(bool /*ok*/) {
  // It rings for the end of this call, too.
  if (!is_finished_ && expected_ <= State::kOffer) Fail(DrainingError());
  EventEnded();
}

void DepositCall::Read() {
  ExpectEvent();
  is_reading_ = true;
  if (!batch_.empty()) pace_.Wait(NextBytes());
  stream_.Read(&incoming_, &read_);
}

uint64_t DepositCall::NextBytes() const {
  if (is_batch_complete()) return 0;
  return std::min(chunk_bytes(), batch_[receiving_].bytes - received_bytes_);
}

absl::Status DepositCall::Stalled() const {
  return MakeError(Reason::kUploadStalled,
                   absl::StrCat("the deposit stalled within a batch: its sender may pause for ",
                                absl::FormatDuration(context_.upload_stall_timeout),
                                " (--upload_stall_timeout)"));
}

void DepositCall::OnRead(bool ok) {
  is_reading_ = false;
  pace_.EndWait();
  if (!ok) {
    reads_ended_ = true;
  } else if (failure_.ok()) {
    if (absl::Status status = Take(incoming_); !status.ok()) Fail(status);
  }
  incoming_.Clear();
  Proceed();
  EventEnded();
}

absl::Status DepositCall::Take(const grpc::ByteBuffer& bytes) {
  OPSERVE_RETURN_IF_ERROR(CheckMessageBytes(bytes, context_.calls->max_message_bytes));
  auto message = codec::PayloadMessage::Split(bytes, /*max_payloads=*/1);
  if (!message.ok()) return InvalidField("", message.status().message());
  OPSERVE_RETURN_IF_ERROR(
      CheckHeaderBytes(message->header().size(), context_.calls->max_header_bytes));
  v1::DepositRequest request;
  if (absl::Status status = message->ParseHeader(&request); !status.ok()) {
    return InvalidField("", status.message());
  }
  constexpr v1::DepositRequest::StepCase kExpected[] = {
      v1::DepositRequest::kHello, v1::DepositRequest::kOffer, v1::DepositRequest::kChunk,
      v1::DepositRequest::kCommit};
  const v1::DepositRequest::StepCase expected = kExpected[static_cast<size_t>(expected_)];
  const bool is_program =
      expected_ == State::kOffer && request.step_case() == v1::DepositRequest::kProgram;
  if (request.step_case() != expected && !is_program) {
    return InvalidField("step", absl::StrCat("is ", StepName(request.step_case()), ", expected ",
                                             StepName(expected)));
  }
  if (expected == v1::DepositRequest::kChunk) {
    return TakeChunk(*std::move(message), request.chunk().crc32c());
  }
  if (!message->payloads().empty()) {
    return InvalidField(
        "data", absl::StrCat("is there, in a message with ", StepName(request.step_case())));
  }
  switch (expected_) {
    case State::kHello:
      return Hello(request.hello());
    case State::kOffer:
      return is_program ? Program(request.program()) : Offer(request.offer());
    default:
      return Commit(request.commit());
  }
}

absl::Status DepositCall::Hello(const v1::DepositHello& hello) {
  if (hello.run().size() != ResidentTensors::kRunBytes) {
    return InvalidField("run", absl::StrCat("has ", hello.run().size(), " bytes, expected ",
                                            ResidentTensors::kRunBytes));
  }
  if (hello.run() == context_.residents->run()) {
    return InvalidField("run", "is this daemon's own: it cannot deposit tensors at itself");
  }
  if (deposits_.is_leaving->load(std::memory_order_acquire)) return DrainingError();
  OPSERVE_RETURN_IF_ERROR(deposits_.calls->Add(hello.run(), this));
  run_ = hello.run();
  expectation_ = context_.residents->Expect(run_);
  expected_ = State::kOffer;
  v1::DepositResponse response;
  response.mutable_welcome()->set_chunk_bytes(chunk_bytes());
  response.mutable_welcome()->set_takes_programs(true);
  Write(response);
  return absl::OkStatus();
}

absl::Status DepositCall::CheckOffer(const v1::DepositOffer& offer) const {
  if (offer.tensors().empty() || static_cast<size_t>(offer.tensors_size()) > kMaxOfferedTensors) {
    return InvalidField("tensors", absl::StrCat("there are ", offer.tensors_size(),
                                                ", expected 1 to ", kMaxOfferedTensors));
  }
  absl::flat_hash_set<absl::string_view> handles;
  for (const v1::DepositedTensor& tensor : offer.tensors()) {
    if (!ResidentTensors::IsHandleOf(tensor.handle(), run_)) {
      return InvalidField("handle", "is none of the run that hello named");
    }
    if (!handles.insert(tensor.handle()).second) return InvalidField("handle", "occurs twice");
    if (tensor.version() == 0) return InvalidField("version", "is 0, must be at least 1");
    OPSERVE_RETURN_IF_ERROR(ReadSpec(tensor.dtype(), tensor.shape()).status());
  }
  return absl::OkStatus();
}

absl::Status DepositCall::FindOwner(const std::string& name) {
  OPSERVE_RETURN_IF_ERROR(peer_->CheckMayDeposit(name));
  owner_ = deposits_.tenants->Find(name);
  if (owner_ == nullptr) {
    return MakeError(Reason::kForbidden, absl::StrCat("there is no tenant \"", name, "\" here"));
  }
  tenant_ = owner_->id();
  return absl::OkStatus();
}

absl::Status DepositCall::Program(const v1::DepositedProgram& program) {
  if (deposits_.is_leaving->load(std::memory_order_acquire)) return DrainingError();
  absl::Status status = FindOwner(program.tenant());
  if (status.ok()) status = AdoptProgram(*deposits_.execute, *owner_, program);
  v1::DepositResponse response;
  v1::ProgramVerdict* const verdict = response.mutable_prepared();
  verdict->set_taken(status.ok());
  // The sender is a daemon that took the program; this one may have other operators and limits.
  if (!status.ok()) SetRefusal(status, verdict);
  deposits_.metrics->RecordProgram(DepositMetrics::kIn,
                                   status.ok() ? DepositMetrics::kMoved : DepositMetrics::kRefused);
  Write(response);
  return absl::OkStatus();
}

absl::Status DepositCall::Offer(const v1::DepositOffer& offer) {
  if (deposits_.is_leaving->load(std::memory_order_acquire)) return DrainingError();
  OPSERVE_RETURN_IF_ERROR(CheckOffer(offer));
  absl::Status may_deposit = FindOwner(offer.tenant());
  if (may_deposit.ok()) {
    device_ =
        context_.scheduler->BestForTensors(*context_.residents, tenant_, offer.tenant_bytes());
    if (device_ == nullptr) {
      may_deposit = MakeError(Reason::kDeviceUnavailable, "no device of the receiver is ready");
    }
  }
  v1::DepositResponse response;
  for (int i = 0; i < offer.tensors_size(); ++i) {
    const v1::DepositedTensor& offered = offer.tensors(i);
    v1::TensorVerdict* const verdict = response.mutable_verdict()->add_tensors();
    if (may_deposit.ok() && context_.residents->Has(tenant_, offered.handle())) {
      verdict->set_answer(v1::TensorVerdict::ANSWER_PRESENT);
      continue;
    }
    const absl::Status status =
        may_deposit.ok() ? Accept(offered, static_cast<size_t>(i), *device_) : may_deposit;
    ToVerdict(status, verdict);
    if (!status.ok()) deposits_.metrics->Record(DepositMetrics::kIn, DepositMetrics::kRefused);
  }
  receiving_ = 0;
  received_bytes_ = 0;
  SkipComplete();
  if (!batch_.empty()) expected_ = is_batch_complete() ? State::kCommit : State::kChunk;
  Write(response);
  return absl::OkStatus();
}

absl::Status DepositCall::Accept(const v1::DepositedTensor& offered, size_t position,
                                 DeviceService& device) {
  OPSERVE_ASSIGN_OR_RETURN(TensorSpec spec, ReadSpec(offered.dtype(), offered.shape()));
  Arriving arriving;
  arriving.position = position;
  arriving.bytes = static_cast<uint64_t>(NumBytes(spec));
  arriving.tensor.handle = offered.handle();
  arriving.tensor.lease_end = absl::Now() + ToDuration(offered.lease());
  const int32_t id = device.device().id();
  OPSERVE_RETURN_IF_ERROR(device.queue().CheckCanEverHold(tenant_, arriving.bytes));
  OPSERVE_ASSIGN_OR_RETURN(arriving.tensor.reservation,
                           context_.residents->Reserve(tenant_, id, arriving.bytes));
  auto tensor = std::make_shared<ResidentTensor>();
  tensor->spec = std::move(spec);
  tensor->device = id;
  tensor->device_generation = device.device().generation();
  tensor->version = offered.version();
  OPSERVE_ASSIGN_OR_RETURN(tensor->peer_share, peer_->Take(arriving.bytes));
  if (arriving.bytes > 0) {
    OPSERVE_ASSIGN_OR_RETURN(tensor->content->zone_share,
                             device.queue().TakeMemory(tenant_, arriving.bytes));
  }
  arriving.tensor.tensor = std::move(tensor);
  deposits_.metrics->Hold(arriving.bytes);
  chunks_.Expect(device, arriving.bytes);
  batch_.push_back(std::move(arriving));
  return absl::OkStatus();
}

void DepositCall::SkipComplete() {
  while (!is_batch_complete() && received_bytes_ == batch_[receiving_].bytes) {
    ++receiving_;
    received_bytes_ = 0;
  }
}

absl::Status DepositCall::TakeChunk(codec::PayloadMessage message, uint32_t crc32c) {
  const uint64_t bytes = message.payloads().empty() ? 0 : message.payloads()[0].size;
  const uint64_t expected = NextBytes();
  if (bytes != expected) {
    return InvalidField(
        "data", absl::StrCat("the chunk from byte ", received_bytes_, " of a tensor on has ", bytes,
                             " bytes, expected ", expected));
  }
  ResidentTensor* const tensor = batch_[receiving_].tensor.tensor.get();
  const uint64_t offset = std::exchange(received_bytes_, received_bytes_ + bytes);
  SkipComplete();
  chunks_.Add({.message = std::move(message),
               .tensor = tensor,
               .offset = offset,
               .crc32c = crc32c,
               .is_last = is_batch_complete()});
  pace_.Arrived(bytes);
  if (is_batch_complete()) expected_ = State::kCommit;
  return absl::OkStatus();
}

absl::Status DepositCall::Commit(const v1::DepositCommit& commit) {
  OPSERVE_RETURN_IF_ERROR(state_->Check());
  const absl::flat_hash_set<size_t> released(commit.released().begin(), commit.released().end());
  std::vector<ResidentTensors::Arrived> tensors;
  uint64_t bytes = 0;
  for (Arriving& arriving : batch_) {
    if (released.contains(arriving.position)) continue;
    bytes += arriving.bytes;
    tensors.push_back(std::move(arriving.tensor));
  }
  const size_t count = tensors.size();
  OPSERVE_RETURN_IF_ERROR(context_.residents->Adopt(std::move(tensors), absl::Now()));
  deposits_.metrics->Record(DepositMetrics::kIn, DepositMetrics::kMoved, count);
  deposits_.metrics->AddBytes(DepositMetrics::kIn, bytes);
  LogInfo("tensors_deposited_here", {{"peer", peer_->name()},
                                     {"tenant", owner_->name()},
                                     {"device", device_->device().id()},
                                     {"tensors", count},
                                     {"bytes", bytes}});
  DropBatch();
  expected_ = State::kOffer;
  v1::DepositResponse response;
  response.mutable_committed();
  Write(response);
  return absl::OkStatus();
}

void DepositCall::DropBatch() {
  chunks_.Clear();
  for (const Arriving& arriving : batch_) deposits_.metrics->LetGo(arriving.bytes);
  batch_.clear();
  receiving_ = 0;
  is_sealed_ = false;
}

void DepositCall::Write(const v1::DepositResponse& response) {
  ExpectEvent();
  is_writing_ = true;
  write_.Begin();
  stream_.Write(ToByteBuffer(response), &written_);
}

void DepositCall::OnWritten(bool ok) {
  write_.End();
  is_writing_ = false;
  if (ok) {
    Proceed();
  } else {
    Fail(absl::CancelledError("the sender reads no more"));
  }
  EventEnded();
}

void DepositCall::Proceed() {
  if (is_finished_ || step_is_running()) return;
  if (failure_.ok() && chunks_.has_waiting()) {
    if (absl::Status status = CopyNext(); !status.ok()) {
      Fail(status);
      return;
    }
  }
  if (failure_.ok() && reads_ended_ && expected_ != State::kOffer) {
    failure_ = InvalidField("step", "is missing: the stream ended before the batch was committed");
  }
  if (is_writing_) return;
  const bool is_copied = !step_is_running() && !chunks_.has_waiting();
  if (is_copied && (!failure_.ok() || reads_ended_)) {
    Finish();
    return;
  }
  if (is_reading_ || reads_ended_ || !failure_.ok()) return;
  if (expected_ == State::kCommit) {
    // Not before the last chunk is in the device's memory.
    if (!is_copied) return;
    if (!is_sealed_) {
      is_sealed_ = true;
      v1::DepositResponse response;
      response.mutable_sealed();
      Write(response);
      return;
    }
  }
  Read();
}

absl::Status DepositCall::CopyNext() {
  ChunkWriter::Copy copy = chunks_.Begin(*state_, tenant_);
  return Submit(copy.device, /*result_bytes=*/0, copy.is_last, std::move(copy.step));
}

void DepositCall::OnStepEnded(const absl::Status& status) {
  chunks_.End(status);
  if (status.ok()) {
    Proceed();
  } else {
    Fail(status);
  }
}

void DepositCall::OnDeadline(const absl::Status& status) {
  if (is_finished_) return;
  // A message that the sender does not read would keep the answer behind it waiting for ever.
  if (is_writing_) rpc_.TryCancel();
  Fail(status);
}

void DepositCall::Fail(const absl::Status& status) {
  if (failure_.ok()) failure_ = status;
  chunks_.DropWaiting();
  pace_.EndWait();
  CancelStep();
  Proceed();
}

void DepositCall::Finish() {
  if (!batch_.empty()) {
    deposits_.metrics->Record(DepositMetrics::kIn, DepositMetrics::kLost, batch_.size());
    LogWarning("deposit_broken_off", {{"peer", peer_->name()},
                                      {"tensors", batch_.size()},
                                      {"error", std::string(failure_.message())}});
  }
  DropBatch();
  expectation_ = ResidentTensors::Expectation();
  if (!run_.empty()) deposits_.calls->Remove(run_, this);
  is_finished_ = true;
  ExpectEvent();
  write_.Begin();
  pace_.Stop();
  if (is_end_watched_) deposits_.end_alarms->Remove(&end_alarm_);
  stream_.Finish(End(failure_, kDeposit), &finished_);
}

void DepositCall::OnFinished(bool /*ok*/) {
  write_.End();
  EventEnded();
}

}  // namespace opserve::server
