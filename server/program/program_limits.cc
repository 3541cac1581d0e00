#include "server/program/program_limits.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// A sum that wraps would pass the limits.
void AddUpTo64Bits(uint64_t amount, uint64_t* sum) {
  if (__builtin_add_overflow(*sum, amount, sum)) *sum = UINT64_MAX;
}

absl::Status NeverFitsHere(const catalog::OperatorDescriptor& descriptor, Reason reason,
                           absl::string_view problem, absl::string_view argument = "") {
  return AtPlace({.operator_name = descriptor.name, .argument = argument},
                 NeverFits(reason, absl::StrCat(descriptor.name, ": ", problem)));
}

absl::Status CheckRequestBytes(const ProgramLimits& limits, absl::string_view operator_name,
                               absl::string_view argument, uint64_t bytes) {
  if (bytes <= limits.max_program_bytes) return absl::OkStatus();
  return WithLimit(limits.max_program_bytes,
                   TooLarge(operator_name, argument,
                            absl::StrCat("brings the request to ", bytes, " bytes, at most ",
                                         limits.max_program_bytes, " allowed")));
}

// At most: gaps between the pieces are not counted.
uint64_t PlannedPayloadBytes(const Program& program) {
  return std::min(program.payload_bytes + program.literals.size(), program.memory_plan.total_bytes);
}

OutputRef LargestOutput(const Program& program) {
  OutputRef largest;
  // Below 0, so that an output without elements can be the largest one.
  int64_t most = -1;
  for (uint32_t i = 0; i < program.invocations.size(); ++i) {
    const auto& outputs = program.invocations[i].outputs;
    for (uint32_t k = 0; k < outputs.size(); ++k) {
      const int64_t bytes = NumBytes(outputs[k].spec);
      if (bytes <= most) continue;
      most = bytes;
      largest = {i, k};
    }
  }
  return largest;
}

}  // namespace

absl::Status TooLarge(absl::string_view operator_name, absl::string_view argument,
                      absl::string_view problem) {
  return CallError(Reason::kTooLarge, {.operator_name = operator_name, .argument = argument},
                   problem);
}

absl::Status CheckTensorBytes(const ProgramLimits& limits, absl::string_view operator_name,
                              absl::string_view argument, uint64_t bytes) {
  if (bytes <= limits.max_tensor_bytes) return absl::OkStatus();
  return WithLimit(limits.max_tensor_bytes,
                   TooLarge(operator_name, argument,
                            absl::StrCat("takes ", bytes, " bytes, at most ",
                                         limits.max_tensor_bytes, " allowed")));
}

absl::Status CountInput(const ProgramLimits& limits, absl::string_view argument, uint64_t bytes,
                        Program* program) {
  OPSERVE_RETURN_IF_ERROR(CheckTensorBytes(limits, "", argument, bytes));
  AddUpTo64Bits(bytes, &program->input_bytes);
  return CheckRequestBytes(limits, "", argument, program->input_bytes);
}

absl::Status CountOutput(const ProgramLimits& limits, absl::string_view operator_name,
                         absl::string_view argument, uint64_t bytes, Program* program) {
  OPSERVE_RETURN_IF_ERROR(CheckTensorBytes(limits, operator_name, argument, bytes));
  AddUpTo64Bits(bytes, &program->output_bytes);
  return absl::OkStatus();
}

absl::Status CountWork(const ProgramLimits& limits, const catalog::OperatorDescriptor& descriptor,
                       const BoundInvocation& invocation, Program* program) {
  AddUpTo64Bits(invocation.charge, &program->work);
  const auto refuse = [&](absl::string_view total, uint64_t most, absl::string_view in) {
    std::string work = absl::StrCat(invocation.charge, " elements");
    if (invocation.charge != invocation.work) {
      work = absl::StrCat(invocation.work, " steps of a product, as much as ", work);
    }
    return NeverFitsHere(
        descriptor, Reason::kWorkLimit,
        absl::StrCat("computes ", work, ", ", total, "at most ", most, " allowed in one ", in));
  };
  if (invocation.charge > limits.max_work) return refuse("", limits.max_work, "invocation");
  if (program->work > limits.max_program_work) {
    return refuse(absl::StrCat("which brings the request to ", program->work, ", "),
                  limits.max_program_work, "request");
  }
  return absl::OkStatus();
}

absl::Status CheckMemory(const ProgramLimits& limits, const Program& program) {
  // Outputs share memory in the plan once their readers have run, but each piece is rounded up
  // there. The smaller figure counts, so rounding alone refuses no request.
  const uint64_t outputs =
      std::min(program.output_bytes,
               program.memory_plan.total_bytes - PlannedPayloadBytes(program) + program.kept_bytes);
  // The largest output is named.
  const OutputRef largest = LargestOutput(program);
  const BoundInvocation& invocation = program.invocations[largest.invocation];
  const catalog::OperatorDescriptor& descriptor = *invocation.op->descriptor;
  const std::string name = invocation.outputs.empty() ? "" : invocation.OutputName(largest.output);
  uint64_t all_bytes = program.input_bytes;
  AddUpTo64Bits(outputs, &all_bytes);
  absl::Status status = CheckRequestBytes(limits, descriptor.name, name, all_bytes);
  // Tensors that stay on the device are charged to the tenant before the run: they are no gain of a
  // small request, and others may be made on the way to them. Those that travel take host memory.
  const uint64_t passing = outputs - std::min(outputs, program.kept_bytes);
  uint64_t charged_bytes = program.input_bytes;
  AddUpTo64Bits(program.kept_bytes, &charged_bytes);
  uint64_t excess = 0;
  if (!IsInProportion(passing, charged_bytes, limits.max_output_ratio)) excess = passing;
  if (!IsInProportion(program.result_bytes, program.input_bytes, limits.max_output_ratio)) {
    excess = program.result_bytes;
  }
  if (status.ok() && excess > 0) {
    status = NeverFitsHere(
        descriptor, Reason::kAmplification,
        absl::StrCat(name, ": outputs of ", excess, " bytes from inputs of ", program.input_bytes,
                     ", more than ", limits.max_output_ratio, " times as much (max_output_ratio)"),
        name);
  }
  return AtPlace({.invocation = largest.invocation}, std::move(status));
}

}  // namespace opserve::server
