#include "tests/fault/workload.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/execute_stream.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

constexpr int64_t kCount = 300;

absl::Status CheckAll(const absl::StatusOr<Response>& response, size_t count, float expected) {
  if (!response.ok()) return response.status();
  if (response->results.size() != 1) return absl::UnknownError("not one result");
  const auto values = response->results[0].values<float>();
  if (!values.ok()) return absl::UnknownError(values.status().message());
  if (values->size() != count) return absl::UnknownError(absl::StrCat(values->size(), " values"));
  for (float value : *values) {
    if (std::abs(value - expected) > 1e-3f * std::abs(expected)) {
      return absl::UnknownError(absl::StrCat("a value is ", value, ", not ", expected));
    }
  }
  return absl::OkStatus();
}

Tensor Filled(std::vector<int64_t> shape, float value) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return Tensor::Owning<float>(std::move(shape), std::vector<float>(count, value));
}

// -0.5 * 2 summed over 2000 rows: the sum needs a workspace.
absl::Status RunWithWorkspace(Client& client) {
  return CheckAll(client.Execute({.operator_name = "KlDivBackward",
                                  .inputs = {{"grad_output", Filled({}, 2)},
                                             {"self", Filled({30}, 0)},
                                             {"target", Filled({2000, 30}, 0.5f)}},
                                  .attributes = {{"reduction", "sum"}}}),
                  30, -2000.0f);
}

// KlDivBackward gives -1 everywhere; log-softmax over 2 classes with output 0 gives -1 + 2.
absl::Status RunProgramOfTwo(Client& client) {
  const Invocation first = {.operator_name = "KlDivBackward",
                            .inputs = {{"grad_output", Filled({}, 2)},
                                       {"self", Filled({8, 2}, 0)},
                                       {"target", Filled({8, 2}, 0.5f)}},
                            .attributes = {{"reduction", "sum"}}};
  const Invocation second = {
      .operator_name = "LogSoftmaxBackward",
      .inputs = {{"grad_output", OutputOf{.invocation = 0}}, {"output", Filled({8, 2}, 0)}}};
  return CheckAll(client.Execute({.invocations = {first, second}}), 16, 1.0f);
}

// Each request is sent after the answer to the one before, so that a fault of one is not another's.
void RunStream(Client& client, StepListener ended) {
  auto stream = client.OpenStream({.window = 2, .timeout = absl::Seconds(60)});
  if (!stream.ok()) {
    ended({"open stream", stream.status()});
    return;
  }
  for (const char* name : {"first of the stream", "second of the stream"}) {
    ended({name, CheckAll((*stream)->Execute(OnesRequest(kCount)).get(), kCount, 1)});
  }
  ended({"stream", (*stream)->Finish()});
}

void RunResident(Client& client, StepListener ended) {
  const auto resident =
      client.Upload(Filled({kCount}, 3), {.chunk_bytes = 500, .timeout = absl::Seconds(60)});
  ended({"upload", resident.status()});
  if (!resident.ok()) return;
  Request request = OnesRequest(kCount);
  request.invocations[0].inputs[1].value = *resident;
  ended({"use", CheckAll(client.Execute(request), kCount, 1)});
  const auto downloaded = client.Download(resident->handle, {.timeout = absl::Seconds(60)});
  absl::Status status = downloaded.status();
  if (downloaded.ok() && *downloaded->values<float>() != std::vector<float>(kCount, 3)) {
    status = absl::UnknownError("other elements than were uploaded");
  }
  ended({"download", status});
  // A device that was reset has forgotten the tensor; then there is none to release.
  ended({"release", client.Release({resident->handle}).status()});
}

}  // namespace

void RunWorkload(Client& client, StepListener ended) {
  ended({"call", CheckAll(client.Execute(OnesRequest(kCount)), kCount, 1)});
  ended({"same call", CheckAll(client.Execute(OnesRequest(kCount)), kCount, 1)});
  ended({"call with workspace", RunWithWorkspace(client)});
  ended({"program", RunProgramOfTwo(client)});
  RunStream(client, ended);
  RunResident(client, ended);
}

}  // namespace opserve::server
