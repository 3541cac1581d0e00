#include "kernels/cpu/map.h"

#include <algorithm>

#include "kernels/cpu/slots.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/tile.h"

namespace opserve::kernels {
namespace {

template <typename T>
class MapKernel final : public Kernel {
 public:
  MapKernel(const Call& call, const MapPlan& plan, MapLoop<T> loop,
            std::span<const Layout> operands)
      : loop_(loop), arguments_(plan.inputs) {
    bool converts = false;
    for (const Layout& layout : operands) converts |= layout.dtype != kDtypeOf<T>;
    matrix_ = MakeElementwiseMatrix(operands, plan.inputs.size(), converts);
    column_tasks_ = CeilDivide(matrix_.num_column_tiles(), matrix_.task_column_tiles);
    num_tasks_ = CeilDivide(matrix_.num_row_tiles(), matrix_.task_row_tiles) * column_tasks_;
    for (int i = 0; i < kMaxParameters; ++i) {
      if constexpr (std::is_integral_v<T>) {
        parameters_[i] = static_cast<T>(plan.parameters.ints[i]);
      } else {
        parameters_[i] = static_cast<T>(plan.parameters.reals[i]);
      }
    }
    for (size_t argument : plan.inputs) sources_.push_back(FirstAddress(call.inputs, argument));
    for (size_t argument : plan.scalars) {
      arguments_.push_back(argument);
      scalars_.push_back({Input(call, argument).dtype, FirstAddress(call.inputs, argument)});
    }
    num_parameters_ = plan.parameters.count;
    for (size_t argument : plan.outputs) {
      destinations_.push_back(FirstAddress(call.outputs, argument));
    }
  }

  size_t workspace_bytes() const override { return 0; }
  int64_t num_elements() const override { return matrix_.num_elements(); }
  bool ReadsInput(size_t argument) const override {
    return std::find(arguments_.begin(), arguments_.end(), argument) != arguments_.end();
  }

  void Run(const void* const* inputs, void* const* outputs, void* /*workspace*/,
           TaskRunner& runner) const override {
    std::array<T, kMaxParameters> parameters = parameters_;
    for (size_t i = 0; i < scalars_.size(); ++i) {
      VisitDtype(scalars_[i].dtype, [&](auto element) {
        const auto* value = static_cast<const decltype(element)*>(inputs[scalars_[i].address]);
        parameters[num_parameters_ + i] = Converted<T>(*value);
      });
    }
    RunTasks(runner, num_tasks_,
             [&](int64_t task) { RunTask(task, parameters.data(), inputs, outputs); });
  }

 private:
  struct ScalarSource {
    Dtype dtype;
    size_t address;
  };

  void RunTask(int64_t task, const T* parameters, const void* const* inputs,
               void* const* outputs) const {
    const size_t num_inputs = sources_.size();
    const size_t num_outputs = destinations_.size();
    Slots<TileReader<T>, kMaxMapInputs> readers;
    Slots<TileWriter<T>, kMaxMapOutputs> writers;
    for (size_t i = 0; i < num_inputs; ++i) {
      readers.Add(matrix_.operands[i], inputs[sources_[i]]);
    }
    for (size_t i = 0; i < num_outputs; ++i) {
      writers.Add(matrix_.operands[num_inputs + i], /*num_elements=*/0, outputs[destinations_[i]]);
    }
    const int64_t row_begin = task / column_tasks_ * matrix_.task_row_tiles;
    const int64_t row_end = std::min(row_begin + matrix_.task_row_tiles, matrix_.num_row_tiles());
    const int64_t column_begin = task % column_tasks_ * matrix_.task_column_tiles;
    const int64_t column_end =
        std::min(column_begin + matrix_.task_column_tiles, matrix_.num_column_tiles());
    for (int64_t row = row_begin; row < row_end; ++row) {
      for (int64_t column = column_begin; column < column_end; ++column) {
        const Tile tile = matrix_.TileAt(row, column);
        const T* values[kMaxMapInputs] = {};
        T* results[kMaxMapOutputs] = {};
        for (size_t i = 0; i < num_inputs; ++i) values[i] = readers[i].Read(tile);
        for (size_t i = 0; i < num_outputs; ++i) results[i] = writers[i].Place(tile);
        loop_(values, parameters, tile.num_elements(), results);
        for (size_t i = 0; i < num_outputs; ++i) writers[i].Store(tile);
      }
    }
  }

  const MapLoop<T> loop_;
  std::vector<size_t> arguments_;
  std::vector<ScalarSource> scalars_;
  int num_parameters_ = 0;  // before those that are read
  Matrix matrix_;
  int64_t column_tasks_;
  int64_t num_tasks_;
  std::array<T, kMaxParameters> parameters_;
  std::vector<size_t> sources_;       // addresses among the inputs
  std::vector<size_t> destinations_;  // and the outputs
};

}  // namespace

void Parameters::Add(double value) {
  reals[count] = value;
  ints[count] = Truncated<int64_t>(value);
  ++count;
}

void Parameters::Add(const Scalar& value) {
  reals[count] = value.real;
  ints[count] = value.integer;
  has_floating |= IsFloating(value.dtype);
  ++count;
}

Parameters AttributeParameters(const Call& call, double absent) {
  Parameters parameters;
  for (size_t i = 0; i < call.attributes.size() && i < kMaxParameters; ++i) {
    const Attribute& attribute = call.attributes[i];
    if (const auto* scalar = std::get_if<Scalar>(&attribute)) {
      parameters.Add(*scalar);
    } else if (const auto* integer = std::get_if<int64_t>(&attribute)) {
      parameters.Add(Scalar{Dtype::kInt64, static_cast<double>(*integer), *integer});
    } else {
      parameters.Add(RealAttribute(call, i, absent));
    }
  }
  return parameters;
}

ComputeIn ChooseCompute(Arithmetic arithmetic, std::span<const Layout> inputs,
                        std::span<const Layout> outputs, const Parameters& parameters) {
  if (inputs.empty()) inputs = outputs;
  bool has_double = false;
  bool has_floating = false;
  bool has_wide = false;
  for (const Layout& layout : inputs) {
    has_double |= layout.dtype == Dtype::kDouble;
    has_floating |= IsFloating(layout.dtype);
    has_wide |= layout.dtype != Dtype::kFloat16 && layout.dtype != Dtype::kBfloat16;
  }
  if (has_double || (arithmetic == Arithmetic::kPrecise && has_wide)) return ComputeIn::kDouble;
  if (has_floating || arithmetic == Arithmetic::kFloating || arithmetic == Arithmetic::kPrecise) {
    return ComputeIn::kFloat;
  }
  bool writes_floating = false;
  for (const Layout& layout : outputs) writes_floating |= IsFloating(layout.dtype);
  const bool computes_floating =
      parameters.has_floating && (arithmetic == Arithmetic::kCompared || writes_floating);
  return computes_floating ? ComputeIn::kFloat : ComputeIn::kInt;
}

size_t FirstAddress(const std::vector<Tensors>& arguments, size_t argument) {
  size_t position = 0;
  for (size_t i = 0; i < argument; ++i) position += arguments[i].size();
  return position;
}

std::unique_ptr<Kernel> MakeMapKernel(const Call& call, const MapPlan& plan) {
  std::vector<Layout> operands;
  for (size_t argument : plan.inputs) operands.push_back(Input(call, argument));
  for (size_t argument : plan.outputs) operands.push_back(Output(call, argument));
  const std::span<const Layout> all = operands;
  Parameters parameters = plan.parameters;
  for (size_t argument : plan.scalars) {
    parameters.has_floating |= IsFloating(Input(call, argument).dtype);
  }
  switch (ChooseCompute(plan.arithmetic, all.first(plan.inputs.size()),
                        all.subspan(plan.inputs.size()), parameters)) {
    case ComputeIn::kFloat:
      return std::make_unique<MapKernel<float>>(call, plan, plan.loops.in_float, all);
    case ComputeIn::kDouble:
      return std::make_unique<MapKernel<double>>(call, plan, plan.loops.in_double, all);
    case ComputeIn::kInt:
      if (plan.loops.in_int32 != nullptr &&
          std::all_of(all.begin(), all.end(),
                      [](const Layout& layout) { return layout.dtype == Dtype::kInt32; })) {
        return std::make_unique<MapKernel<int32_t>>(call, plan, plan.loops.in_int32, all);
      }
      return std::make_unique<MapKernel<int64_t>>(call, plan, plan.loops.in_int, all);
  }
  return nullptr;
}

}  // namespace opserve::kernels
