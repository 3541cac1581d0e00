#include "tests/unit/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace opserve::kernels {
namespace {

// Offset of the element of `layout` that is broadcast to position `index` (row-major) of `shape`.
int64_t BroadcastOffset(const Layout& layout, const Shape& shape, int64_t index) {
  int64_t offset = 0;
  int64_t stride = 1;
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    const int own = d - static_cast<int>(shape.size()) + layout.rank;
    if (own >= 0) {
      if (layout.shape[own] != 1) offset += index % shape[d] * stride;
      stride *= layout.shape[own];
    }
    index /= shape[d];
  }
  return offset;
}

Shape BroadcastShape(const std::vector<TestTensor>& inputs) {
  Shape shape;
  for (const TestTensor& input : inputs) {
    const Layout& layout = input.layout();
    if (static_cast<int>(shape.size()) < layout.rank) {
      shape.insert(shape.begin(), layout.rank - shape.size(), 1);
    }
    for (int d = 0; d < layout.rank; ++d) {
      int64_t& extent = shape[shape.size() - layout.rank + d];
      if (layout.shape[d] != 1) extent = layout.shape[d];
    }
  }
  return shape;
}

struct Term {
  double value;
  double magnitude;
};

Term ElementTerm(Operator op, double grad, double self, double target) {
  switch (op) {
    case Operator::kKlDiv:
      return {-target * grad, std::abs(target * grad)};
    case Operator::kKlDivLog:
      return {-std::exp(target) * grad, std::abs(std::exp(target) * grad)};
    case Operator::kKlDivTarget:
      if (target == 0) return {0, 0};
      return {grad * (std::log(target) - self + 1),
              std::abs(grad) * (std::abs(std::log(target)) + std::abs(self) + 1)};
    case Operator::kKlDivTargetLog:
      return {grad * std::exp(target) * (target - self + 1),
              std::abs(grad) * std::exp(target) * (std::abs(target) + std::abs(self) + 1)};
    case Operator::kL1Loss: {
      const double sign = self > target ? 1 : self < target ? -1 : 0;
      return {sign * grad, std::abs(grad)};
    }
    case Operator::kMseLoss:
      return {2 * (self - target) * grad, 2 * (std::abs(self) + std::abs(target)) * std::abs(grad)};
    case Operator::kLogSoftmax:
      break;
  }
  return {NAN, NAN};
}

std::vector<Expected> SummedTerms(const TestCall& call) {
  std::vector<Expected> expected(NumElements(call.out.layout()));
  const Shape shape = BroadcastShape(call.inputs);
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  int64_t divisor = 1;
  if (call.reduction == kMean) divisor = count;
  if (call.reduction == kBatchMean && !shape.empty()) divisor = shape[0];
  for (int64_t i = 0; i < count; ++i) {
    double values[3];
    for (int k = 0; k < 3; ++k) {
      const TestTensor& input = call.inputs[k];
      values[k] = input.Get(BroadcastOffset(input.layout(), shape, i));
    }
    const Term term =
        ElementTerm(call.op, values[0] / static_cast<double>(divisor), values[1], values[2]);
    Expected& sum = expected[BroadcastOffset(call.out.layout(), shape, i)];
    sum.value += term.value;
    sum.magnitude += term.magnitude;
    ++sum.num_terms;
  }
  return expected;
}

std::vector<Expected> LogSoftmax(const TestCall& call) {
  const TestTensor& grad_output = call.inputs[0];
  const TestTensor& output = call.inputs[1];
  const Layout& layout = grad_output.layout();
  int64_t inner = 1;
  for (int d = call.dim + 1; d < layout.rank; ++d) inner *= layout.shape[d];
  const int64_t extent = layout.rank == 0 ? 1 : layout.shape[call.dim];
  std::vector<Expected> expected(NumElements(layout));
  for (int64_t i = 0; i < static_cast<int64_t>(expected.size()); ++i) {
    if (i / inner % extent != 0) continue;  // not the first of its row
    double sum = 0;
    double magnitude = 0;
    for (int64_t k = 0; k < extent; ++k) {
      sum += grad_output.Get(i + k * inner);
      magnitude += std::abs(grad_output.Get(i + k * inner));
    }
    for (int64_t k = i; k < i + extent * inner; k += inner) {
      const double grad = grad_output.Get(k);
      const double probability = std::exp(output.Get(k));
      expected[k] = {grad - probability * sum, std::abs(grad) + probability * magnitude, extent};
    }
  }
  return expected;
}

// Half the distance between neighbours next to 1, the largest finite value, the least subnormal.
struct Precision {
  double unit_roundoff;
  double largest;
  double least;
};

Precision PrecisionOf(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat:
      return {0x1p-24, std::numeric_limits<float>::max(), 0x1p-149};
    case Dtype::kFloat16:
      return {0x1p-11, 65504, 0x1p-24};
    case Dtype::kBfloat16:
      return {0x1p-8, 0x1.fep127, 0x1p-133};
    case Dtype::kDouble:
      return {0x1p-53, std::numeric_limits<double>::max(), 0x1p-1074};
    default:
      break;  // integers, which no operator here has
  }
  return {};
}

std::string_view FunctionOf(Operator op) {
  switch (op) {
    case Operator::kKlDiv:
    case Operator::kKlDivLog:
      return "aclnnKlDivBackward";
    case Operator::kKlDivTarget:
    case Operator::kKlDivTargetLog:
      return "aclnnKlDivTargetBackward";
    case Operator::kL1Loss:
      return "aclnnL1LossBackward";
    case Operator::kLogSoftmax:
      return "aclnnLogSoftmaxBackward";
    case Operator::kMseLoss:
      return "aclnnMseLossBackward";
  }
  return "";
}

}  // namespace

bool IsKlDivergence(Operator op) {
  return op == Operator::kKlDiv || op == Operator::kKlDivLog || op == Operator::kKlDivTarget ||
         op == Operator::kKlDivTargetLog;
}

std::string Name(Operator op) {
  switch (op) {
    case Operator::kKlDiv:
      return "KlDiv";
    case Operator::kKlDivLog:
      return "KlDivLog";
    case Operator::kKlDivTarget:
      return "KlDivTarget";
    case Operator::kKlDivTargetLog:
      return "KlDivTargetLog";
    case Operator::kL1Loss:
      return "L1Loss";
    case Operator::kLogSoftmax:
      return "LogSoftmax";
    case Operator::kMseLoss:
      return "MseLoss";
  }
  return "";
}

std::unique_ptr<Kernel> MakeKernel(const TestCall& call) {
  Call planned;
  for (const TestTensor& input : call.inputs) planned.inputs.push_back({input.layout()});
  planned.outputs.push_back({call.out.layout()});
  planned.attributes = {call.op == Operator::kLogSoftmax ? call.dim : call.reduction};
  if (IsKlDivergence(call.op)) {
    planned.attributes.emplace_back(call.op == Operator::kKlDivLog ||
                                    call.op == Operator::kKlDivTargetLog);
  }
  return MakeKernel(FunctionOf(call.op), planned);
}

void RunCall(const TestCall& call, TaskRunner& runner) {
  const std::unique_ptr<Kernel> kernel = MakeKernel(call);
  if (kernel == nullptr) return;
  std::vector<const void*> inputs;
  for (const TestTensor& input : call.inputs) inputs.push_back(input.address());
  void* const outputs[] = {call.out.address()};
  std::unique_ptr<void, decltype(&std::free)> workspace(nullptr, &std::free);
  if (kernel->workspace_bytes() > 0) {
    workspace.reset(std::aligned_alloc(64, (kernel->workspace_bytes() + 63) / 64 * 64));
  }
  kernel->Run(inputs.data(), outputs, workspace.get(), runner);
}

std::vector<Expected> Reference(const TestCall& call) {
  return call.op == Operator::kLogSoftmax ? LogSoftmax(call) : SummedTerms(call);
}

bool Agrees(double value, const Expected& expected, Dtype dtype, bool computes_in_double) {
  if (std::isnan(value) || std::isnan(expected.value)) {
    return std::isnan(value) == std::isnan(expected.value);
  }
  const Precision precision = PrecisionOf(dtype);
  const double unit = computes_in_double ? 0x1p-53 : 0x1p-24;
  const double error =
      precision.unit_roundoff * std::abs(expected.value) + precision.least +
      unit * (16 + 2 * std::sqrt(static_cast<double>(expected.num_terms))) * expected.magnitude;
  if (std::isinf(value)) {
    return std::signbit(value) == std::signbit(expected.value) &&
           std::abs(expected.value) + error >= precision.largest;
  }
  return std::abs(value - expected.value) <= error;
}

}  // namespace opserve::kernels
