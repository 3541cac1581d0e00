// Steps of optimizers, in place.
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cpu/formula.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/sequence.h"

namespace opserve::kernels {
namespace {

using enum Arithmetic;

// What Adam's formulas have as parameters, in this order. The first ones are known when a call is
// planned, the others are read when it runs.
enum AdamParameter {
  kBeta1,
  kOneMinusBeta1,
  kBeta2,
  kOneMinusBeta2,
  kDecay,  // what the weights are multiplied by
  kEpsilon,
  kSign,            // of the gradient
  kStepSize,        // lr / (1 - beta1^t)
  kRootCorrection,  // sqrt(1 - beta2^t)
  kGradScale,       // or 1
  kFoundInf         // or 0; the step is left out where it is 1
};

// From the number t of the step: the step's size and the correction. Parameters: lr, beta1, beta2
// and what t is more than the argument.
constexpr auto kBiasCorrections = []<typename T>(T step, const T* p) -> std::array<T, 2> {
  const T t = step + p[3];
  return {p[0] / (1 - std::pow(p[1], t)), std::sqrt(1 - std::pow(p[2], t))};
};

constexpr auto kConstant = []<typename T>(const T* p) { return p[0]; };

template <bool kHasGreatest, typename T>
std::array<T, kHasGreatest ? 4 : 3> AdamStep(T weight, T first, T second, T greatest, T gradient,
                                             const T* p) {
  const T scaled = p[kSign] * gradient / p[kGradScale];
  const T new_first = p[kBeta1] * first + p[kOneMinusBeta1] * scaled;
  const T new_second = p[kBeta2] * second + p[kOneMinusBeta2] * scaled * scaled;
  const T new_greatest = Greater(greatest, new_second);
  const T denominator =
      std::sqrt(kHasGreatest ? new_greatest : new_second) / p[kRootCorrection] + p[kEpsilon];
  const T new_weight = weight * p[kDecay] - p[kStepSize] * new_first / denominator;
  const bool is_left_out = p[kFoundInf] == 1;
  if constexpr (kHasGreatest) {
    return {is_left_out ? weight : new_weight, is_left_out ? first : new_first,
            is_left_out ? second : new_second, is_left_out ? greatest : new_greatest};
  } else {
    return {is_left_out ? weight : new_weight, is_left_out ? first : new_first,
            is_left_out ? second : new_second};
  }
}

constexpr auto kAdamW = []<typename T>(T weight, T first, T second, T gradient, const T* p) {
  return AdamStep<false>(weight, first, second, T{0}, gradient, p);
};
constexpr auto kAmsgrad = []<typename T>(T weight, T first, T second, T greatest, T gradient,
                                         const T* p) {
  return AdamStep<true>(weight, first, second, greatest, gradient, p);
};

struct AdamAttributes {
  double lr;
  double beta1;
  double beta2;
  double weight_decay;
  double epsilon;
  bool amsgrad;
  bool maximize;
};

AdamAttributes ReadAdamAttributes(const Call& call) {
  return {RealAttribute(call, 0), RealAttribute(call, 1), RealAttribute(call, 2),
          RealAttribute(call, 3), RealAttribute(call, 4), BoolAttribute(call, 5),
          BoolAttribute(call, 6)};
}

Layout OneElement(Dtype dtype) {
  Layout layout;
  layout.dtype = dtype;
  return layout;
}

// One of the arguments that are updated: element i of a list, or a tensor.
struct AdamTensors {
  Layout weight;
  Layout first;
  Layout second;
  Layout greatest;
  Layout gradient;
  Layout step;
  std::vector<Place> inputs;   // weight, first, second, greatest with amsgrad, gradient
  std::vector<Place> outputs;  // the same without the gradient
  Place step_place;
};

// Adds the steps that update one weight tensor. `step_offset`: what is added to the step's number.
void AddAdam(const Call& call, const AdamAttributes& attributes, AdamTensors tensors,
             double step_offset, int grad_scale, int found_inf, Sequence& sequence) {
  const Layout one = OneElement(Dtype::kDouble);
  const Place step_size = sequence.Scratch(one);
  const Place root_correction = sequence.Scratch(one);
  tensors.step.rank = 0;
  MapPlan corrections{
      LoopsOf<decltype(kBiasCorrections), 1, false, 2>(), kPrecise, {}, {0}, {0, 1}};
  for (double value : {attributes.lr, attributes.beta1, attributes.beta2, step_offset}) {
    corrections.parameters.Add(value);
  }
  sequence.Add(MakeMapKernel({{{tensors.step}}, {{one}, {one}}, {}}, corrections),
               {tensors.step_place}, {step_size, root_correction});

  MapPlan update{LoopsOf<decltype(kAdamW), 4, false, 3>(), kFloating, {}, {0, 1, 2, 3}, {0, 1, 2}};
  Call step{{{tensors.weight}, {tensors.first}, {tensors.second}},
            {{tensors.weight}, {tensors.first}, {tensors.second}},
            {}};
  if (attributes.amsgrad) {
    update.loops = LoopsOf<decltype(kAmsgrad), 5, false, 4>();
    update.inputs.push_back(4);
    update.outputs.push_back(3);
    step.inputs.push_back({tensors.greatest});
    step.outputs.push_back({tensors.greatest});
  }
  step.inputs.push_back({tensors.gradient});
  for (double value : {attributes.beta1, 1 - attributes.beta1, attributes.beta2,
                       1 - attributes.beta2, 1 - attributes.lr * attributes.weight_decay,
                       attributes.epsilon, attributes.maximize ? -1.0 : 1.0}) {
    update.parameters.Add(value);
  }
  const auto add_scalar = [&](const Layout& layout, const Place& place) {
    update.scalars.push_back(step.inputs.size());
    step.inputs.push_back({layout});
    tensors.inputs.push_back(place);
  };
  add_scalar(one, step_size);
  add_scalar(one, root_correction);
  const auto add_optional = [&](int argument, double absent) {
    const auto index = static_cast<size_t>(argument);
    if (argument >= 0 && HasInput(call, index)) {
      return add_scalar(Input(call, index), sequence.Input(index));
    }
    const Place place = sequence.Scratch(one);
    MapPlan constant{LoopsOf<decltype(kConstant), 0, false>(), kPrecise, {}, {}, {0}};
    constant.parameters.Add(absent);
    sequence.Add(MakeMapKernel({{}, {{one}}, {}}, constant), {}, {place});
    add_scalar(one, place);
  };
  add_optional(grad_scale, 1);
  add_optional(found_inf, 0);
  sequence.Add(MakeMapKernel(step, update), std::move(tensors.inputs), std::move(tensors.outputs));
}

// Arguments: var, m, v, the greatest v and grad, step. The vendor's kernel counts one step more.
std::unique_ptr<Kernel> MakeApplyAdamW(const Call& call) {
  const AdamAttributes attributes = ReadAdamAttributes(call);
  Sequence sequence(call);
  AdamTensors tensors{
      Input(call, 0),   Input(call, 1), Input(call, 2), {}, Input(call, 4), Input(call, 5), {}, {},
      sequence.Input(5)};
  for (size_t i = 0; i < 3; ++i) {
    tensors.inputs.push_back(sequence.Input(i));
    tensors.outputs.push_back(sequence.Output(i));
  }
  if (attributes.amsgrad) {
    tensors.greatest = Input(call, 3);
    tensors.inputs.push_back(sequence.Input(3));
    tensors.outputs.push_back(sequence.Output(3));
  }
  tensors.inputs.push_back(sequence.Input(4));
  AddAdam(call, attributes, std::move(tensors), /*step_offset=*/1, -1, -1, sequence);
  return sequence.Finish();
}

// Lists: params, grads, expAvgs, expAvgSqs, maxExpAvgSqs, stateSteps; then gradScale and foundInf.
std::unique_ptr<Kernel> MakeFusedAdamW(const Call& call) {
  const AdamAttributes attributes = ReadAdamAttributes(call);
  Sequence sequence(call);
  for (size_t i = 0; i < call.inputs[0].size(); ++i) {
    if (NumElements(call.inputs[0][i]) == 0) continue;
    AdamTensors tensors{call.inputs[0][i],
                        call.inputs[2][i],
                        call.inputs[3][i],
                        {},
                        call.inputs[1][i],
                        call.inputs[5][i],
                        {},
                        {},
                        sequence.Input(5, i)};
    tensors.inputs = {sequence.Input(0, i), sequence.Input(2, i), sequence.Input(3, i)};
    for (size_t argument = 0; argument < 3; ++argument) {
      tensors.outputs.push_back(sequence.Output(argument, i));
    }
    if (attributes.amsgrad) {
      tensors.greatest = call.inputs[4][i];
      tensors.inputs.push_back(sequence.Input(4, i));
      tensors.outputs.push_back(sequence.Output(3, i));
    }
    tensors.inputs.push_back(sequence.Input(1, i));
    AddAdam(call, attributes, std::move(tensors), /*step_offset=*/0, 6, 7, sequence);
  }
  return sequence.Finish();
}

// Parameters: lr, emaDecay, beta1, beta2, eps, mode, biasCorrection, weightDecay, then the step,
// and the two corrections of bias. Mode 0 adds the decay to the gradient, mode 1 to the update.
struct EmaAdam {
  template <typename T>
  static void Prepare(T* p) {
    p[9] = p[6] != 0 ? 1 - std::pow(p[2], p[8]) : T{1};
    p[10] = p[6] != 0 ? 1 - std::pow(p[3], p[8]) : T{1};
  }

  template <typename T>
  std::array<T, 4> operator()(T gradient, T weight, T first, T second, T average,
                              const T* p) const {
    const T decay = p[7] * weight;
    const T decayed = p[5] == 0 ? gradient + decay : gradient;
    const T new_first = p[2] * first + (1 - p[2]) * decayed;
    const T new_second = p[3] * second + (1 - p[3]) * decayed * decayed;
    const T update = new_first / p[9] / (std::sqrt(new_second / p[10]) + p[4]);
    const T new_weight = weight - p[0] * (p[5] == 0 ? update : update + decay);
    return {new_weight, new_first, new_second, p[1] * average + (1 - p[1]) * new_weight};
  }
};

std::unique_ptr<Kernel> MakeEmaAdam(const Call& call) {
  MapPlan plan = PlanOf<EmaAdam, 5, kFloating, 4>(call);
  plan.scalars = {5};
  return MakeMapKernel(call, plan);
}

// Parameters: weightDecay, momentum, lr, dampening, nesterov, maximize, isFirstStep, then the
// scale of the gradients.
constexpr auto kSgd = []<typename T>(T weight, T gradient, T buffer,
                                     const T* p) -> std::array<T, 3> {
  const T unscaled = gradient / p[7];
  const T decayed = (p[5] != 0 ? -unscaled : unscaled) + p[0] * weight;
  const T moved = p[6] != 0 ? decayed : p[1] * buffer + (1 - p[3]) * decayed;
  const T new_buffer = p[1] != 0 ? moved : buffer;
  const T with_momentum = p[4] != 0 ? decayed + p[1] * new_buffer : new_buffer;
  return {weight - p[2] * (p[1] != 0 ? with_momentum : decayed), unscaled, new_buffer};
};

std::unique_ptr<Kernel> MakeFusedSgd(const Call& call) {
  Sequence sequence(call);
  for (size_t i = 0; i < call.inputs[0].size(); ++i) {
    if (NumElements(call.inputs[0][i]) == 0) continue;
    Call one{{}, {}, call.attributes};
    std::vector<Place> inputs;
    std::vector<Place> outputs;
    for (size_t argument = 0; argument < 3; ++argument) {
      one.inputs.push_back({call.inputs[argument][i]});
      one.outputs.push_back({call.outputs[argument][i]});
      inputs.push_back(sequence.Input(argument, i));
      outputs.push_back(sequence.Output(argument, i));
    }
    MapPlan plan = PlanOf<decltype(kSgd), 3, kFloating, 3>(one);
    if (HasInput(call, 3)) {
      plan.scalars = {3};
      one.inputs.push_back(call.inputs[3]);
      inputs.push_back(sequence.Input(3));
    } else {
      plan.parameters.Add(1.0);
    }
    sequence.Add(MakeMapKernel(one, plan), std::move(inputs), std::move(outputs));
  }
  return sequence.Finish();
}

// Parameters: growthFactor, backoffFactor, growthInterval. The scale grows after so many steps
// without infinities, unless it would become infinite.
constexpr auto kAmpUpdate = []<typename T>(T scale, T tracker, T found_inf,
                                           const T* p) -> std::array<T, 2> {
  if (found_inf != 0) return {scale * p[1], T{0}};
  if (tracker + 1 != p[2]) return {scale, tracker + 1};
  const T grown = scale * p[0];
  return {std::fabs(grown) <= std::numeric_limits<T>::max() ? grown : scale, T{0}};
};

// Parameter: maxNorm.
constexpr auto kLimitNorm = []<typename T>(T x, T norm, const T* p) {
  return norm > p[0] ? x * (p[0] / (norm + static_cast<T>(1e-7))) : x;
};

// Attributes: p, dim, maxNorm. Slices across the axis are scaled down to that norm.
std::unique_ptr<Kernel> MakeRenorm(const Call& call) {
  const Layout& input = Input(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 1), input.rank);
  Sequence sequence(call);
  Layout norm = input;
  std::vector<int64_t> others;
  for (int d = 0; d < input.rank; ++d) {
    if (d == axis) continue;
    others.push_back(d);
    norm.shape[d] = 1;
  }
  norm = Contiguous(norm, ScratchDtype(input.dtype));
  const Place scratch = sequence.Scratch(norm);
  if (others.empty()) {
    sequence.Add(MakeKernel("aclnnAbs", {{{input}}, {{norm}}, {}}), {sequence.Input(0)}, {scratch});
  } else {
    sequence.Add(
        MakeKernel("aclnnNorm",
                   {{{input}}, {{norm}}, {call.attributes[0], Attribute(others), Attribute(true)}}),
        {sequence.Input(0)}, {scratch});
  }
  MapPlan limit{LoopsOf<decltype(kLimitNorm), 2, false>(), kFloating, {}, {0, 1}, {0}};
  limit.parameters.Add(RealAttribute(call, 2));
  sequence.Add(MakeMapKernel({{{input}, {norm}}, {call.outputs[0]}, {}}, limit),
               {sequence.Input(0), scratch}, {sequence.Output(0)});
  return sequence.Finish();
}

}  // namespace

std::span<const KernelEntry> OptimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnApplyAdamWV2", &MakeApplyAdamW},
      {"aclnnFusedAdamw", &MakeFusedAdamW},
      {"aclnnApplyFusedEmaAdam", &MakeEmaAdam},
      {"aclnnFusedSgd", &MakeFusedSgd},
      {"aclnnAmpUpdateScale", Map<3, kFloating, 2>(kAmpUpdate)},
      {"aclnnRenorm", &MakeRenorm},
  };
  return kEntries;
}

}  // namespace opserve::kernels
