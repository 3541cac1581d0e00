#include "server/run/golden_values.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ops/catalog/dtypes.h"
#include "proto/dtypes/element.h"
#include "proto/status/status_macros.h"
#include "server/device/acl/acl_status.h"
#include "server/observability/log.h"
#include "server/program/tensor_view.h"
#include "server/run/program_runner.h"

namespace opserve::server {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

}  // namespace

absl::StatusOr<ProgramCall> GoldenProgram(const LoadedOperator& op,
                                          const catalog::GoldenCase& golden) {
  BoundInvocation invocation;
  invocation.op = &op;
  invocation.attributes.assign(golden.attributes.begin(), golden.attributes.end());
  absl::InlinedVector<uint64_t, 3> payload_sizes;
  uint64_t payload_bytes = 0;
  for (const std::vector<catalog::GoldenCase::Tensor>& tensors : golden.inputs) {
    for (const catalog::GoldenCase::Tensor& tensor : tensors) {
      const TensorSpec spec{catalog::ToWire(tensor.spec.dtype), tensor.spec.shape};
      BoundInput& input = invocation.inputs.emplace_back();
      ViewWhole(spec, &input);
      input.source = PayloadSource{static_cast<uint32_t>(payload_sizes.size())};
      payload_sizes.push_back(static_cast<uint64_t>(NumBytes(spec)));
      payload_bytes += payload_sizes.back();
    }
    // Inputs of the case are those of the descriptor; one that is left out has no tensors.
    invocation.input_ends.push_back(static_cast<uint32_t>(invocation.inputs.size()));
  }
  absl::InlinedVector<bool, 4> wanted;
  absl::InlinedVector<std::optional<aclDataType>, 4> asked;
  for (size_t i = 0; i < golden.outputs.size(); ++i) {
    const catalog::OutputDescriptor& output = op.descriptor->outputs[i];
    const auto& tensors = golden.outputs[i];
    // A list that is wanted may be empty.
    wanted.push_back(!tensors.empty() || output.is_list);
    const bool asks = !tensors.empty() && !output.dtypes.empty();
    asked.push_back(asks ? std::optional(tensors.front().spec.dtype) : std::nullopt);
  }
  OPSERVE_RETURN_IF_ERROR(JudgeCall(wanted, asked, &invocation));
  // Made by hand, since limits for requests do not apply to the catalogue's own cases.
  Program program;
  program.work = invocation.charge;
  for (uint32_t i = 0; i < invocation.outputs.size(); ++i) {
    invocation.outputs[i].is_result = true;
    program.results.push_back({{0, i}});
    program.output_bytes += static_cast<uint64_t>(NumBytes(invocation.outputs[i].spec));
  }
  program.input_bytes = payload_bytes;
  program.invocations.push_back(std::move(invocation));
  program.ComputeFacts(payload_sizes);
  ProgramCall call;
  call.program = std::make_shared<const Program>(std::move(program));
  return call;
}

std::string GoldenBytes(const catalog::GoldenCase::Tensor& tensor) {
  std::string bytes;
  VisitElement(catalog::ToWire(tensor.spec.dtype), [&]<typename T>(std::type_identity<T>) {
    // Types of 16 bits convert from float only.
    using Number =
        std::conditional_t<std::is_same_v<T, double> || std::is_integral_v<T>, double, float>;
    for (const double value : tensor.values) {
      const T element = static_cast<T>(static_cast<Number>(value));
      bytes.append(reinterpret_cast<const char*>(&element), sizeof(element));
    }
  });
  return bytes;
}

namespace {

double ElementAt(Dtype dtype, const char* data, size_t index) {
  // Results have 0 and 1, so another byte is wrong.
  if (dtype == v1::DATA_TYPE_BOOL) return static_cast<unsigned char>(data[index]);
  return VisitElement(dtype, [&]<typename T>(std::type_identity<T>) {
    return static_cast<double>(LoadElement<T>(data, static_cast<int64_t>(index)));
  });
}

bool IsClose(double actual, double expected, double tolerance) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) == std::isnan(actual);
  if (actual == expected) return true;  // infinities, too
  // Relative above 1, absolute below.
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

// "": the result is the golden case's.
std::string Difference(const LoadedOperator& op, const catalog::GoldenCase& golden,
                       const Program& program, const ProgramResult& result) {
  size_t next = 0;
  for (const std::vector<catalog::GoldenCase::Tensor>& tensors : golden.outputs) {
    for (const catalog::GoldenCase::Tensor& expected : tensors) {
      if (next == result.outputs.size()) return "outputs are missing";
      // Results come in the order of the descriptor's outputs, tensors of a list one after the
      // other.
      const ProgramResult::Output& actual = result.outputs[next++];
      const TensorSpec& spec = program.output(actual.source).spec;
      const std::string name =
          program.invocations[actual.source.invocation].OutputName(actual.source.output);
      if (catalog::ToAcl(spec.dtype) != expected.spec.dtype || spec.shape != expected.spec.shape) {
        return absl::StrCat(name, " is ", DtypeName(spec.dtype), " ", ShapeText(spec.shape),
                            ", must be ", catalog::DtypeName(expected.spec.dtype), " ",
                            ShapeText(expected.spec.shape));
      }
      for (size_t i = 0; i < expected.values.size(); ++i) {
        const double value = ElementAt(spec.dtype, static_cast<const char*>(actual.data.data()), i);
        if (IsClose(value, expected.values[i], golden.tolerance)) continue;
        return absl::StrCat(op.descriptor->outputs.size() == 1 ? "" : name + ": ", "element ", i,
                            " is ", value, ", must be ", expected.values[i]);
      }
    }
  }
  if (next == result.outputs.size()) return "";
  return absl::StrCat("has ", result.outputs.size(), " outputs, not ", next);
}

absl::StatusOr<GoldenFinding> RunGoldenCase(const LoadedOperator& op,
                                            const catalog::GoldenCase& golden, LaneContext& lane) {
  OPSERVE_ASSIGN_OR_RETURN(const ProgramCall program, GoldenProgram(op, golden));
  std::vector<std::string> bytes;
  for (const auto& tensors : golden.inputs) {
    for (const catalog::GoldenCase::Tensor& tensor : tensors) bytes.push_back(GoldenBytes(tensor));
  }
  // The payloads point into `bytes`, which does not change any more.
  std::vector<codec::Payload> payloads;
  for (const std::string& payload : bytes) payloads.push_back({payload.size(), {payload}});
  const CallState call(absl::Now() + kTimeout);
  StageClock clock;
  const absl::StatusOr<ProgramResult> result =
      // The tenant counts for scrubbing alone.
      RunProgram(program, payloads, call, /*tenant=*/0, lane, clock);
  // The product lacks the operator, or the dtype of the case, which is no fault of the device.
  if (SaysUnsupported(result.status())) {
    return GoldenFinding{GoldenVerdict::kUnsupported, std::string(result.status().message())};
  }
  OPSERVE_RETURN_IF_ERROR(result.status());
  const std::string difference = Difference(op, golden, *program.program, *result);
  if (difference.empty()) return GoldenFinding{};
  return GoldenFinding{GoldenVerdict::kWrong, absl::StrCat("golden case: ", difference)};
}

void LogChange(const LoadedOperator& op, int32_t device, const GoldenFinding& finding) {
  const std::string name(op.descriptor->name);
  if (finding.verdict == GoldenVerdict::kWrong) {
    LogError("operator_wrong",
             {{"operator", name}, {"device", device}, {"error", finding.problem}});
  } else if (op.offer->IsWrongOn(device)) {
    LogInfo("operator_recovered", {{"operator", name}, {"device", device}});
  }
}

}  // namespace

absl::StatusOr<GoldenFinding> CheckGoldenValue(const LoadedOperator& op, LaneContext& lane) {
  GoldenFinding finding;
  for (const catalog::GoldenCase& golden : op.descriptor->golden) {
    OPSERVE_ASSIGN_OR_RETURN(finding, RunGoldenCase(op, golden, lane));
    // One wrong case is enough.
    if (!finding.is_right()) break;
  }
  const int32_t device = lane.lane.device().id();
  LogChange(op, device, finding);
  op.offer->Set(device, finding);
  return finding;
}

absl::Status CheckGoldenValues(const OperatorTable& operators, LaneContext& lane) {
  // A wrong operator does not end the loop, so that each has its finding. An error does: it says
  // something about the device.
  bool has_any = false;
  const LoadedOperator* failed = nullptr;
  GoldenFinding lack;  // the last one, or a wrong result
  for (const LoadedOperator& op : operators.operators()) {
    if (!op.is_loaded()) continue;
    OPSERVE_ASSIGN_OR_RETURN(GoldenFinding finding, CheckGoldenValue(op, lane));
    if (finding.is_right()) {
      has_any = true;
    } else if (lack.verdict != GoldenVerdict::kWrong) {
      failed = &op;
      lack = std::move(finding);
    }
  }
  // A single right operator proves the device.
  if (has_any || failed == nullptr) return absl::OkStatus();
  if (lack.verdict == GoldenVerdict::kWrong) {
    return absl::InternalError(
        absl::StrCat("computes no operator right; ", failed->descriptor->name, ": ", lack.problem));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("this product has none of the operators, the last said: ", lack.problem));
}

}  // namespace opserve::server
