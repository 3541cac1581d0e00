#include "client/cpp/prepared_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cpp/async_calls.h"
#include "client/cpp/data_type.h"
#include "client/cpp/given_up_programs.h"
#include "client/cpp/known_results.h"
#include "client/cpp/message.h"
#include "client/cpp/program_tensors.h"
#include "client/cpp/tensor_layout.h"
#include "client/cpp/transport.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "proto/status/reason.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr char kPrepare[] = "/opserve.v1.OperatorService/Prepare";

using Kinds = std::vector<v1::ProgramInput::Kind>;

std::string Describe(DataType dtype, absl::Span<const int64_t> shape) {
  return absl::StrCat(DataTypeName(dtype), " [", absl::StrJoin(shape, ", "), "]");
}

// The inputs that a request names, by their numbers.
class InputFinder {
 public:
  void operator()(const InputOf& input) {
    const auto [place, is_new] = inputs_.emplace(input.number, input);
    if (is_new || (place->second.dtype == input.dtype && place->second.shape == input.shape)) {
      return;
    }
    // The last contradiction is kept; any of them makes the program unusable.
    status_ =
        absl::InvalidArgumentError(absl::StrCat("input ", input.number, " of the program is ",
                                                Describe(place->second.dtype, place->second.shape),
                                                " and ", Describe(input.dtype, input.shape)));
  }
  void operator()(const View& view) { std::visit(*this, view.base); }
  void operator()(const std::vector<ListedTensor>& tensors) {
    for (const ListedTensor& tensor : tensors) Visit(tensor);
  }
  template <typename T>
  void operator()(const T& /*other*/) {}

  template <typename Variant>
  void Visit(const Variant& value) {
    std::visit([this](const auto& one) { (*this)(one); }, value);
  }

  absl::StatusOr<std::vector<InputOf>> Inputs() && {
    if (!status_.ok()) return status_;
    std::vector<InputOf> inputs;
    for (auto& [number, input] : inputs_) {
      // The map is ordered, so a gap shows at the first number that is missing.
      if (number != inputs.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("input ", inputs.size(), " of the program is used by nothing"));
      }
      inputs.push_back(std::move(input));
    }
    return inputs;
  }

 private:
  std::map<uint32_t, InputOf> inputs_;
  absl::Status status_;
};

absl::StatusOr<std::vector<InputOf>> InputsOf(const Request& request) {
  InputFinder finder;
  for (const Invocation& invocation : request.invocations) {
    for (const NamedInput& input : invocation.inputs) finder.Visit(input.value);
  }
  // Tensors that are replaced or donated may be inputs as well.
  for (const ReplacedTensor& replaced : request.replaced) finder.Visit(replaced.tensor);
  for (const auto& donated : request.donated) finder.Visit(donated);
  return std::move(finder).Inputs();
}

void AddInput(DataType dtype, absl::Span<const int64_t> shape, v1::PrepareRequest* program) {
  v1::ProgramInput* input = program->add_inputs();
  input->set_dtype(dtype);
  input->mutable_shape()->Add(shape.begin(), shape.end());
}

// Makes the payloads of the program inputs beside those that it has, of the same content in every
// call. A payload that is seen in two dtypes becomes two of them.
std::vector<Tensor> PayloadsToInputs(const std::vector<Tensor>& payloads,
                                     v1::PrepareRequest* program) {
  std::vector<Tensor> constants;
  absl::flat_hash_map<std::pair<uint32_t, int>, uint32_t> inputs;
  ForEachTensor(*program->mutable_program(), [&](v1::Tensor& tensor) {
    if (!tensor.has_payload()) return;
    // By payload and dtype: an input has one dtype, a storage may be seen in several.
    const auto [place, is_new] = inputs.try_emplace({tensor.payload(), tensor.dtype()},
                                                    static_cast<uint32_t>(program->inputs_size()));
    if (is_new) {
      const absl::Span<const std::byte> bytes = payloads[tensor.payload()].storage();
      // A payload of an unknown dtype counts in bytes; the daemon refuses it by name.
      const size_t size = std::max<size_t>(DataTypeBytes(tensor.dtype()), 1);
      const auto count = static_cast<int64_t>(bytes.size() / size);
      AddInput(tensor.dtype(), {count}, program);
      // Copied: constants live as long as the program, the caller's storage only as long as the
      // preparation.
      constants.push_back(Tensor::Owning<uint8_t>(
          {}, {reinterpret_cast<const uint8_t*>(bytes.data()),
               reinterpret_cast<const uint8_t*>(bytes.data()) + bytes.size()}));
    }
    tensor.set_program_input(place->second);
  });
  return constants;
}

bool IsKnownNoMore(const absl::Status& status) {
  // Only this reason says that the program is gone. Another NOT_FOUND may be a tensor's.
  const std::optional<v1::ErrorDetail> detail = ErrorDetailOf(status);
  return detail && ReasonFromText(detail->reason()) == Reason::kProgramUnknown;
}

// Puts versions of inputs of these kinds into a call.
absl::Status AddVersions(absl::Span<const ExpectedVersion> versions, const Kinds& kinds,
                         v1::PreparedCall* call) {
  for (const ExpectedVersion& expected : versions) {
    const auto input = kinds.begin() + std::min<size_t>(expected.input, kinds.size());
    if (input == kinds.end() || *input != v1::ProgramInput::KIND_RESIDENT) {
      return absl::InvalidArgumentError(
          absl::StrCat("a version of input ", expected.input, ", which is no resident tensor"));
    }
    v1::ExpectedVersion* message = call->add_versions();
    // Handles are in the order of their inputs.
    message->set_resident(
        static_cast<uint32_t>(std::count(kinds.begin(), input, v1::ProgramInput::KIND_RESIDENT)));
    message->set_version(expected.version);
  }
  return absl::OkStatus();
}

// Puts an input into a call, by its kind.
struct InputPlacer {
  const InputOf& wanted;
  v1::PreparedCall& call;
  std::vector<Tensor>& payloads;

  using Kind = v1::ProgramInput::Kind;

  absl::StatusOr<Kind> operator()(const Tensor& tensor) const {
    OPSERVE_RETURN_IF_ERROR(Check(tensor.dtype(), tensor.shape()));
    OPSERVE_ASSIGN_OR_RETURN(Tensor contiguous, MakeContiguous(tensor));
    payloads.push_back(std::move(contiguous));
    return v1::ProgramInput::KIND_PAYLOAD;
  }
  // Of which nothing but the handle need be known.
  // The daemon checks its dtype and shape against the program.
  absl::StatusOr<Kind> operator()(const ResidentTensor& tensor) const {
    call.add_residents(tensor.handle);
    return v1::ProgramInput::KIND_RESIDENT;
  }
  absl::StatusOr<Kind> operator()(const SharedTensor& tensor) const {
    OPSERVE_RETURN_IF_ERROR(Check(tensor.dtype, tensor.shape));
    if (!tensor.strides.empty() || tensor.offset != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", wanted.number, " is a view of shared memory; expected a contiguous tensor"));
    }
    EncodeRange(tensor.range, call.add_ranges());
    return v1::ProgramInput::KIND_SHARED_MEMORY;
  }

  absl::Status Check(DataType dtype, absl::Span<const int64_t> shape) const {
    if (dtype == wanted.dtype && shape == absl::MakeConstSpan(wanted.shape)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat("input ", wanted.number, " is ",
                                                   Describe(dtype, shape), "; expected ",
                                                   Describe(wanted.dtype, wanted.shape)));
  }
};

}  // namespace

struct PreparedProgram::State {
  // The program as the daemon has it.
  struct Prepared {
    std::string handle;
    std::vector<KnownResult> results;
  };
  using SharedPrepared = std::shared_ptr<const Prepared>;

  // A call, through all its attempts. The payloads are encoded once.
  struct Run {
    // Whether another attempt is to follow one that ended so.
    bool IsToBeRepeated(const absl::Status& status);
    absl::StatusOr<Response> Decode(const grpc::ByteBuffer& response) const {
      return DecodeResponse(response, prepared->results, header.prepared());
    }

    v1::ExecuteRequest header;
    std::vector<Tensor> payloads;
    Kinds kinds;
    RequestNumbers::Ticket number;
    absl::Time deadline;
    SharedPrepared prepared;  // of the last attempt
    SharedPrepared lost;      // of the first one, if there is another
  };

  ~State() {
    // The daemon is told with a later call of the client: a destructor must not wait for one.
    for (const auto& [kinds, one] : prepared) given_up->Add(one->handle);
  }

  // Puts the inputs into a call; the kinds of all inputs of the program, constants included.
  absl::StatusOr<Kinds> Place(absl::Span<const Input> values, v1::PreparedCall* call,
                              std::vector<Tensor>* payloads) const;

  // Errors: as of Place; kInvalidArgument: a version of no resident tensor.
  absl::StatusOr<Run> Begin(absl::Span<const Input> values,
                            const PreparedCallOptions& options) const;

  // The message of the run's next attempt. Errors: as of Find and EncodeMessage.
  absl::StatusOr<EncodedRequest> Encode(Run* run) ABSL_LOCKS_EXCLUDED(mutex);

  // The client's calls. Null: it is gone. Not owned by the result in one of its callbacks, where
  // they live, since it must not be the last owner: they wait there for the end of all callbacks.
  std::shared_ptr<AsyncCalls> LiveCalls() const {
    if (async_calls.expired() || !AsyncCalls::IsPolledHere(calls_address)) {
      return async_calls.lock();
    }
    return {std::shared_ptr<AsyncCalls>(), calls_address};
  }

  // The program for inputs of these kinds, as the daemon has prepared it, other than `lost`.
  // kDeadlineExceeded: another call's preparation has not ended by then. Else the errors of
  // Prepare.
  absl::StatusOr<SharedPrepared> Find(const Kinds& kinds, const Prepared* lost, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex);

  // Has the daemon prepare the program for inputs of these kinds.
  absl::StatusOr<SharedPrepared> Prepare(const Kinds& kinds, absl::Time deadline) const;

  // What all calls of a program have in common. Its inputs are those of the calls, and then the
  // constants.
  v1::PrepareRequest program;
  std::vector<InputOf> inputs;
  std::vector<Tensor> constants;
  bool has_effects = false;
  std::shared_ptr<Transport> transport;
  std::weak_ptr<AsyncCalls> async_calls;  // while the client lives
  AsyncCalls* calls_address = nullptr;    // of these
  std::shared_ptr<GivenUpPrograms> given_up;

  absl::Mutex mutex;
  bool is_preparing ABSL_GUARDED_BY(mutex) = false;  // a call is; others of the program await it
  std::map<Kinds, SharedPrepared> prepared ABSL_GUARDED_BY(mutex);
  uint64_t prepared_again ABSL_GUARDED_BY(mutex) = 0;
};

absl::StatusOr<Kinds> PreparedProgram::State::Place(absl::Span<const Input> values,
                                                    v1::PreparedCall* call,
                                                    std::vector<Tensor>* payloads) const {
  if (values.size() != inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(values.size(), " inputs given; the program has ", inputs.size()));
  }
  Kinds kinds;
  for (size_t i = 0; i < values.size(); ++i) {
    OPSERVE_ASSIGN_OR_RETURN(const auto kind,
                             std::visit(InputPlacer{inputs[i], *call, *payloads}, values[i]));
    kinds.push_back(kind);
  }
  // Constants travel as payloads, behind the inputs.
  kinds.resize(program.inputs_size(), v1::ProgramInput::KIND_PAYLOAD);
  return kinds;
}

absl::StatusOr<PreparedProgram::State::SharedPrepared> PreparedProgram::State::Find(
    const Kinds& kinds, const Prepared* lost, absl::Time deadline) {
  {
    absl::MutexLock lock(&mutex);
    for (;;) {
      // Known, or prepared anew by another thread since this call found it lost.
      const auto found = prepared.find(kinds);
      if (found != prepared.end() && found->second.get() != lost) return found->second;
      if (!is_preparing) break;
      // Programs are large: ten threads that miss the handle are to send it once. Without the lock
      // during the call, so that each of them keeps to its own deadline.
      if (!mutex.AwaitWithDeadline(
              absl::Condition(
                  +[](bool* is_preparing) { return !*is_preparing; }, &is_preparing),
              deadline)) {
        return absl::DeadlineExceededError(
            "another call of the program had not prepared it before the deadline");
      }
    }
    is_preparing = true;
  }
  absl::StatusOr<SharedPrepared> made = Prepare(kinds, deadline);
  absl::MutexLock lock(&mutex);
  is_preparing = false;
  if (!made.ok()) return made;
  if (lost != nullptr) ++prepared_again;
  prepared[kinds] = *made;
  return made;
}

absl::StatusOr<PreparedProgram::State::SharedPrepared> PreparedProgram::State::Prepare(
    const Kinds& kinds, absl::Time deadline) const {
  v1::PrepareRequest request = program;
  for (size_t i = 0; i < kinds.size(); ++i) {
    request.mutable_inputs(static_cast<int>(i))->set_kind(kinds[i]);
  }
  grpc::ByteBuffer sent = codec::BuildPayloadMessage(request, {});
  grpc::ByteBuffer received;
  OPSERVE_RETURN_IF_ERROR(transport->Call(kPrepare, &sent, deadline - absl::Now(), &received));
  v1::PrepareResponse response;
  OPSERVE_RETURN_IF_ERROR(DecodeMessage(received, &response));
  auto made = std::make_shared<Prepared>();
  OPSERVE_ASSIGN_OR_RETURN(made->results, ReadKnownResults(request, response));
  made->handle = std::move(*response.mutable_handle());
  return made;
}

absl::StatusOr<PreparedProgram> PreparedProgram::Make(std::shared_ptr<Transport> transport,
                                                      std::weak_ptr<AsyncCalls> async_calls,
                                                      std::shared_ptr<GivenUpPrograms> given_up,
                                                      const Request& request) {
  OPSERVE_ASSIGN_OR_RETURN(const std::vector<InputOf> inputs, InputsOf(request));
  OPSERVE_ASSIGN_OR_RETURN(RequestParts parts, TakeApart(request));
  v1::PrepareRequest program;
  for (const InputOf& input : inputs) AddInput(input.dtype, input.shape, &program);
  const size_t num_inputs = inputs.size();
  // The other fields belong to the calls.
  parts.header.Swap(program.mutable_program());
  program.mutable_program()->clear_want_receipt();
  program.mutable_program()->clear_idempotency_key();
  program.mutable_program()->clear_priority();
  std::vector<Tensor> constants = PayloadsToInputs(parts.payloads, &program);
  // Make below takes constants for inputs as well, since both are the program's.
  PreparedProgram prepared =
      Make(std::move(transport), std::move(async_calls), std::move(given_up), std::move(program));
  prepared.state_->inputs.resize(num_inputs);
  prepared.state_->constants = std::move(constants);
  return prepared;
}

PreparedProgram PreparedProgram::Make(std::shared_ptr<Transport> transport,
                                      std::weak_ptr<AsyncCalls> async_calls,
                                      std::shared_ptr<GivenUpPrograms> given_up,
                                      v1::PrepareRequest program) {
  auto state = std::make_shared<State>();
  for (const v1::ProgramInput& input : program.inputs()) {
    state->inputs.push_back({.number = static_cast<uint32_t>(state->inputs.size()),
                             .dtype = input.dtype(),
                             .shape = {input.shape().begin(), input.shape().end()}});
  }
  state->has_effects = HasEffects(program.program());
  state->program = std::move(program);
  state->transport = std::move(transport);
  state->calls_address = async_calls.lock().get();
  state->async_calls = std::move(async_calls);
  state->given_up = std::move(given_up);
  return PreparedProgram(std::move(state));
}

absl::Status PreparedProgram::PrepareFor(absl::Span<const Input> inputs,
                                         absl::Duration timeout) const {
  v1::PreparedCall call;
  std::vector<Tensor> payloads;
  OPSERVE_ASSIGN_OR_RETURN(const Kinds kinds, state_->Place(inputs, &call, &payloads));
  return state_->Find(kinds, /*lost=*/nullptr, absl::Now() + timeout).status();
}

absl::StatusOr<PreparedProgram::State::Run> PreparedProgram::State::Begin(
    absl::Span<const Input> values, const PreparedCallOptions& options) const {
  Run run;
  run.deadline = absl::Now() + options.timeout;
  run.header.set_want_receipt(options.want_receipt);
  run.header.set_idempotency_key(options.idempotency_key);
  run.header.set_priority(options.priority);
  v1::PreparedCall& call = *run.header.mutable_prepared();
  OPSERVE_ASSIGN_OR_RETURN(run.kinds, Place(values, &call, &run.payloads));
  run.payloads.insert(run.payloads.end(), constants.begin(), constants.end());
  for (const ChangedAttribute& changed : options.attributes) {
    v1::ChangedAttribute* message = call.add_attributes();
    message->set_invocation(changed.invocation);
    EncodeAttribute(changed.attribute, message->mutable_attribute());
  }
  OPSERVE_RETURN_IF_ERROR(AddVersions(options.versions, run.kinds, &call));
  // One number for all attempts, so that the daemon recognises a repetition that it has already
  // run.
  if (has_effects && NeedsIdentity(run.header)) {
    run.number = transport->request_numbers().Take(run.header.mutable_identity());
  }
  return run;
}

absl::StatusOr<EncodedRequest> PreparedProgram::State::Encode(Run* run) {
  OPSERVE_ASSIGN_OR_RETURN(run->prepared, Find(run->kinds, run->lost.get(), run->deadline));
  v1::PreparedCall& call = *run->header.mutable_prepared();
  call.set_program(run->prepared->handle);
  call.set_want_brief(!run->prepared->results.empty());
  return EncodeMessage(run->header, run->payloads);
}

bool PreparedProgram::State::Run::IsToBeRepeated(const absl::Status& status) {
  // Once: a daemon that forgets programs at once would else be asked until the deadline.
  if (lost != nullptr || !IsKnownNoMore(status)) return false;
  lost = prepared;
  return true;
}

absl::StatusOr<Response> PreparedProgram::operator()(absl::Span<const Input> inputs,
                                                     const PreparedCallOptions& options) const {
  OPSERVE_ASSIGN_OR_RETURN(State::Run run, state_->Begin(inputs, options));
  for (;;) {
    // Not copied, as in Client::Execute.
    absl::StatusOr<EncodedRequest> encoded = state_->Encode(&run);
    if (!encoded.ok()) return encoded.status();
    grpc::ByteBuffer response;
    // The client may be gone; the transport is this program's own share.
    absl::Status status = CallExecute(*state_->transport, state_->LiveCalls().get(), &*encoded,
                                      run.deadline - absl::Now(), &response);
    if (status.ok()) return run.Decode(response);
    if (!run.IsToBeRepeated(status)) return status;
  }
}

// A run beside its caller.
class PreparedProgram::AsyncRun final : public CancellableCall {
 public:
  AsyncRun(std::shared_ptr<State> state, State::Run run, Callback callback)
      : state_(std::move(state)), run_(std::move(run)), callback_(std::move(callback)) {}

  // Begins the next attempt.
  static void Start(const std::shared_ptr<AsyncRun>& self) {
    absl::StatusOr<EncodedRequest> encoded = self->state_->Encode(&self->run_);
    if (!encoded.ok()) return self->End(encoded.status());
    const std::shared_ptr<AsyncCalls> calls = self->state_->LiveCalls();
    if (calls == nullptr) return self->End(absl::CancelledError("the client is destroyed"));
    int attempt = 0;
    {
      absl::MutexLock lock(&self->mutex_);
      attempt = ++self->attempts_;
    }
    const std::shared_ptr<AsyncCall> call =
        calls->Start(&*encoded, self->run_.deadline - absl::Now(),
                     [self](const absl::Status& status, const grpc::ByteBuffer& response) {
                       if (!status.ok() && self->run_.IsToBeRepeated(status)) return Start(self);
                       self->End(status.ok() ? self->run_.Decode(response) : status);
                     });
    bool is_cancelled = false;
    {
      absl::MutexLock lock(&self->mutex_);
      // It may have ended by now, and the next one have begun.
      if (attempt == self->attempts_) self->current_ = call;
      is_cancelled = self->is_cancelled_;
    }
    if (is_cancelled) call->Cancel();
  }

  void Cancel() override ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<AsyncCall> current;
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
      current = current_.lock();
    }
    if (current != nullptr) current->Cancel();
  }

 private:
  void End(absl::StatusOr<Response> response) { std::move(callback_)(std::move(response)); }

  const std::shared_ptr<State> state_;
  // Used by one thread at a time: the caller's until its attempt has begun, then the client's.
  State::Run run_;
  Callback callback_;

  absl::Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int attempts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<AsyncCall> current_ ABSL_GUARDED_BY(mutex_);
};

CallHandle PreparedProgram::CallAsync(absl::Span<const Input> inputs, Callback callback,
                                      const PreparedCallOptions& options) const {
  absl::StatusOr<State::Run> run = state_->Begin(inputs, options);
  if (!run.ok()) {
    std::move(callback)(run.status());
    return CallHandle();
  }
  const auto started = std::make_shared<AsyncRun>(state_, *std::move(run), std::move(callback));
  AsyncRun::Start(started);
  return CallHandle(started);
}

std::future<absl::StatusOr<Response>> PreparedProgram::CallAsync(
    absl::Span<const Input> inputs, const PreparedCallOptions& options) const {
  std::promise<absl::StatusOr<Response>> promise;
  std::future<absl::StatusOr<Response>> future = promise.get_future();
  CallAsync(
      inputs,
      [promise = std::move(promise)](absl::StatusOr<Response> response) mutable {
        promise.set_value(std::move(response));
      },
      options);
  return future;
}

absl::Span<const InputOf> PreparedProgram::inputs() const { return state_->inputs; }

uint64_t PreparedProgram::prepared_again() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->prepared_again;
}

}  // namespace opserve
