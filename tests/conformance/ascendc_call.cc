#include "tests/conformance/ascendc_call.h"

#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>

#include "kernels/ascendc/emulation/launch.h"
#include "kernels/ascendc/op_host/checks.h"
#include "kernels/ascendc/op_host/plan.h"
#include "tests/conformance/compare.h"

namespace opserve::conformance {
namespace {

int32_t DtypeNumber(const std::string& name) {
  static const std::map<std::string, int32_t> numbers = {
      {"FLOAT", 0},   {"FLOAT16", 1}, {"INT8", 2},       {"INT32", 3},       {"UINT8", 4},
      {"INT16", 6},   {"UINT16", 7},  {"UINT32", 8},     {"INT64", 9},       {"UINT64", 10},
      {"DOUBLE", 11}, {"BOOL", 12},   {"COMPLEX64", 16}, {"COMPLEX128", 17}, {"BF16", 27}};
  return numbers.at(name);
}

int32_t FormatNumber(const std::string& name) {
  static const std::map<std::string, int32_t> numbers = {
      {"NCHW", 0},      {"NHWC", 1},      {"ND", 2},     {"NC1HWC0", 3},
      {"FRACTAL_Z", 4}, {"HWCN", 16},     {"NDHWC", 27}, {"FRACTAL_NZ", 29},
      {"NCDHW", 30},    {"NDC1HWC0", 32}, {"NCL", 47}};
  return numbers.at(name);
}

std::optional<ascendc::Argument> ArgumentOf(const std::optional<Tensor>& tensor) {
  if (!tensor) return std::nullopt;
  return ascendc::Argument{DtypeNumber(tensor->dtype), FormatNumber(tensor->format), tensor->shape};
}

ascendc::emulation::GlobalRange RangeOf(const std::string& bytes, bool is_writable) {
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  return {begin, begin + bytes.size(), is_writable};
}

uint8_t* AddressOf(std::string& bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }

}  // namespace

int32_t AscendcStageOne(const Case& of) {
  std::vector<std::optional<ascendc::Argument>> arguments;
  for (const std::optional<Tensor>& input : of.inputs) arguments.push_back(ArgumentOf(input));
  arguments.push_back(ArgumentOf(of.output));
  const auto pointer = [&](size_t i) { return arguments.at(i) ? &*arguments[i] : nullptr; };
  const ascendc::Checked checked =
      ascendc::CheckCall({.has_workspace_size = !of.workspace_size_is_null,
                          .has_executor = !of.executor_is_null,
                          .grad_output = pointer(0),
                          .self = pointer(1),
                          .target = pointer(2),
                          .grad_target = pointer(3)});
  switch (checked.verdict) {
    case ascendc::Verdict::kCompute:
    case ascendc::Verdict::kNothingToDo:
      return 0;
    case ascendc::Verdict::kNullPointer:
      return 161001;
    case ascendc::Verdict::kInvalid:
      return 161002;
  }
  return -1;
}

std::string AscendcRun(const Case& value_case, const AscendcDevice& device) {
  // As l0op::Contiguous leaves them.
  std::vector<std::string> inputs;
  ascendc::Problem problem;
  for (size_t i = 0; i < 3; ++i) {
    const Tensor& input = *value_case.inputs.at(i);
    inputs.push_back(GatherView(input, input.storage));
    problem.shape[i] = input.shape;
    problem.element_bytes[i] = static_cast<int32_t>(ElementBytes(input.dtype));
  }
  problem.reduction = std::get<int64_t>(value_case.attributes.at("reduction"));
  problem.log_target = std::get<bool>(value_case.attributes.at("logTarget"));
  ascendc::Plan plan;
  std::string error;
  if (!ascendc::MakePlan(problem, {device.num_cores, device.unified_buffer_bytes}, &plan, &error)) {
    throw std::runtime_error(error);
  }

  std::string output(inputs[2].size(), kGuardByte);
  std::string tiling(sizeof plan.tiling, '\0');
  std::memcpy(tiling.data(), &plan.tiling, sizeof plan.tiling);
  const ascendc::emulation::KlDivTargetBackwardEntry entry = ascendc::emulation::EntryFor(
      DtypeNumber(value_case.inputs[0]->dtype), DtypeNumber(value_case.inputs[1]->dtype),
      DtypeNumber(value_case.inputs[2]->dtype));
  ascendc::emulation::Run({.num_cores = plan.num_cores,
                           .unified_buffer_bytes = device.unified_buffer_bytes,
                           .last_core_first = device.last_core_first,
                           .global = {RangeOf(inputs[0], false), RangeOf(inputs[1], false),
                                      RangeOf(inputs[2], false), RangeOf(output, true)}},
                          [&] {
                            entry(AddressOf(inputs[0]), AddressOf(inputs[1]), AddressOf(inputs[2]),
                                  AddressOf(output), nullptr, AddressOf(tiling));
                          });
  return output;
}

}  // namespace opserve::conformance
