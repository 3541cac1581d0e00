#include "server/execution/golden_values.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "proto/status/status_macros.h"
#include "server/device/acl_status.h"
#include "server/execution/program_runner.h"
#include "server/execution/tensor_view.h"

namespace opserve::server {
namespace {

// Of the expected value, or of one if that is smaller: devices round differently.
constexpr double kTolerance = 1e-3;
constexpr absl::Duration kTimeout = absl::Seconds(30);

}  // namespace

absl::StatusOr<Program> GoldenProgram(const LoadedOperator& op, Dtype dtype) {
  const catalog::GoldenCase& golden = op.descriptor->golden;
  BoundInvocation invocation;
  invocation.op = &op;
  invocation.attributes.assign(golden.attributes.begin(), golden.attributes.end());
  invocation.is_result = true;
  absl::InlinedVector<TensorSpec, 3> specs;
  absl::InlinedVector<uint64_t, 3> payload_sizes;
  for (size_t i = 0; i < golden.inputs.size(); ++i) {
    specs.push_back({dtype, golden.inputs[i].shape});
    payload_sizes.push_back(static_cast<uint64_t>(NumBytes(specs.back())));
    BoundInput& input = invocation.inputs.emplace_back();
    ViewWhole(specs.back(), &input);
    input.source = PayloadSource{static_cast<uint32_t>(i)};
  }
  OPSERVE_ASSIGN_OR_RETURN(invocation.output,
                           op.descriptor->infer_output(specs, invocation.attributes, std::nullopt));
  invocation.work = op.descriptor->count_work(specs, invocation.attributes, invocation.output);
  Program program;
  program.work = invocation.work;
  program.results = {0};
  program.invocations.push_back(std::move(invocation));
  program.ComputeFacts(payload_sizes);
  return program;
}

namespace {

absl::Status RunGoldenCase(const LoadedOperator& op, LaneContext& lane) {
  const catalog::GoldenCase& golden = op.descriptor->golden;
  OPSERVE_ASSIGN_OR_RETURN(const Program program, GoldenProgram(op, v1::DATA_TYPE_FLOAT));
  std::vector<codec::Payload> payloads;
  for (const catalog::GoldenCase::Input& input : golden.inputs) {
    const size_t bytes = input.values.size() * sizeof(float);
    const auto* data = reinterpret_cast<const char*>(input.values.data());
    payloads.push_back({bytes, {absl::string_view(data, bytes)}});
  }
  const CallState call(absl::Now() + kTimeout);
  StageClock clock;
  OPSERVE_ASSIGN_OR_RETURN(const ProgramResult result,
                           RunProgram(program, payloads, call, /*tenant=*/0, lane, clock));
  std::vector<float> actual(golden.expected.size());
  const PinnedBuffer& data = result.outputs[0].data;
  if (data.size() != actual.size() * sizeof(float)) {
    return absl::InternalError(absl::StrCat(op.descriptor->name, ": golden case: ", data.size(),
                                            " bytes instead of ", actual.size() * sizeof(float)));
  }
  std::memcpy(actual.data(), data.data(), data.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double expected = golden.expected[i];
    const double error = std::abs(actual[i] - expected);
    if (error <= kTolerance * std::max(1.0, std::abs(expected))) continue;
    return absl::InternalError(absl::StrCat(op.descriptor->name, ": golden case: element ", i,
                                            " is ", actual[i], ", must be ", expected));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGoldenValue(const LoadedOperator& op, LaneContext& lane) {
  absl::Status status = RunGoldenCase(op, lane);
  op.support->Set(SaysUnsupported(status) ? std::string(status.message()) : "");
  return status;
}

absl::Status CheckGoldenValues(const OperatorTable& operators, LaneContext& lane) {
  absl::Status refusal;
  bool has_any = false;
  for (const LoadedOperator& op : operators.operators()) {
    if (!op.is_loaded()) continue;
    const absl::Status status = CheckGoldenValue(op, lane);
    if (!status.ok() && !SaysUnsupported(status)) return status;
    has_any |= status.ok();
    if (!status.ok()) refusal = status;
  }
  if (has_any || refusal.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("this product has none of the operators, the last said: ", refusal.message()));
}

}  // namespace opserve::server
