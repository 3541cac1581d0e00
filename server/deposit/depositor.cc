#include "server/deposit/depositor.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/deposit/deposit_call.h"
#include "server/grpc/result_slice.h"
#include "server/native/program_calls.h"
#include "server/observability/log.h"

namespace opserve::server {
namespace {

// Tensors that are uncommitted together: so many bytes, unless one has more.
constexpr uint64_t kMostBatchBytes = uint64_t{64} << 20;
// Of a stream that is made while the daemon still serves. One that ends before it is made anew.
constexpr absl::Duration kLongestStream = absl::Minutes(5);
// Until a connection, or a receiver without room, is tried again.
constexpr absl::Duration kRetryPeriod = absl::Milliseconds(200);
// How long tensors wait for the requests that use them before others go first.
constexpr absl::Duration kClaimPatience = absl::Seconds(1);
// A receiver without room may have some when an older stream of this daemon's has ended there.
constexpr int kMostRefusals = 5;
// After so many, other tensors are tried.
constexpr int kFailuresInARow = 3;
// A program that breaks the stream so often does not go: its clients can prepare it anew.
constexpr int kMostProgramFailures = 2;
// Names of tensors in one line of the log.
constexpr size_t kNamesPerLine = 256;

std::string NameOf(const std::string& handle) {
  return absl::BytesToHexString(absl::string_view(handle).substr(0, kShownHandleBytes));
}

bool MayHaveRoomLater(const v1::TensorVerdict& verdict) {
  const Reason reason = ReasonFromText(verdict.reason());
  return reason == Reason::kTenantMemory || reason == Reason::kDeviceMemory ||
         reason == Reason::kTooLarge || reason == Reason::kDeviceUnavailable;
}

}  // namespace

Depositor::Depositor(DepositConfig config, Parts parts)
    : config_(std::move(config)),
      parts_(std::move(parts)),
      steps_(parts_.scheduler, parts_.residents) {}

Depositor::~Depositor() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void Depositor::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }
  steps_.Stop();
}

void Depositor::Begin() {
  if (std::exchange(has_begun_, true)) return;
  thread_ = std::thread([this] { Run(); });
}

void Depositor::Start(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  deadline_ = deadline;
}

void Depositor::Finish() {
  {
    const auto has_ended = [this] {
      mutex_.AssertReaderHeld();
      return has_ended_;
    };
    absl::MutexLock lock(&mutex_);
    calls_have_ended_ = true;
    mutex_.AwaitWithDeadline(absl::Condition(&has_ended), deadline_);
  }
  Stop();  // a device or the receiver may keep it longer
  if (thread_.joinable()) thread_.join();
}

v1::DepositStatus Depositor::Status() const {
  v1::DepositStatus status;
  status.set_address(config_.address);
  status.set_connected(is_welcome_.load(std::memory_order_relaxed));
  status.set_moved_tensors(moved_tensors_.load(std::memory_order_relaxed));
  status.set_moved_bytes(moved_bytes_.load(std::memory_order_relaxed));
  status.set_lost_tensors(lost_tensors_.load(std::memory_order_relaxed));
  const ResidentTensors::Usage left = parts_.residents.Total();
  status.set_left_tensors(left.tensors);
  status.set_left_bytes(left.bytes);
  status.set_moved_programs(moved_programs_.load(std::memory_order_relaxed));
  return status;
}

absl::Time Depositor::deadline() const {
  absl::MutexLock lock(&mutex_);
  return deadline_;
}

bool Depositor::AwaitStart(absl::Time until) {
  const auto is_due = [this] {
    mutex_.AssertReaderHeld();
    return is_stopping_ || deadline_ != absl::InfiniteFuture();
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(&is_due), until);
  return !is_stopping_;
}

bool Depositor::Pause() {
  const auto is_stopping = [this] {
    mutex_.AssertReaderHeld();
    return is_stopping_;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(&is_stopping),
                           std::min(deadline_, absl::Now() + kRetryPeriod));
  return !is_stopping_ && absl::Now() < deadline_;
}

void Depositor::Run() {
  // From the hello on the receiver tells clients to come again, instead of that their tensors were
  // lost; so it goes out as early as possible, while this daemon still serves.
  while (deadline() == absl::InfiniteFuture()) {
    if (Connect()) DepositWhileServing();
    // If time is up already, what is left is told all the same.
    if (!AwaitStart(stream() != nullptr ? absl::InfiniteFuture() : absl::Now() + kRetryPeriod))
      break;
  }
  DepositAll();
  // Handles that did not move are lost from now on, here and there.
  if (DepositStream* const open = stream()) open->Close().IgnoreError();
  Disconnect();
  ReportFates();
  absl::MutexLock lock(&mutex_);
  has_ended_ = true;
}

DepositStream* Depositor::stream() const {
  absl::MutexLock lock(&mutex_);
  return stream_.get();
}

bool Depositor::Connect() {
  if (stream() != nullptr) return true;
  if (absl::Status status = TryConnect(); !status.ok()) {
    NoteBroken(status);
    Disconnect();
    return false;
  }
  if (!is_welcome_.exchange(true)) parts_.on_welcome();
  return true;
}

absl::Status Depositor::TryConnect() {
  OPSERVE_ASSIGN_OR_RETURN(
      std::unique_ptr<DepositStream> created,
      DepositStream::Create(config_, std::min(deadline(), absl::Now() + kLongestStream)));
  DepositStream& stream = *created;
  {
    // Before the first wait, so that Stop can end it.
    absl::MutexLock lock(&mutex_);
    if (is_stopping_) return absl::CancelledError("the daemon ends");
    stream_ = std::move(created);
  }
  OPSERVE_RETURN_IF_ERROR(stream.Begin());
  v1::DepositRequest request;
  request.mutable_hello()->set_run(parts_.residents.run());
  OPSERVE_RETURN_IF_ERROR(stream.Send(request));
  OPSERVE_ASSIGN_OR_RETURN(const v1::DepositResponse response,
                           stream.Receive(v1::DepositResponse::kWelcome));
  chunk_bytes_ = response.welcome().chunk_bytes();
  takes_programs_ = response.welcome().takes_programs();
  if (chunk_bytes_ > 0 && chunk_bytes_ <= kMaxDepositChunkBytes) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the receiver wants chunks of ", chunk_bytes_, " bytes"));
}

// Each error once: attempts follow each other quickly.
void Depositor::NoteBroken(const absl::Status& status) {
  if (error_ == status.message()) return;
  error_ = std::string(status.message());
  LogWarning("deposit_interrupted", {{"address", config_.address}, {"error", error_}});
}

void Depositor::Disconnect() {
  std::unique_ptr<DepositStream> stream;
  absl::MutexLock lock(&mutex_);
  stream.swap(stream_);
}

std::deque<Depositor::Batch> Depositor::NewBatches() {
  std::deque<Batch> batches;
  uint64_t batch_bytes = 0;
  for (ResidentTensors::Departing& tensor : parts_.residents.TensorsToDeposit(absl::Now())) {
    if (!taken_up_.insert(tensor.handle).second) continue;
    const bool goes_on = !batches.empty() &&
                         batches.back().items.front().tensor.tenant == tensor.tenant &&
                         batches.back().items.size() < kMaxOfferedTensors &&
                         batch_bytes + tensor.bytes <= kMostBatchBytes;
    if (!goes_on) {
      batches.emplace_back();
      batch_bytes = 0;
    }
    batch_bytes += tensor.bytes;
    batches.back().tenant_bytes += tensor.bytes;
    batches.back().items.push_back({.tensor = std::move(tensor)});
  }
  for (size_t i = batches.size(); i-- > 1;) {
    const bool is_same_tenant =
        batches[i].items.front().tensor.tenant == batches[i - 1].items.front().tensor.tenant;
    if (is_same_tenant) batches[i - 1].tenant_bytes += batches[i].tenant_bytes;
  }
  return batches;
}

void Depositor::DepositWhileServing() {
  TakeUpPrograms();
  const auto serves = [this] {
    absl::MutexLock lock(&mutex_);
    return !is_stopping_ && deadline_ == absl::InfiniteFuture();
  };
  while (!programs_.empty() && serves()) {
    if (DepositProgram()) continue;
    Disconnect();
    return;
  }
}

void Depositor::TakeUpPrograms() {
  for (PreparedPrograms::Departing& program : parts_.prepared.ProgramsToDeposit(absl::Now())) {
    PreparedPrograms::Departing part = {
        .tenant = program.tenant, .program = program.program, .handles = {}};
    for (PreparedPrograms::Arrived& handle : program.handles) {
      if (!taken_up_.insert(handle.handle).second) continue;
      part.handles.push_back(std::move(handle));
      if (part.handles.size() < kMaxDepositedHandles) continue;
      programs_.push_back({.departing = part});
      part.handles.clear();
    }
    if (!part.handles.empty()) programs_.push_back({.departing = std::move(part)});
  }
}

bool Depositor::DepositProgram() {
  if (!takes_programs_) {
    NoteProgram(DepositMetrics::kRefused);
    return true;
  }
  Program& program = programs_.front();
  const absl::StatusOr<v1::ProgramVerdict> verdict = Exchange(*stream(), program.departing);
  if (!verdict.ok()) {
    NoteBroken(verdict.status());
    if (++program.failures == kMostProgramFailures) NoteProgram(DepositMetrics::kLost);
    return false;
  }
  if (verdict->taken()) {
    moved_programs_.fetch_add(1, std::memory_order_relaxed);
  } else {
    LogWarning("program_not_deposited", {{"tenant", parts_.tenant_name(program.departing.tenant)},
                                         {"reason", verdict->reason()},
                                         {"why", verdict->message()}});
  }
  NoteProgram(verdict->taken() ? DepositMetrics::kMoved : DepositMetrics::kRefused);
  return true;
}

void Depositor::NoteProgram(DepositMetrics::Result result) {
  parts_.metrics.RecordProgram(DepositMetrics::kOut, result);
  programs_.pop_front();
}

absl::StatusOr<v1::ProgramVerdict> Depositor::Exchange(
    DepositStream& stream, const PreparedPrograms::Departing& program) const {
  const absl::Time now = absl::Now();
  v1::DepositRequest request;
  v1::DepositedProgram* const to = request.mutable_program();
  to->set_tenant(parts_.tenant_name(program.tenant));
  if (!to->mutable_program()->ParseFromString(program.program->request())) {
    return absl::InternalError("a prepared program cannot be read");
  }
  for (const PreparedPrograms::Arrived& handle : program.handles) {
    v1::DepositedHandle* const added = to->add_handles();
    added->set_handle(handle.handle);
    *added->mutable_lease() = ToProto(handle.lease);
    *added->mutable_lease_left() = ToProto(handle.lease_end - now);
  }
  for (const PreparedProgram::NamedResident& named : program.program->NamedResidents()) {
    v1::DepositedTensor* const resident = to->add_residents();
    resident->set_handle(named.handle);
    resident->set_dtype(named.spec.dtype);
    resident->mutable_shape()->Add(named.spec.shape.begin(), named.spec.shape.end());
  }
  OPSERVE_RETURN_IF_ERROR(stream.Send(request));
  OPSERVE_ASSIGN_OR_RETURN(v1::DepositResponse response,
                           stream.Receive(v1::DepositResponse::kPrepared));
  return std::move(*response.mutable_prepared());
}

void Depositor::DepositAll() {
  std::deque<Batch> batches = NewBatches();
  TakeUpPrograms();
  while (true) {
    bool may_come_more = false;
    {
      absl::MutexLock lock(&mutex_);
      if (is_stopping_ || absl::Now() >= deadline_) break;
      may_come_more = !calls_have_ended_;
    }
    if (batches.empty()) {
      // Requests that still run may have kept more.
      batches = NewBatches();
      if (batches.empty() && programs_.empty()) {
        if (!may_come_more) return;
        if (!Pause()) break;
        continue;
      }
    }
    if (!Connect()) {
      if (!Pause()) break;
      continue;
    }
    if (batches.empty()) {
      // Tensors go first, as nothing else brings them back.
      if (DepositProgram()) continue;
      Disconnect();
      if (!Pause()) break;
      continue;
    }
    Batch batch = std::move(batches.front());
    batches.pop_front();
    const Attempt attempt = DepositBatch(&batch);
    if (attempt == Attempt::kBroken) Disconnect();
    if (batch.items.empty()) continue;
    // Those that wait let others go first, and so do those that fail again and again: it may be
    // their device that is broken, not the link.
    if (attempt == Attempt::kWaits || ++batch.failures % kFailuresInARow == 0) {
      batches.push_back(std::move(batch));
    } else {
      batches.push_front(std::move(batch));
    }
    if (!Pause()) break;
  }
  for (Batch& batch : batches) NoteLeft(&batch);
  for (Batch& batch : NewBatches()) NoteLeft(&batch);
  while (!programs_.empty()) NoteProgram(DepositMetrics::kLost);
}

void Depositor::NoteLeft(Batch* batch) {
  for (Item& item : batch->items) {
    NoteFate(item.is_given ? DepositMetrics::kUnconfirmed : DepositMetrics::kLost,
             error_.empty() ? "there was no time" : error_, &item);
  }
}

Depositor::Attempt Depositor::DepositBatch(Batch* batch) {
  HeldClaims claims(parts_.residents.claims());
  std::vector<const ResidentTensor*> own;
  for (const Item& item : batch->items) {
    if (!item.is_given) own.push_back(item.tensor.tensor.get());
  }
  const absl::Time patience = std::min(deadline(), absl::Now() + kClaimPatience);
  if (!own.empty() && !steps_.ClaimBehind(own, patience, &claims)) return Attempt::kWaits;
  // Their owner, a failed request or a reset may have ended some meanwhile, which are no tensors
  // any more.
  std::erase_if(batch->items, [this](const Item& item) {
    const ResidentTensors::Departing& tensor = item.tensor;
    return !item.is_given &&
           (tensor.tensor->is_broken || !parts_.residents.Has(tensor.tenant, tensor.handle));
  });
  if (batch->items.empty()) return Attempt::kDone;
  const absl::Status status = Exchange(*stream(), batch);
  std::erase_if(batch->items, [](const Item& item) { return item.is_done; });
  if (!status.ok()) {
    NoteBroken(status);
    return Attempt::kBroken;
  }
  return batch->items.empty() ? Attempt::kDone : Attempt::kWaits;
}

absl::Status Depositor::Exchange(DepositStream& stream, Batch* batch) {
  OPSERVE_RETURN_IF_ERROR(SendOffer(stream, *batch));
  OPSERVE_ASSIGN_OR_RETURN(const v1::DepositResponse response,
                           stream.Receive(v1::DepositResponse::kVerdict));
  const auto& verdicts = response.verdict().tensors();
  if (static_cast<size_t>(verdicts.size()) != batch->items.size()) {
    return absl::InternalError(absl::StrCat("the receiver has ", verdicts.size(), " verdicts on ",
                                            batch->items.size(), " tensors"));
  }
  ++batch->attempts;
  std::vector<size_t> accepted;
  for (size_t i = 0; i < batch->items.size(); ++i) {
    Item& item = batch->items[i];
    const v1::TensorVerdict& verdict = verdicts[static_cast<int>(i)];
    switch (verdict.answer()) {
      case v1::TensorVerdict::ANSWER_ACCEPTED:
        accepted.push_back(i);
        break;
      case v1::TensorVerdict::ANSWER_PRESENT:
        // It is not served in two places, whatever the receiver's reason to say so.
        if (!item.is_given) parts_.residents.GiveAway({&item.tensor, 1});
        CountMoved(&item);
        break;
      default:
        if (!MayHaveRoomLater(verdict) || batch->attempts >= kMostRefusals) {
          NoteFate(DepositMetrics::kRefused, verdict.message(), &item);
        }
    }
  }
  if (accepted.empty()) return absl::OkStatus();
  for (const size_t position : accepted) {
    Item& item = batch->items[position];
    absl::Status status = SendElements(stream, *item.tensor.tensor);
    if (ErrorReasonOf(status) == Reason::kTensorLost) {
      NoteFate(DepositMetrics::kLost, status.message(), &item);
    }
    OPSERVE_RETURN_IF_ERROR(status);
  }
  OPSERVE_RETURN_IF_ERROR(stream.Receive(v1::DepositResponse::kSealed).status());
  return Commit(stream, accepted, batch);
}

absl::Status Depositor::SendOffer(DepositStream& stream, const Batch& batch) const {
  const absl::Time now = absl::Now();
  v1::DepositRequest request;
  v1::DepositOffer* const offer = request.mutable_offer();
  offer->set_tenant(parts_.tenant_name(batch.items.front().tensor.tenant));
  offer->set_tenant_bytes(batch.tenant_bytes);
  for (const Item& item : batch.items) {
    const ResidentTensor& tensor = *item.tensor.tensor;
    v1::DepositedTensor* const to = offer->add_tensors();
    to->set_handle(item.tensor.handle);
    to->set_dtype(tensor.spec.dtype);
    to->mutable_shape()->Add(tensor.spec.shape.begin(), tensor.spec.shape.end());
    to->set_version(tensor.version);
    *to->mutable_lease() = ToProto(item.tensor.lease_end - now);
  }
  return stream.Send(request);
}

absl::Status Depositor::SendElements(DepositStream& stream, const ResidentTensor& tensor) {
  const auto bytes = static_cast<uint64_t>(NumBytes(tensor.spec));
  for (uint64_t offset = 0; offset < bytes; offset += chunk_bytes_) {
    OPSERVE_ASSIGN_OR_RETURN(DownloadChunk chunk,
                             steps_.Read(tensor, offset, std::min(chunk_bytes_, bytes - offset)));
    v1::DepositRequest header;
    header.mutable_chunk()->set_crc32c(chunk.crc32c);
    const grpc::Slice data = ToSlice(std::move(chunk.data));
    OPSERVE_RETURN_IF_ERROR(stream.Send(codec::BuildPayloadMessage(header, {&data, 1})));
  }
  return absl::OkStatus();
}

absl::Status Depositor::Commit(DepositStream& stream, absl::Span<const size_t> accepted,
                               Batch* batch) {
  v1::DepositRequest request;
  v1::DepositCommit* const commit = request.mutable_commit();
  std::vector<size_t> own;  // positions of those that may still be served here
  std::vector<ResidentTensors::Departing> departing;
  for (const size_t position : accepted) {
    if (batch->items[position].is_given) continue;
    own.push_back(position);
    departing.push_back(batch->items[position].tensor);
  }
  // From here on only the receiver may serve them, whether the commit arrives or not.
  for (const size_t given : parts_.residents.GiveAway(departing)) {
    batch->items[own[given]].is_given = true;
  }
  for (const size_t position : own) {
    Item& item = batch->items[position];
    if (item.is_given) continue;
    commit->add_released(static_cast<uint32_t>(position));
    item.is_done = true;
  }
  OPSERVE_RETURN_IF_ERROR(stream.Send(request));
  OPSERVE_RETURN_IF_ERROR(stream.Receive(v1::DepositResponse::kCommitted).status());
  for (const size_t position : accepted) {
    Item& item = batch->items[position];
    if (!item.is_done) CountMoved(&item);
  }
  return absl::OkStatus();
}

void Depositor::CountMoved(Item* item) {
  item->is_done = true;
  parts_.metrics.Record(DepositMetrics::kOut, DepositMetrics::kMoved);
  parts_.metrics.AddBytes(DepositMetrics::kOut, item->tensor.bytes);
  moved_tensors_.fetch_add(1, std::memory_order_relaxed);
  moved_bytes_.fetch_add(item->tensor.bytes, std::memory_order_relaxed);
}

void Depositor::NoteFate(DepositMetrics::Result result, absl::string_view why, Item* item) {
  item->is_done = true;
  parts_.metrics.Record(DepositMetrics::kOut, result);
  lost_tensors_.fetch_add(1, std::memory_order_relaxed);
  fates_[{.result = result, .tenant = item->tensor.tenant, .why = std::string(why)}].push_back(
      NameOf(item->tensor.handle));
}

void Depositor::ReportFates() {
  for (const auto& [fate, names] : fates_) {
    for (size_t begin = 0; begin < names.size(); begin += kNamesPerLine) {
      const size_t end = std::min(begin + kNamesPerLine, names.size());
      LogError("tensors_lost",
               {{"tenant", parts_.tenant_name(fate.tenant)},
                {"result", DepositMetrics::ResultName(fate.result)},
                {"why", fate.why},
                {"tensors", std::vector<std::string>(names.begin() + begin, names.begin() + end)}});
    }
  }
  LogInfo("tensors_deposited", {{"address", config_.address},
                                {"tensors", moved_tensors_.load()},
                                {"bytes", moved_bytes_.load()},
                                {"programs", moved_programs_.load()},
                                {"lost", lost_tensors_.load()}});
}

}  // namespace opserve::server
