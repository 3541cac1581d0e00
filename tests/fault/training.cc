#include "tests/fault/training.h"

#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr int kSnapshotEvery = 8;

}  // namespace

Training::Training(const std::string& target, const Job& job, uint32_t seed, Observer observer)
    : job_(job),
      client_(*Client::Connect(target, {.token = job.tenant})),
      random_(seed),
      observer_(std::move(observer)) {}

Training::~Training() { GiveTensorsUp(); }

absl::Status Training::GoOn(absl::Duration timeout) {
  if (!program_) program_ = *client_->Prepare(AdamWStep(job_.shape, job_.donates).request());
  if (inputs_.empty()) OPSERVE_RETURN_IF_ERROR(Restore());
  const auto f = static_cast<float>(step_ % 7);
  const std::vector<float> x(job_.shape.batch * job_.shape.in, 0.5f + f / 8);
  const std::vector<float> y(job_.shape.batch * job_.shape.out, f);
  inputs_[0] = Tensor::Of<float>({job_.shape.batch, job_.shape.in}, x);
  inputs_[1] = Tensor::Of<float>({job_.shape.batch, job_.shape.out}, y);
  const auto response = (*program_)(inputs_, {.timeout = timeout});
  if (!response.ok()) {
    Settle(response.status());
    return response.status();
  }
  OPSERVE_ASSIGN_OR_RETURN(const auto loss, response->results[0].values<float>());
  observer_.loss(step_, loss.front());
  return EndStep();
}

absl::Status Training::GoOnSomehow() {
  switch (random_() % 24) {
    case 0:
      program_.reset();
      break;
    case 1:
      return GoOn(absl::Milliseconds(1 + random_() % 3));  // ends anywhere in the step
    case 2: {
      const auto other = client_->Upload(
          Tensor::Owning<float>({kOtherBytes / 4}, std::vector<float>(kOtherBytes / 4, 1)));
      if (!other.ok()) return other.status();
      const absl::Status status = GoOn();
      client_->Release({other->handle}).IgnoreError();
      return status;
    }
    default:
      break;
  }
  return GoOn();
}

absl::Status Training::Restore() {
  step_ = snapshot_.step;
  std::vector<PreparedProgram::Input> inputs(2);
  OPSERVE_ASSIGN_OR_RETURN(ResidentTensor tensor,
                           client_->Upload(Tensor::Of<int64_t>({1}, snapshot_.done)));
  inputs.emplace_back(std::move(tensor));
  inputs_ = inputs;  // so that they are given up if the others cannot be had
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> values = snapshot_.parameters[i];
    if (step_ == 0) {
      values.assign(job_.shape.in * job_.shape.out, 0);
      for (size_t j = 0; j < values.size() && i == 0; ++j) {
        values[j] = 0.01f * static_cast<float>(j % 31);
      }
    }
    auto uploaded = client_->Upload(Tensor::Of<float>({job_.shape.in, job_.shape.out}, values));
    if (!uploaded.ok()) {
      GiveTensorsUp();
      return uploaded.status();
    }
    inputs_.emplace_back(*std::move(uploaded));
  }
  return absl::OkStatus();
}

absl::StatusOr<Training::Snapshot> Training::Read() {
  OPSERVE_ASSIGN_OR_RETURN(const auto tensors, client_->Snapshot(Handles()));
  Snapshot snapshot;
  OPSERVE_ASSIGN_OR_RETURN(const auto done, tensors[0].tensor.values<int64_t>());
  snapshot.done.assign(done.begin(), done.end());
  snapshot.step = static_cast<int>(done.front());
  if (snapshot.step != step_ && snapshot.step != step_ + 1) {
    observer_.wrong(absl::StrCat("the state of step ", snapshot.step, " after ", step_, " steps"));
  }
  for (size_t i = 0; i < 3; ++i) {
    OPSERVE_ASSIGN_OR_RETURN(const auto values, tensors[1 + i].tensor.values<float>());
    snapshot.parameters[i].assign(values.begin(), values.end());
    if (tensors[1 + i].version != tensors[0].version) {
      observer_.wrong(absl::StrCat("versions ", tensors[1 + i].version, " and ", tensors[0].version,
                                   " in one state"));
    }
  }
  return snapshot;
}

absl::Status Training::EndStep() {
  ++steps_done_;
  if (++step_ == kSteps) {
    GiveTensorsUp();
    snapshot_ = {};
  } else if (step_ % kSnapshotEvery == 0) {
    return Save();
  }
  return absl::OkStatus();
}

absl::Status Training::Save() {
  auto snapshot = Read();
  if (snapshot.ok() && snapshot->step != step_) observer_.wrong("a step that was not sent");
  const absl::Status status =
      snapshot.ok() ? client_->Renew(Handles(), absl::ZeroDuration()).status() : snapshot.status();
  if (!status.ok()) {
    GiveTensorsUp();
    return status;
  }
  snapshot_ = *std::move(snapshot);
  return absl::OkStatus();
}

// A failed step leaves the state as it was, or says that it is lost. A client that did not wait for
// the answer does not know whether the step still runs.
void Training::Settle(const absl::Status& failure) {
  if (absl::IsDeadlineExceeded(failure) || absl::IsCancelled(failure) ||
      absl::IsUnavailable(failure)) {
    GiveTensorsUp();
    return;
  }
  const auto state = Read();
  if (state.ok()) {
    ++states_gone_on_with_;
    if (state->step > step_) EndStep().IgnoreError();  // the answer was lost, not the step
    return;
  }
  const Reason reason = ErrorReasonOf(state.status());
  if (reason == Reason::kTensorLost || reason == Reason::kTensorUnknown) {
    // It says which of them.
    if (!absl::StrContains(state.status().message(), "handles[")) {
      observer_.wrong(absl::StrCat("an error that names no tensor: ", state.status().ToString()));
    }
    ++states_lost_;
  } else if (!IsDocumented(state.status())) {
    observer_.wrong(state.status().ToString());
  }
  GiveTensorsUp();
}

std::vector<std::string> Training::Handles() const {
  std::vector<std::string> handles;
  for (const PreparedProgram::Input& input : inputs_) {
    if (const auto* tensor = std::get_if<ResidentTensor>(&input)) handles.push_back(tensor->handle);
  }
  return handles;
}

void Training::GiveTensorsUp() {
  const std::vector<std::string> handles = Handles();
  if (!handles.empty()) client_->Release(handles).IgnoreError();
  inputs_.clear();
}

bool IsDocumented(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kInternal:            // an injected fault
    case absl::StatusCode::kNotFound:            // a tensor that was lost
    case absl::StatusCode::kFailedPrecondition:  // likewise
      return true;
    default:
      return false;
  }
}

}  // namespace opserve
