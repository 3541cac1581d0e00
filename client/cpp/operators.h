// The operators as methods. Made by generate_operators.py from the catalogue: change that, not
// this.
//
// OPERATORS.md tells of each operator's formula, dtypes and attributes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/operator_calls.h"
#include "client/cpp/request.h"

namespace opserve {

// A method for each operator. Inputs are tensors of any kind, and outputs of earlier methods; those
// that may be left out, and attributes, are fields of the last argument. Attributes that are left
// out have the operator's defaults.
class Operators : public OperatorCalls {
 public:
  // Takes absolute values.
  OutputOf Abs(const ListedTensor& self) {
    Invocation call{.operator_name = "Abs"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct AcosOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the inverse cosine.
  OutputOf Acos(const ListedTensor& self, const AcosOptions& options) {
    Invocation call{.operator_name = "Acos"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Acos(const ListedTensor& self) { return Acos(self, AcosOptions()); }

  struct AcoshOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the inverse hyperbolic cosine.
  OutputOf Acosh(const ListedTensor& self, const AcoshOptions& options) {
    Invocation call{.operator_name = "Acosh"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Acosh(const ListedTensor& self) { return Acosh(self, AcoshOptions()); }

  struct AddOptions {
    std::optional<AttributeValue> alpha = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Adds two tensors.
  OutputOf Add(const ListedTensor& self, const ListedTensor& other, const AddOptions& options) {
    Invocation call{.operator_name = "Add"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("alpha", options.alpha, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Add(const ListedTensor& self, const ListedTensor& other) {
    return Add(self, other, AddOptions());
  }

  struct AddLayerNormOptions {
    std::optional<ListedTensor> bias = {};
    std::optional<double> epsilon = {};          // 1e-05
    std::optional<bool> additional_output = {};  // true
  };
  struct AddLayerNormOutputs {
    OutputOf y_out;
    OutputOf mean_out;
    OutputOf rstd_out;
    OutputOf x_out;
  };
  // Sum of two tensors, layer-normalised over the last axis.
  AddLayerNormOutputs AddLayerNorm(const ListedTensor& x1, const ListedTensor& x2,
                                   const ListedTensor& gamma, const ListedTensor& beta,
                                   const AddLayerNormOptions& options) {
    Invocation call{.operator_name = "AddLayerNorm"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("gamma", gamma, &call);
    AddInput("beta", beta, &call);
    AddInput("bias", options.bias, &call);
    AddAttribute("epsilon", options.epsilon, &call);
    AddAttribute("additional_output", options.additional_output, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "y_out"}, {number, "mean_out"}, {number, "rstd_out"}, {number, "x_out"}};
  }
  AddLayerNormOutputs AddLayerNorm(const ListedTensor& x1, const ListedTensor& x2,
                                   const ListedTensor& gamma, const ListedTensor& beta) {
    return AddLayerNorm(x1, x2, gamma, beta, AddLayerNormOptions());
  }

  struct AddLayerNormGradOptions {
    std::optional<ListedTensor> dsum = {};
  };
  struct AddLayerNormGradOutputs {
    OutputOf dx_out;
    OutputOf dgamma_out;
    OutputOf dbeta_out;
  };
  // Gradients of the layer-normalised sum of two tensors.
  AddLayerNormGradOutputs AddLayerNormGrad(const ListedTensor& dy, const ListedTensor& x1,
                                           const ListedTensor& x2, const ListedTensor& rstd,
                                           const ListedTensor& mean, const ListedTensor& gamma,
                                           const AddLayerNormGradOptions& options) {
    Invocation call{.operator_name = "AddLayerNormGrad"};
    AddInput("dy", dy, &call);
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("rstd", rstd, &call);
    AddInput("mean", mean, &call);
    AddInput("gamma", gamma, &call);
    AddInput("dsum", options.dsum, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "dx_out"}, {number, "dgamma_out"}, {number, "dbeta_out"}};
  }
  AddLayerNormGradOutputs AddLayerNormGrad(const ListedTensor& dy, const ListedTensor& x1,
                                           const ListedTensor& x2, const ListedTensor& rstd,
                                           const ListedTensor& mean, const ListedTensor& gamma) {
    return AddLayerNormGrad(dy, x1, x2, rstd, mean, gamma, AddLayerNormGradOptions());
  }

  struct AddRmsNormOptions {
    std::optional<double> epsilon = {};            // 1e-06
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct AddRmsNormOutputs {
    OutputOf y_out;
    OutputOf rstd_out;
    OutputOf x_out;
  };
  // Sum of two tensors, normalised by its root mean square.
  AddRmsNormOutputs AddRmsNorm(const ListedTensor& x1, const ListedTensor& x2,
                               const ListedTensor& gamma, const AddRmsNormOptions& options) {
    Invocation call{.operator_name = "AddRmsNorm"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("gamma", gamma, &call);
    AddAttribute("epsilon", options.epsilon, &call);
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "y_out"}, {number, "rstd_out"}, {number, "x_out"}};
  }
  AddRmsNormOutputs AddRmsNorm(const ListedTensor& x1, const ListedTensor& x2,
                               const ListedTensor& gamma) {
    return AddRmsNorm(x1, x2, gamma, AddRmsNormOptions());
  }

  struct AddbmmOptions {
    std::optional<AttributeValue> beta = {};   // 1
    std::optional<AttributeValue> alpha = {};  // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Adds the sum of products of a batch of matrices to a tensor.
  OutputOf Addbmm(const ListedTensor& self, const ListedTensor& batch1, const ListedTensor& batch2,
                  const AddbmmOptions& options) {
    Invocation call{.operator_name = "Addbmm"};
    AddInput("self", self, &call);
    AddInput("batch1", batch1, &call);
    AddInput("batch2", batch2, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Addbmm(const ListedTensor& self, const ListedTensor& batch1,
                  const ListedTensor& batch2) {
    return Addbmm(self, batch1, batch2, AddbmmOptions());
  }

  struct AddcdivOptions {
    std::optional<AttributeValue> value = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Adds a scaled quotient of two tensors to a tensor.
  OutputOf Addcdiv(const ListedTensor& self, const ListedTensor& tensor1,
                   const ListedTensor& tensor2, const AddcdivOptions& options) {
    Invocation call{.operator_name = "Addcdiv"};
    AddInput("self", self, &call);
    AddInput("tensor1", tensor1, &call);
    AddInput("tensor2", tensor2, &call);
    AddAttribute("value", options.value, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Addcdiv(const ListedTensor& self, const ListedTensor& tensor1,
                   const ListedTensor& tensor2) {
    return Addcdiv(self, tensor1, tensor2, AddcdivOptions());
  }

  struct AddcmulOptions {
    std::optional<AttributeValue> value = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Adds a scaled product of two tensors to a tensor.
  OutputOf Addcmul(const ListedTensor& self, const ListedTensor& tensor1,
                   const ListedTensor& tensor2, const AddcmulOptions& options) {
    Invocation call{.operator_name = "Addcmul"};
    AddInput("self", self, &call);
    AddInput("tensor1", tensor1, &call);
    AddInput("tensor2", tensor2, &call);
    AddAttribute("value", options.value, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Addcmul(const ListedTensor& self, const ListedTensor& tensor1,
                   const ListedTensor& tensor2) {
    return Addcmul(self, tensor1, tensor2, AddcmulOptions());
  }

  struct AddmmOptions {
    std::optional<AttributeValue> beta = {};   // 1
    std::optional<AttributeValue> alpha = {};  // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Adds a product of matrices to a tensor.
  OutputOf Addmm(const ListedTensor& self, const ListedTensor& mat1, const ListedTensor& mat2,
                 const AddmmOptions& options) {
    Invocation call{.operator_name = "Addmm"};
    AddInput("self", self, &call);
    AddInput("mat1", mat1, &call);
    AddInput("mat2", mat2, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Addmm(const ListedTensor& self, const ListedTensor& mat1, const ListedTensor& mat2) {
    return Addmm(self, mat1, mat2, AddmmOptions());
  }

  struct AddmvOptions {
    std::optional<AttributeValue> alpha = {};  // 1
    std::optional<AttributeValue> beta = {};   // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Adds the product of a matrix and a vector to a vector.
  OutputOf Addmv(const ListedTensor& self, const ListedTensor& mat, const ListedTensor& vec,
                 const AddmvOptions& options) {
    Invocation call{.operator_name = "Addmv"};
    AddInput("self", self, &call);
    AddInput("mat", mat, &call);
    AddInput("vec", vec, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Addmv(const ListedTensor& self, const ListedTensor& mat, const ListedTensor& vec) {
    return Addmv(self, mat, vec, AddmvOptions());
  }

  struct AddsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> alpha = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Adds a number to a tensor.
  OutputOf Adds(const ListedTensor& self, const AddsOptions& options) {
    Invocation call{.operator_name = "Adds"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("alpha", options.alpha, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Adds(const ListedTensor& self) { return Adds(self, AddsOptions()); }

  struct AllOptions {
    NumberList<int64_t> dim = {};      // required
    std::optional<bool> keepdim = {};  // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Whether all elements along axes are true.
  OutputOf All(const ListedTensor& self, const AllOptions& options) {
    Invocation call{.operator_name = "All"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf All(const ListedTensor& self) { return All(self, AllOptions()); }

  struct AmaxOptions {
    NumberList<int64_t> dim = {};       // required
    std::optional<bool> keep_dim = {};  // false
  };
  // Largest elements along axes.
  OutputOf Amax(const ListedTensor& self, const AmaxOptions& options) {
    Invocation call{.operator_name = "Amax"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Amax(const ListedTensor& self) { return Amax(self, AmaxOptions()); }

  struct AminOptions {
    NumberList<int64_t> dim = {};       // required
    std::optional<bool> keep_dim = {};  // false
  };
  // Smallest elements along axes.
  OutputOf Amin(const ListedTensor& self, const AminOptions& options) {
    Invocation call{.operator_name = "Amin"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Amin(const ListedTensor& self) { return Amin(self, AminOptions()); }

  struct AmpUpdateScaleOptions {
    std::optional<double> growth_factor = {};     // 2.0
    std::optional<double> backoff_factor = {};    // 0.5
    std::optional<int64_t> growth_interval = {};  // 2000
  };
  struct AmpUpdateScaleOutputs {
    OutputOf updated_scale;
    OutputOf updated_growth_tracker;
  };
  // Moves the scale of the loss in mixed precision.
  AmpUpdateScaleOutputs AmpUpdateScale(const ListedTensor& current_scale,
                                       const ListedTensor& growth_tracker,
                                       const ListedTensor& found_inf,
                                       const AmpUpdateScaleOptions& options) {
    Invocation call{.operator_name = "AmpUpdateScale"};
    AddInput("current_scale", current_scale, &call);
    AddInput("growth_tracker", growth_tracker, &call);
    AddInput("found_inf", found_inf, &call);
    AddAttribute("growth_factor", options.growth_factor, &call);
    AddAttribute("backoff_factor", options.backoff_factor, &call);
    AddAttribute("growth_interval", options.growth_interval, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "updated_scale"}, {number, "updated_growth_tracker"}};
  }
  AmpUpdateScaleOutputs AmpUpdateScale(const ListedTensor& current_scale,
                                       const ListedTensor& growth_tracker,
                                       const ListedTensor& found_inf) {
    return AmpUpdateScale(current_scale, growth_tracker, found_inf, AmpUpdateScaleOptions());
  }

  struct AnyOptions {
    NumberList<int64_t> dim = {};      // required
    std::optional<bool> keepdim = {};  // false
  };
  // Whether any elements along axes are true.
  OutputOf Any(const ListedTensor& self, const AnyOptions& options) {
    Invocation call{.operator_name = "Any"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Any(const ListedTensor& self) { return Any(self, AnyOptions()); }

  struct ApplyAdamWV2Options {
    std::optional<ListedTensor> max_grad_norm = {};
    std::optional<double> lr = {};            // required
    std::optional<double> beta1 = {};         // 0.9
    std::optional<double> beta2 = {};         // 0.999
    std::optional<double> weight_decay = {};  // 0.01
    std::optional<double> eps = {};           // 1e-08
    std::optional<bool> amsgrad = {};         // false
    std::optional<bool> maximize = {};        // false
  };
  struct ApplyAdamWV2Outputs {
    OutputOf var;
    OutputOf m;
    OutputOf v;
    OutputOf max_grad_norm;
  };
  // One AdamW step on a parameter.
  ApplyAdamWV2Outputs ApplyAdamWV2(const ListedTensor& var, const ListedTensor& m,
                                   const ListedTensor& v, const ListedTensor& grad,
                                   const ListedTensor& step, const ApplyAdamWV2Options& options) {
    Invocation call{.operator_name = "ApplyAdamWV2"};
    AddInput("var", var, &call);
    AddInput("m", m, &call);
    AddInput("v", v, &call);
    AddInput("max_grad_norm", options.max_grad_norm, &call);
    AddInput("grad", grad, &call);
    AddInput("step", step, &call);
    AddAttribute("lr", options.lr, &call);
    AddAttribute("beta1", options.beta1, &call);
    AddAttribute("beta2", options.beta2, &call);
    AddAttribute("weight_decay", options.weight_decay, &call);
    AddAttribute("eps", options.eps, &call);
    AddAttribute("amsgrad", options.amsgrad, &call);
    AddAttribute("maximize", options.maximize, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "var"}, {number, "m"}, {number, "v"}, {number, "max_grad_norm"}};
  }
  ApplyAdamWV2Outputs ApplyAdamWV2(const ListedTensor& var, const ListedTensor& m,
                                   const ListedTensor& v, const ListedTensor& grad,
                                   const ListedTensor& step) {
    return ApplyAdamWV2(var, m, v, grad, step, ApplyAdamWV2Options());
  }

  struct ApplyFusedEmaAdamOptions {
    std::optional<double> lr = {};             // required
    std::optional<double> ema_decay = {};      // 0.999
    std::optional<double> beta1 = {};          // 0.9
    std::optional<double> beta2 = {};          // 0.999
    std::optional<double> eps = {};            // 1e-08
    std::optional<AttributeValue> mode = {};   // adam (0), adamw (1); 1
    std::optional<bool> bias_correction = {};  // true
    std::optional<double> weight_decay = {};   // 0.0
  };
  struct ApplyFusedEmaAdamOutputs {
    OutputOf var;
    OutputOf m;
    OutputOf v;
    OutputOf s;
  };
  // One Adam step on a parameter with a moving average of it.
  ApplyFusedEmaAdamOutputs ApplyFusedEmaAdam(const ListedTensor& grad, const ListedTensor& var,
                                             const ListedTensor& m, const ListedTensor& v,
                                             const ListedTensor& s, const ListedTensor& step,
                                             const ApplyFusedEmaAdamOptions& options) {
    Invocation call{.operator_name = "ApplyFusedEmaAdam"};
    AddInput("grad", grad, &call);
    AddInput("var", var, &call);
    AddInput("m", m, &call);
    AddInput("v", v, &call);
    AddInput("s", s, &call);
    AddInput("step", step, &call);
    AddAttribute("lr", options.lr, &call);
    AddAttribute("ema_decay", options.ema_decay, &call);
    AddAttribute("beta1", options.beta1, &call);
    AddAttribute("beta2", options.beta2, &call);
    AddAttribute("eps", options.eps, &call);
    AddAttribute("mode", options.mode, &call);
    AddAttribute("bias_correction", options.bias_correction, &call);
    AddAttribute("weight_decay", options.weight_decay, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "var"}, {number, "m"}, {number, "v"}, {number, "s"}};
  }
  ApplyFusedEmaAdamOutputs ApplyFusedEmaAdam(const ListedTensor& grad, const ListedTensor& var,
                                             const ListedTensor& m, const ListedTensor& v,
                                             const ListedTensor& s, const ListedTensor& step) {
    return ApplyFusedEmaAdam(grad, var, m, v, s, step, ApplyFusedEmaAdamOptions());
  }

  struct ArangeOptions {
    std::optional<AttributeValue> start = {};  // 0
    std::optional<AttributeValue> end = {};    // required
    std::optional<AttributeValue> step = {};   // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Lists equally spaced numbers.
  OutputOf Arange(const ArangeOptions& options) {
    Invocation call{.operator_name = "Arange"};
    AddAttribute("start", options.start, &call);
    AddAttribute("end", options.end, &call);
    AddAttribute("step", options.step, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Arange() { return Arange(ArangeOptions()); }

  struct ArgMaxOptions {
    std::optional<int64_t> dim = {};   // required
    std::optional<bool> keepdim = {};  // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Positions of the largest elements along an axis.
  OutputOf ArgMax(const ListedTensor& self, const ArgMaxOptions& options) {
    Invocation call{.operator_name = "ArgMax"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ArgMax(const ListedTensor& self) { return ArgMax(self, ArgMaxOptions()); }

  struct ArgMinOptions {
    std::optional<int64_t> dim = {};   // required
    std::optional<bool> keepdim = {};  // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Positions of the smallest elements along an axis.
  OutputOf ArgMin(const ListedTensor& self, const ArgMinOptions& options) {
    Invocation call{.operator_name = "ArgMin"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ArgMin(const ListedTensor& self) { return ArgMin(self, ArgMinOptions()); }

  struct AsinOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the inverse sine.
  OutputOf Asin(const ListedTensor& self, const AsinOptions& options) {
    Invocation call{.operator_name = "Asin"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Asin(const ListedTensor& self) { return Asin(self, AsinOptions()); }

  struct AsinhOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the inverse hyperbolic sine.
  OutputOf Asinh(const ListedTensor& self, const AsinhOptions& options) {
    Invocation call{.operator_name = "Asinh"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Asinh(const ListedTensor& self) { return Asinh(self, AsinhOptions()); }

  struct AtanOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the inverse tangent.
  OutputOf Atan(const ListedTensor& self, const AtanOptions& options) {
    Invocation call{.operator_name = "Atan"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Atan(const ListedTensor& self) { return Atan(self, AtanOptions()); }

  struct Atan2Options {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the angle of points.
  OutputOf Atan2(const ListedTensor& self, const ListedTensor& other, const Atan2Options& options) {
    Invocation call{.operator_name = "Atan2"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Atan2(const ListedTensor& self, const ListedTensor& other) {
    return Atan2(self, other, Atan2Options());
  }

  struct AtanhOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the inverse hyperbolic tangent.
  OutputOf Atanh(const ListedTensor& self, const AtanhOptions& options) {
    Invocation call{.operator_name = "Atanh"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Atanh(const ListedTensor& self) { return Atanh(self, AtanhOptions()); }

  struct AvgPool2dOptions {
    NumberList<int64_t> kernel_size = {};          // required
    NumberList<int64_t> strides = {};              // required
    NumberList<int64_t> paddings = {};             // required
    std::optional<bool> ceil_mode = {};            // false
    std::optional<bool> count_include_pad = {};    // true
    std::optional<int64_t> divisor_override = {};  // 0
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Means of windows of images.
  OutputOf AvgPool2d(const ListedTensor& self, const AvgPool2dOptions& options) {
    Invocation call{.operator_name = "AvgPool2d"};
    AddInput("self", self, &call);
    AddAttribute("kernel_size", options.kernel_size, &call);
    AddAttribute("strides", options.strides, &call);
    AddAttribute("paddings", options.paddings, &call);
    AddAttribute("ceil_mode", options.ceil_mode, &call);
    AddAttribute("count_include_pad", options.count_include_pad, &call);
    AddAttribute("divisor_override", options.divisor_override, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf AvgPool2d(const ListedTensor& self) { return AvgPool2d(self, AvgPool2dOptions()); }

  struct AvgPool2dBackwardOptions {
    NumberList<int64_t> kernel_size = {};          // required
    NumberList<int64_t> stride = {};               // required
    NumberList<int64_t> padding = {};              // required
    std::optional<bool> ceil_mode = {};            // false
    std::optional<bool> count_include_pad = {};    // true
    std::optional<int64_t> divisor_override = {};  // 0
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Gradient of the means of windows of images.
  OutputOf AvgPool2dBackward(const ListedTensor& grad_output, const ListedTensor& self,
                             const AvgPool2dBackwardOptions& options) {
    Invocation call{.operator_name = "AvgPool2dBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("kernel_size", options.kernel_size, &call);
    AddAttribute("stride", options.stride, &call);
    AddAttribute("padding", options.padding, &call);
    AddAttribute("ceil_mode", options.ceil_mode, &call);
    AddAttribute("count_include_pad", options.count_include_pad, &call);
    AddAttribute("divisor_override", options.divisor_override, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf AvgPool2dBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return AvgPool2dBackward(grad_output, self, AvgPool2dBackwardOptions());
  }

  struct BaddbmmOptions {
    std::optional<AttributeValue> beta = {};   // 1
    std::optional<AttributeValue> alpha = {};  // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Adds products of batches of matrices to a tensor.
  OutputOf Baddbmm(const ListedTensor& self, const ListedTensor& batch1, const ListedTensor& batch2,
                   const BaddbmmOptions& options) {
    Invocation call{.operator_name = "Baddbmm"};
    AddInput("self", self, &call);
    AddInput("batch1", batch1, &call);
    AddInput("batch2", batch2, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Baddbmm(const ListedTensor& self, const ListedTensor& batch1,
                   const ListedTensor& batch2) {
    return Baddbmm(self, batch1, batch2, BaddbmmOptions());
  }

  struct BatchMatMulOptions {
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Products of batches of matrices.
  OutputOf BatchMatMul(const ListedTensor& self, const ListedTensor& mat2,
                       const BatchMatMulOptions& options) {
    Invocation call{.operator_name = "BatchMatMul"};
    AddInput("self", self, &call);
    AddInput("mat2", mat2, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BatchMatMul(const ListedTensor& self, const ListedTensor& mat2) {
    return BatchMatMul(self, mat2, BatchMatMulOptions());
  }

  struct BatchNormOptions {
    std::optional<ListedTensor> running_mean = {};
    std::optional<ListedTensor> running_var = {};
    std::optional<bool> training = {};    // false
    std::optional<double> momentum = {};  // 0.1
    std::optional<double> eps = {};       // 1e-05
  };
  struct BatchNormOutputs {
    OutputOf running_mean;
    OutputOf running_var;
    OutputOf output;
    OutputOf save_mean;
    OutputOf save_invstd;
  };
  // Batch normalisation over everything but the channels.
  BatchNormOutputs BatchNorm(const ListedTensor& input, const ListedTensor& weight,
                             const ListedTensor& bias, const BatchNormOptions& options) {
    Invocation call{.operator_name = "BatchNorm"};
    AddInput("input", input, &call);
    AddInput("weight", weight, &call);
    AddInput("bias", bias, &call);
    AddInput("running_mean", options.running_mean, &call);
    AddInput("running_var", options.running_var, &call);
    AddAttribute("training", options.training, &call);
    AddAttribute("momentum", options.momentum, &call);
    AddAttribute("eps", options.eps, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "running_mean"},
            {number, "running_var"},
            {number, "output"},
            {number, "save_mean"},
            {number, "save_invstd"}};
  }
  BatchNormOutputs BatchNorm(const ListedTensor& input, const ListedTensor& weight,
                             const ListedTensor& bias) {
    return BatchNorm(input, weight, bias, BatchNormOptions());
  }

  struct BatchNormBackwardOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> running_mean = {};
    std::optional<ListedTensor> running_var = {};
    std::optional<ListedTensor> save_mean = {};
    std::optional<ListedTensor> save_invstd = {};
    std::optional<bool> training = {};             // false
    std::optional<double> eps = {};                // 1e-05
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct BatchNormBackwardOutputs {
    OutputOf grad_input;
    OutputOf grad_weight;
    OutputOf grad_bias;
  };
  // Gradients of batch normalisation.
  BatchNormBackwardOutputs BatchNormBackward(const ListedTensor& grad_out,
                                             const ListedTensor& input,
                                             const BatchNormBackwardOptions& options) {
    Invocation call{.operator_name = "BatchNormBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("input", input, &call);
    AddInput("weight", options.weight, &call);
    AddInput("running_mean", options.running_mean, &call);
    AddInput("running_var", options.running_var, &call);
    AddInput("save_mean", options.save_mean, &call);
    AddInput("save_invstd", options.save_invstd, &call);
    AddAttribute("training", options.training, &call);
    AddAttribute("eps", options.eps, &call);
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "grad_input"}, {number, "grad_weight"}, {number, "grad_bias"}};
  }
  BatchNormBackwardOutputs BatchNormBackward(const ListedTensor& grad_out,
                                             const ListedTensor& input) {
    return BatchNormBackward(grad_out, input, BatchNormBackwardOptions());
  }

  struct BatchNormElemtOptions {
    std::optional<double> eps = {};  // 1e-05
  };
  // Normalisation of a batch by given statistics.
  OutputOf BatchNormElemt(const ListedTensor& input, const ListedTensor& weight,
                          const ListedTensor& bias, const ListedTensor& mean,
                          const ListedTensor& invstd, const BatchNormElemtOptions& options) {
    Invocation call{.operator_name = "BatchNormElemt"};
    AddInput("input", input, &call);
    AddInput("weight", weight, &call);
    AddInput("bias", bias, &call);
    AddInput("mean", mean, &call);
    AddInput("invstd", invstd, &call);
    AddAttribute("eps", options.eps, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "output"};
  }
  OutputOf BatchNormElemt(const ListedTensor& input, const ListedTensor& weight,
                          const ListedTensor& bias, const ListedTensor& mean,
                          const ListedTensor& invstd) {
    return BatchNormElemt(input, weight, bias, mean, invstd, BatchNormElemtOptions());
  }

  struct BatchNormElemtBackwardOptions {
    std::optional<ListedTensor> weight = {};
  };
  // Gradient of batch normalisation with respect to its input, from sums.
  OutputOf BatchNormElemtBackward(const ListedTensor& grad_out, const ListedTensor& input,
                                  const ListedTensor& mean, const ListedTensor& invstd,
                                  const ListedTensor& sum_dy, const ListedTensor& sum_dy_xmu,
                                  const ListedTensor& counter,
                                  const BatchNormElemtBackwardOptions& options) {
    Invocation call{.operator_name = "BatchNormElemtBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("input", input, &call);
    AddInput("mean", mean, &call);
    AddInput("invstd", invstd, &call);
    AddInput("weight", options.weight, &call);
    AddInput("sum_dy", sum_dy, &call);
    AddInput("sum_dy_xmu", sum_dy_xmu, &call);
    AddInput("counter", counter, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf BatchNormElemtBackward(const ListedTensor& grad_out, const ListedTensor& input,
                                  const ListedTensor& mean, const ListedTensor& invstd,
                                  const ListedTensor& sum_dy, const ListedTensor& sum_dy_xmu,
                                  const ListedTensor& counter) {
    return BatchNormElemtBackward(grad_out, input, mean, invstd, sum_dy, sum_dy_xmu, counter,
                                  BatchNormElemtBackwardOptions());
  }

  struct BatchNormReduceBackwardOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<bool> input_g = {};              // true
    std::optional<bool> weight_g = {};             // true
    std::optional<bool> bias_g = {};               // true
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct BatchNormReduceBackwardOutputs {
    OutputOf sum_dy;
    OutputOf sum_dy_xmu;
    OutputOf grad_weight;
    OutputOf grad_bias;
  };
  // Sums for the gradients of batch normalisation.
  BatchNormReduceBackwardOutputs BatchNormReduceBackward(
      const ListedTensor& grad_out, const ListedTensor& input, const ListedTensor& mean,
      const ListedTensor& invstd, const BatchNormReduceBackwardOptions& options) {
    Invocation call{.operator_name = "BatchNormReduceBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("input", input, &call);
    AddInput("mean", mean, &call);
    AddInput("invstd", invstd, &call);
    AddInput("weight", options.weight, &call);
    AddAttribute("input_g", options.input_g, &call);
    AddAttribute("weight_g", options.weight_g, &call);
    AddAttribute("bias_g", options.bias_g, &call);
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {
        {number, "sum_dy"}, {number, "sum_dy_xmu"}, {number, "grad_weight"}, {number, "grad_bias"}};
  }
  BatchNormReduceBackwardOutputs BatchNormReduceBackward(const ListedTensor& grad_out,
                                                         const ListedTensor& input,
                                                         const ListedTensor& mean,
                                                         const ListedTensor& invstd) {
    return BatchNormReduceBackward(grad_out, input, mean, invstd, BatchNormReduceBackwardOptions());
  }

  struct BatchNormStatsOptions {
    std::optional<double> eps = {};  // 1e-05
  };
  struct BatchNormStatsOutputs {
    OutputOf mean;
    OutputOf invstd;
  };
  // Means and inverse deviations of the channels of a batch.
  BatchNormStatsOutputs BatchNormStats(const ListedTensor& input,
                                       const BatchNormStatsOptions& options) {
    Invocation call{.operator_name = "BatchNormStats"};
    AddInput("input", input, &call);
    AddAttribute("eps", options.eps, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "mean"}, {number, "invstd"}};
  }
  BatchNormStatsOutputs BatchNormStats(const ListedTensor& input) {
    return BatchNormStats(input, BatchNormStatsOptions());
  }

  struct BinaryCrossEntropyOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Binary cross entropy between probabilities and a target.
  OutputOf BinaryCrossEntropy(const ListedTensor& self, const ListedTensor& target,
                              const BinaryCrossEntropyOptions& options) {
    Invocation call{.operator_name = "BinaryCrossEntropy"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BinaryCrossEntropy(const ListedTensor& self, const ListedTensor& target) {
    return BinaryCrossEntropy(self, target, BinaryCrossEntropyOptions());
  }

  struct BinaryCrossEntropyBackwardOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Gradient of binary cross entropy with respect to its input.
  OutputOf BinaryCrossEntropyBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                      const ListedTensor& target,
                                      const BinaryCrossEntropyBackwardOptions& options) {
    Invocation call{.operator_name = "BinaryCrossEntropyBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BinaryCrossEntropyBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                      const ListedTensor& target) {
    return BinaryCrossEntropyBackward(grad_output, self, target,
                                      BinaryCrossEntropyBackwardOptions());
  }

  struct BinaryCrossEntropyWithLogitsOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> pos_weight = {};
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Binary cross entropy between logits and a target.
  OutputOf BinaryCrossEntropyWithLogits(const ListedTensor& self, const ListedTensor& target,
                                        const BinaryCrossEntropyWithLogitsOptions& options) {
    Invocation call{.operator_name = "BinaryCrossEntropyWithLogits"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddInput("pos_weight", options.pos_weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BinaryCrossEntropyWithLogits(const ListedTensor& self, const ListedTensor& target) {
    return BinaryCrossEntropyWithLogits(self, target, BinaryCrossEntropyWithLogitsOptions());
  }

  struct BinaryCrossEntropyWithLogitsBackwardOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> pos_weight = {};
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Gradient of binary cross entropy with logits with respect to its input.
  OutputOf BinaryCrossEntropyWithLogitsBackward(
      const ListedTensor& grad_output, const ListedTensor& self, const ListedTensor& target,
      const BinaryCrossEntropyWithLogitsBackwardOptions& options) {
    Invocation call{.operator_name = "BinaryCrossEntropyWithLogitsBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddInput("pos_weight", options.pos_weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BinaryCrossEntropyWithLogitsBackward(const ListedTensor& grad_output,
                                                const ListedTensor& self,
                                                const ListedTensor& target) {
    return BinaryCrossEntropyWithLogitsBackward(grad_output, self, target,
                                                BinaryCrossEntropyWithLogitsBackwardOptions());
  }

  struct BinaryCrossEntropyWithLogitsTargetBackwardOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> pos_weight = {};
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Gradient of binary cross entropy with logits with respect to its target.
  OutputOf BinaryCrossEntropyWithLogitsTargetBackward(
      const ListedTensor& grad_output, const ListedTensor& self, const ListedTensor& target,
      const BinaryCrossEntropyWithLogitsTargetBackwardOptions& options) {
    Invocation call{.operator_name = "BinaryCrossEntropyWithLogitsTargetBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddInput("pos_weight", options.pos_weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_target"};
  }
  OutputOf BinaryCrossEntropyWithLogitsTargetBackward(const ListedTensor& grad_output,
                                                      const ListedTensor& self,
                                                      const ListedTensor& target) {
    return BinaryCrossEntropyWithLogitsTargetBackward(
        grad_output, self, target, BinaryCrossEntropyWithLogitsTargetBackwardOptions());
  }

  struct BitwiseAndScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins the bits of a tensor and a number by and.
  OutputOf BitwiseAndScalar(const ListedTensor& self, const BitwiseAndScalarOptions& options) {
    Invocation call{.operator_name = "BitwiseAndScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BitwiseAndScalar(const ListedTensor& self) {
    return BitwiseAndScalar(self, BitwiseAndScalarOptions());
  }

  struct BitwiseAndTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins the bits of two tensors by and.
  OutputOf BitwiseAndTensor(const ListedTensor& self, const ListedTensor& other,
                            const BitwiseAndTensorOptions& options) {
    Invocation call{.operator_name = "BitwiseAndTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BitwiseAndTensor(const ListedTensor& self, const ListedTensor& other) {
    return BitwiseAndTensor(self, other, BitwiseAndTensorOptions());
  }

  // Negates every bit.
  OutputOf BitwiseNot(const ListedTensor& self) {
    Invocation call{.operator_name = "BitwiseNot"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct BitwiseOrScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins the bits of a tensor and a number by or.
  OutputOf BitwiseOrScalar(const ListedTensor& self, const BitwiseOrScalarOptions& options) {
    Invocation call{.operator_name = "BitwiseOrScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BitwiseOrScalar(const ListedTensor& self) {
    return BitwiseOrScalar(self, BitwiseOrScalarOptions());
  }

  struct BitwiseOrTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins the bits of two tensors by or.
  OutputOf BitwiseOrTensor(const ListedTensor& self, const ListedTensor& other,
                           const BitwiseOrTensorOptions& options) {
    Invocation call{.operator_name = "BitwiseOrTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BitwiseOrTensor(const ListedTensor& self, const ListedTensor& other) {
    return BitwiseOrTensor(self, other, BitwiseOrTensorOptions());
  }

  struct BitwiseXorScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins the bits of a tensor and a number by exclusive or.
  OutputOf BitwiseXorScalar(const ListedTensor& self, const BitwiseXorScalarOptions& options) {
    Invocation call{.operator_name = "BitwiseXorScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BitwiseXorScalar(const ListedTensor& self) {
    return BitwiseXorScalar(self, BitwiseXorScalarOptions());
  }

  struct BitwiseXorTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins the bits of two tensors by exclusive or.
  OutputOf BitwiseXorTensor(const ListedTensor& self, const ListedTensor& other,
                            const BitwiseXorTensorOptions& options) {
    Invocation call{.operator_name = "BitwiseXorTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf BitwiseXorTensor(const ListedTensor& self, const ListedTensor& other) {
    return BitwiseXorTensor(self, other, BitwiseXorTensorOptions());
  }

  struct CastOptions {
    std::optional<DataType> dtype = {};  // required
  };
  // Converts a tensor to another dtype.
  OutputOf Cast(const ListedTensor& self, const CastOptions& options) {
    Invocation call{.operator_name = "Cast"};
    AddInput("self", self, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Cast(const ListedTensor& self) { return Cast(self, CastOptions()); }

  struct CatOptions {
    std::optional<int64_t> dim = {};  // 0
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins tensors along an axis.
  OutputOf Cat(const std::vector<ListedTensor>& tensors, const CatOptions& options) {
    Invocation call{.operator_name = "Cat"};
    AddInput("tensors", tensors, &call);
    AddAttribute("dim", options.dim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Cat(const std::vector<ListedTensor>& tensors) { return Cat(tensors, CatOptions()); }

  // Rounds up.
  OutputOf Ceil(const ListedTensor& self) {
    Invocation call{.operator_name = "Ceil"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct CeluOptions {
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Applies CELU, the continuously differentiable exponential linear unit.
  OutputOf Celu(const ListedTensor& self, const CeluOptions& options) {
    Invocation call{.operator_name = "Celu"};
    AddInput("self", self, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Celu(const ListedTensor& self) { return Celu(self, CeluOptions()); }

  struct ClampOptions {
    std::optional<AttributeValue> clip_value_min = {};  // left out
    std::optional<AttributeValue> clip_value_max = {};  // left out
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Limits a tensor to an interval.
  OutputOf Clamp(const ListedTensor& self, const ClampOptions& options) {
    Invocation call{.operator_name = "Clamp"};
    AddInput("self", self, &call);
    AddAttribute("clip_value_min", options.clip_value_min, &call);
    AddAttribute("clip_value_max", options.clip_value_max, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Clamp(const ListedTensor& self) { return Clamp(self, ClampOptions()); }

  struct ClampMaxOptions {
    std::optional<AttributeValue> clip_value_max = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Limits a tensor from above by a number.
  OutputOf ClampMax(const ListedTensor& self, const ClampMaxOptions& options) {
    Invocation call{.operator_name = "ClampMax"};
    AddInput("self", self, &call);
    AddAttribute("clip_value_max", options.clip_value_max, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ClampMax(const ListedTensor& self) { return ClampMax(self, ClampMaxOptions()); }

  struct ClampMaxTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Limits a tensor from above by another, element by element.
  OutputOf ClampMaxTensor(const ListedTensor& self, const ListedTensor& clip_value_max,
                          const ClampMaxTensorOptions& options) {
    Invocation call{.operator_name = "ClampMaxTensor"};
    AddInput("self", self, &call);
    AddInput("clip_value_max", clip_value_max, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ClampMaxTensor(const ListedTensor& self, const ListedTensor& clip_value_max) {
    return ClampMaxTensor(self, clip_value_max, ClampMaxTensorOptions());
  }

  struct ClampMinOptions {
    std::optional<AttributeValue> clip_value_min = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Limits a tensor from below by a number.
  OutputOf ClampMin(const ListedTensor& self, const ClampMinOptions& options) {
    Invocation call{.operator_name = "ClampMin"};
    AddInput("self", self, &call);
    AddAttribute("clip_value_min", options.clip_value_min, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ClampMin(const ListedTensor& self) { return ClampMin(self, ClampMinOptions()); }

  struct ClampMinTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Limits a tensor from below by another, element by element.
  OutputOf ClampMinTensor(const ListedTensor& self, const ListedTensor& clip_value_min,
                          const ClampMinTensorOptions& options) {
    Invocation call{.operator_name = "ClampMinTensor"};
    AddInput("self", self, &call);
    AddInput("clip_value_min", clip_value_min, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ClampMinTensor(const ListedTensor& self, const ListedTensor& clip_value_min) {
    return ClampMinTensor(self, clip_value_min, ClampMinTensorOptions());
  }

  struct ClampTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Limits a tensor by two others, element by element.
  OutputOf ClampTensor(const ListedTensor& self, const ListedTensor& clip_value_min,
                       const ListedTensor& clip_value_max, const ClampTensorOptions& options) {
    Invocation call{.operator_name = "ClampTensor"};
    AddInput("self", self, &call);
    AddInput("clip_value_min", clip_value_min, &call);
    AddInput("clip_value_max", clip_value_max, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ClampTensor(const ListedTensor& self, const ListedTensor& clip_value_min,
                       const ListedTensor& clip_value_max) {
    return ClampTensor(self, clip_value_min, clip_value_max, ClampTensorOptions());
  }

  struct ConstantPadNdOptions {
    NumberList<int64_t> pad = {};              // required
    std::optional<AttributeValue> value = {};  // 0
  };
  // Pads axes with a number.
  OutputOf ConstantPadNd(const ListedTensor& self, const ConstantPadNdOptions& options) {
    Invocation call{.operator_name = "ConstantPadNd"};
    AddInput("self", self, &call);
    AddAttribute("pad", options.pad, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ConstantPadNd(const ListedTensor& self) {
    return ConstantPadNd(self, ConstantPadNdOptions());
  }

  struct ConvolutionOptions {
    std::optional<ListedTensor> bias = {};
    NumberList<int64_t> stride = {};          // required
    NumberList<int64_t> padding = {};         // required
    NumberList<int64_t> dilation = {};        // required
    std::optional<bool> transposed = {};      // false
    NumberList<int64_t> output_padding = {};  // required
    std::optional<int64_t> groups = {};       // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Convolution of one to three dimensions.
  OutputOf Convolution(const ListedTensor& input, const ListedTensor& weight,
                       const ConvolutionOptions& options) {
    Invocation call{.operator_name = "Convolution"};
    AddInput("input", input, &call);
    AddInput("weight", weight, &call);
    AddInput("bias", options.bias, &call);
    AddAttribute("stride", options.stride, &call);
    AddAttribute("padding", options.padding, &call);
    AddAttribute("dilation", options.dilation, &call);
    AddAttribute("transposed", options.transposed, &call);
    AddAttribute("output_padding", options.output_padding, &call);
    AddAttribute("groups", options.groups, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "output"};
  }
  OutputOf Convolution(const ListedTensor& input, const ListedTensor& weight) {
    return Convolution(input, weight, ConvolutionOptions());
  }

  struct ConvolutionBackwardOptions {
    NumberList<int64_t> bias_sizes = {};      // left out
    NumberList<int64_t> stride = {};          // required
    NumberList<int64_t> padding = {};         // required
    NumberList<int64_t> dilation = {};        // required
    std::optional<bool> transposed = {};      // false
    NumberList<int64_t> output_padding = {};  // required
    std::optional<int64_t> groups = {};       // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct ConvolutionBackwardOutputs {
    OutputOf grad_input;
    OutputOf grad_weight;
    OutputOf grad_bias;
  };
  // Gradients of convolution.
  ConvolutionBackwardOutputs ConvolutionBackward(const ListedTensor& grad_output,
                                                 const ListedTensor& input,
                                                 const ListedTensor& weight,
                                                 const ConvolutionBackwardOptions& options) {
    Invocation call{.operator_name = "ConvolutionBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("input", input, &call);
    AddInput("weight", weight, &call);
    AddAttribute("bias_sizes", options.bias_sizes, &call);
    AddAttribute("stride", options.stride, &call);
    AddAttribute("padding", options.padding, &call);
    AddAttribute("dilation", options.dilation, &call);
    AddAttribute("transposed", options.transposed, &call);
    AddAttribute("output_padding", options.output_padding, &call);
    AddAttribute("groups", options.groups, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "grad_input"}, {number, "grad_weight"}, {number, "grad_bias"}};
  }
  ConvolutionBackwardOutputs ConvolutionBackward(const ListedTensor& grad_output,
                                                 const ListedTensor& input,
                                                 const ListedTensor& weight) {
    return ConvolutionBackward(grad_output, input, weight, ConvolutionBackwardOptions());
  }

  struct CosOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the cosine.
  OutputOf Cos(const ListedTensor& input, const CosOptions& options) {
    Invocation call{.operator_name = "Cos"};
    AddInput("input", input, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Cos(const ListedTensor& input) { return Cos(input, CosOptions()); }

  struct CoshOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the hyperbolic cosine.
  OutputOf Cosh(const ListedTensor& self, const CoshOptions& options) {
    Invocation call{.operator_name = "Cosh"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Cosh(const ListedTensor& self) { return Cosh(self, CoshOptions()); }

  struct CrossEntropyLossOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<Text> reduction = {};                     // none, mean, sum; mean
    std::optional<int64_t> ignore_index = {};               // -100
    std::optional<double> label_smoothing = {};             // 0.0
    std::optional<double> lse_square_scale_for_zloss = {};  // 0.0
    std::optional<bool> return_zloss = {};                  // false
  };
  struct CrossEntropyLossOutputs {
    OutputOf loss_out;
    OutputOf log_prob_out;
    OutputOf zloss_out;
    OutputOf lse_for_zloss_out;
  };
  // Cross entropy between logits and target classes.
  CrossEntropyLossOutputs CrossEntropyLoss(const ListedTensor& input, const ListedTensor& target,
                                           const CrossEntropyLossOptions& options) {
    Invocation call{.operator_name = "CrossEntropyLoss"};
    AddInput("input", input, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("ignore_index", options.ignore_index, &call);
    AddAttribute("label_smoothing", options.label_smoothing, &call);
    AddAttribute("lse_square_scale_for_zloss", options.lse_square_scale_for_zloss, &call);
    AddAttribute("return_zloss", options.return_zloss, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "loss_out"},
            {number, "log_prob_out"},
            {number, "zloss_out"},
            {number, "lse_for_zloss_out"}};
  }
  CrossEntropyLossOutputs CrossEntropyLoss(const ListedTensor& input, const ListedTensor& target) {
    return CrossEntropyLoss(input, target, CrossEntropyLossOptions());
  }

  struct CrossEntropyLossGradOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> grad_zloss = {};
    std::optional<ListedTensor> lse_for_zloss = {};
    std::optional<Text> reduction = {};                     // none, mean, sum; mean
    std::optional<int64_t> ignore_index = {};               // -100
    std::optional<double> label_smoothing = {};             // 0.0
    std::optional<double> lse_square_scale_for_zloss = {};  // 0.0
  };
  // Gradient of cross entropy with respect to its logits.
  OutputOf CrossEntropyLossGrad(const ListedTensor& grad_loss, const ListedTensor& log_prob,
                                const ListedTensor& target,
                                const CrossEntropyLossGradOptions& options) {
    Invocation call{.operator_name = "CrossEntropyLossGrad"};
    AddInput("grad_loss", grad_loss, &call);
    AddInput("log_prob", log_prob, &call);
    AddInput("target", target, &call);
    AddInput("weight", options.weight, &call);
    AddInput("grad_zloss", options.grad_zloss, &call);
    AddInput("lse_for_zloss", options.lse_for_zloss, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("ignore_index", options.ignore_index, &call);
    AddAttribute("label_smoothing", options.label_smoothing, &call);
    AddAttribute("lse_square_scale_for_zloss", options.lse_square_scale_for_zloss, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf CrossEntropyLossGrad(const ListedTensor& grad_loss, const ListedTensor& log_prob,
                                const ListedTensor& target) {
    return CrossEntropyLossGrad(grad_loss, log_prob, target, CrossEntropyLossGradOptions());
  }

  struct CumprodOptions {
    std::optional<AttributeValue> dim = {};  // required
    std::optional<DataType> dtype = {};      // required
  };
  // Running products along an axis.
  OutputOf Cumprod(const ListedTensor& input, const CumprodOptions& options) {
    Invocation call{.operator_name = "Cumprod"};
    AddInput("input", input, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Cumprod(const ListedTensor& input) { return Cumprod(input, CumprodOptions()); }

  struct CumsumOptions {
    std::optional<int64_t> dim = {};     // required
    std::optional<DataType> dtype = {};  // required
  };
  // Running sums along an axis.
  OutputOf Cumsum(const ListedTensor& self, const CumsumOptions& options) {
    Invocation call{.operator_name = "Cumsum"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Cumsum(const ListedTensor& self) { return Cumsum(self, CumsumOptions()); }

  struct CumsumV2Options {
    std::optional<int64_t> dim = {};     // required
    std::optional<bool> exclusive = {};  // false
    std::optional<bool> reverse = {};    // false
  };
  // Running sums along an axis, with choices.
  OutputOf CumsumV2(const ListedTensor& self, const CumsumV2Options& options) {
    Invocation call{.operator_name = "CumsumV2"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("exclusive", options.exclusive, &call);
    AddAttribute("reverse", options.reverse, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf CumsumV2(const ListedTensor& self) { return CumsumV2(self, CumsumV2Options()); }

  struct DeepNormOptions {
    std::optional<double> alpha = {};    // 0.3
    std::optional<double> epsilon = {};  // 1e-06
  };
  struct DeepNormOutputs {
    OutputOf mean_out;
    OutputOf rstd_out;
    OutputOf y_out;
  };
  // Layer normalisation of a scaled sum.
  DeepNormOutputs DeepNorm(const ListedTensor& x, const ListedTensor& gx, const ListedTensor& beta,
                           const ListedTensor& gamma, const DeepNormOptions& options) {
    Invocation call{.operator_name = "DeepNorm"};
    AddInput("x", x, &call);
    AddInput("gx", gx, &call);
    AddInput("beta", beta, &call);
    AddInput("gamma", gamma, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("epsilon", options.epsilon, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "mean_out"}, {number, "rstd_out"}, {number, "y_out"}};
  }
  DeepNormOutputs DeepNorm(const ListedTensor& x, const ListedTensor& gx, const ListedTensor& beta,
                           const ListedTensor& gamma) {
    return DeepNorm(x, gx, beta, gamma, DeepNormOptions());
  }

  struct DeepNormGradOptions {
    std::optional<double> alpha = {};  // 0.3
  };
  struct DeepNormGradOutputs {
    OutputOf dx_out;
    OutputOf dgx_out;
    OutputOf dbeta_out;
    OutputOf dgamma_out;
  };
  // Gradients of the layer normalisation of a scaled sum.
  DeepNormGradOutputs DeepNormGrad(const ListedTensor& dy, const ListedTensor& x,
                                   const ListedTensor& gx, const ListedTensor& gamma,
                                   const ListedTensor& mean, const ListedTensor& rstd,
                                   const DeepNormGradOptions& options) {
    Invocation call{.operator_name = "DeepNormGrad"};
    AddInput("dy", dy, &call);
    AddInput("x", x, &call);
    AddInput("gx", gx, &call);
    AddInput("gamma", gamma, &call);
    AddInput("mean", mean, &call);
    AddInput("rstd", rstd, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "dx_out"}, {number, "dgx_out"}, {number, "dbeta_out"}, {number, "dgamma_out"}};
  }
  DeepNormGradOutputs DeepNormGrad(const ListedTensor& dy, const ListedTensor& x,
                                   const ListedTensor& gx, const ListedTensor& gamma,
                                   const ListedTensor& mean, const ListedTensor& rstd) {
    return DeepNormGrad(dy, x, gx, gamma, mean, rstd, DeepNormGradOptions());
  }

  struct DivOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Divides one tensor by another.
  OutputOf Div(const ListedTensor& self, const ListedTensor& other, const DivOptions& options) {
    Invocation call{.operator_name = "Div"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Div(const ListedTensor& self, const ListedTensor& other) {
    return Div(self, other, DivOptions());
  }

  struct DivModOptions {
    std::optional<AttributeValue> mode = {};  // true (0), trunc (1), floor (2); 0
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Divides two tensors and rounds the quotient.
  OutputOf DivMod(const ListedTensor& self, const ListedTensor& other,
                  const DivModOptions& options) {
    Invocation call{.operator_name = "DivMod"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("mode", options.mode, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf DivMod(const ListedTensor& self, const ListedTensor& other) {
    return DivMod(self, other, DivModOptions());
  }

  struct DivModsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> mode = {};   // true (0), trunc (1), floor (2); 0
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Divides a tensor by a number and rounds the quotient.
  OutputOf DivMods(const ListedTensor& self, const DivModsOptions& options) {
    Invocation call{.operator_name = "DivMods"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("mode", options.mode, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf DivMods(const ListedTensor& self) { return DivMods(self, DivModsOptions()); }

  struct DivsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Divides a tensor by a number.
  OutputOf Divs(const ListedTensor& self, const DivsOptions& options) {
    Invocation call{.operator_name = "Divs"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Divs(const ListedTensor& self) { return Divs(self, DivsOptions()); }

  // Inner product of two vectors.
  OutputOf Dot(const ListedTensor& self, const ListedTensor& tensor) {
    Invocation call{.operator_name = "Dot"};
    AddInput("self", self, &call);
    AddInput("tensor", tensor, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct DropoutOptions {
    std::optional<double> p = {};        // required
    std::optional<bool> train = {};      // true
    std::optional<int64_t> seed = {};    // required
    std::optional<int64_t> offset = {};  // 0
  };
  struct DropoutOutputs {
    OutputOf out;
    OutputOf mask_out;
  };
  // Drops elements at random.
  DropoutOutputs Dropout(const ListedTensor& input, const DropoutOptions& options) {
    Invocation call{.operator_name = "Dropout"};
    AddInput("input", input, &call);
    AddAttribute("p", options.p, &call);
    AddAttribute("train", options.train, &call);
    AddAttribute("seed", options.seed, &call);
    AddAttribute("offset", options.offset, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "mask_out"}};
  }
  DropoutOutputs Dropout(const ListedTensor& input) { return Dropout(input, DropoutOptions()); }

  struct DropoutBackwardOptions {
    std::optional<double> scale = {};  // required
  };
  // Gradient of dropout with respect to its input.
  OutputOf DropoutBackward(const ListedTensor& grad_output, const ListedTensor& mask,
                           const DropoutBackwardOptions& options) {
    Invocation call{.operator_name = "DropoutBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("mask", mask, &call);
    AddAttribute("scale", options.scale, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf DropoutBackward(const ListedTensor& grad_output, const ListedTensor& mask) {
    return DropoutBackward(grad_output, mask, DropoutBackwardOptions());
  }

  struct DropoutDoMaskOptions {
    std::optional<double> prob = {};  // required
  };
  // Applies a dropout mask.
  OutputOf DropoutDoMask(const ListedTensor& self, const ListedTensor& mask,
                         const DropoutDoMaskOptions& options) {
    Invocation call{.operator_name = "DropoutDoMask"};
    AddInput("self", self, &call);
    AddInput("mask", mask, &call);
    AddAttribute("prob", options.prob, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf DropoutDoMask(const ListedTensor& self, const ListedTensor& mask) {
    return DropoutDoMask(self, mask, DropoutDoMaskOptions());
  }

  struct DropoutGenMaskOptions {
    NumberList<int64_t> shape = {};      // required
    std::optional<double> prob = {};     // required
    std::optional<int64_t> seed = {};    // required
    std::optional<int64_t> offset = {};  // 0
  };
  // Draws a dropout mask.
  OutputOf DropoutGenMask(const DropoutGenMaskOptions& options) {
    Invocation call{.operator_name = "DropoutGenMask"};
    AddAttribute("shape", options.shape, &call);
    AddAttribute("prob", options.prob, &call);
    AddAttribute("seed", options.seed, &call);
    AddAttribute("offset", options.offset, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf DropoutGenMask() { return DropoutGenMask(DropoutGenMaskOptions()); }

  struct EluOptions {
    std::optional<AttributeValue> alpha = {};        // 1
    std::optional<AttributeValue> scale = {};        // 1
    std::optional<AttributeValue> input_scale = {};  // 1
  };
  // Applies ELU, the exponential linear unit.
  OutputOf Elu(const ListedTensor& self, const EluOptions& options) {
    Invocation call{.operator_name = "Elu"};
    AddInput("self", self, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("scale", options.scale, &call);
    AddAttribute("input_scale", options.input_scale, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Elu(const ListedTensor& self) { return Elu(self, EluOptions()); }

  struct EluBackwardOptions {
    std::optional<AttributeValue> alpha = {};        // 1
    std::optional<AttributeValue> scale = {};        // 1
    std::optional<AttributeValue> input_scale = {};  // 1
    std::optional<bool> is_result = {};              // false
  };
  // Gradient of ELU with respect to its input.
  OutputOf EluBackward(const ListedTensor& grad_output, const ListedTensor& self_or_result,
                       const EluBackwardOptions& options) {
    Invocation call{.operator_name = "EluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self_or_result", self_or_result, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("scale", options.scale, &call);
    AddAttribute("input_scale", options.input_scale, &call);
    AddAttribute("is_result", options.is_result, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf EluBackward(const ListedTensor& grad_output, const ListedTensor& self_or_result) {
    return EluBackward(grad_output, self_or_result, EluBackwardOptions());
  }

  // Rows of a table at indices.
  OutputOf Embedding(const ListedTensor& weight, const ListedTensor& indices) {
    Invocation call{.operator_name = "Embedding"};
    AddInput("weight", weight, &call);
    AddInput("indices", indices, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct EmbeddingBagOptions {
    std::optional<ListedTensor> per_sample_weights = {};
    std::optional<bool> scale_grad_by_freq = {};     // false
    std::optional<AttributeValue> mode = {};         // sum (0), mean (1), max (2); 0
    std::optional<bool> sparse = {};                 // false
    std::optional<bool> include_last_offset = {};    // false
    std::optional<AttributeValue> padding_idx = {};  // none (-1); -1
  };
  struct EmbeddingBagOutputs {
    OutputOf output;
    OutputOf offset2bag;
    OutputOf bag_size;
    OutputOf max_indices;
  };
  // Sums, means or greatest elements of bags of a table's rows.
  EmbeddingBagOutputs EmbeddingBag(const ListedTensor& weight, const ListedTensor& indices,
                                   const ListedTensor& offsets,
                                   const EmbeddingBagOptions& options) {
    Invocation call{.operator_name = "EmbeddingBag"};
    AddInput("weight", weight, &call);
    AddInput("indices", indices, &call);
    AddInput("offsets", offsets, &call);
    AddInput("per_sample_weights", options.per_sample_weights, &call);
    AddAttribute("scale_grad_by_freq", options.scale_grad_by_freq, &call);
    AddAttribute("mode", options.mode, &call);
    AddAttribute("sparse", options.sparse, &call);
    AddAttribute("include_last_offset", options.include_last_offset, &call);
    AddAttribute("padding_idx", options.padding_idx, &call);
    const uint32_t number = Invoke(std::move(call));
    return {
        {number, "output"}, {number, "offset2bag"}, {number, "bag_size"}, {number, "max_indices"}};
  }
  EmbeddingBagOutputs EmbeddingBag(const ListedTensor& weight, const ListedTensor& indices,
                                   const ListedTensor& offsets) {
    return EmbeddingBag(weight, indices, offsets, EmbeddingBagOptions());
  }

  struct EmbeddingDenseBackwardOptions {
    std::optional<int64_t> num_weights = {};         // required
    std::optional<AttributeValue> padding_idx = {};  // none (-1); -1
    std::optional<bool> scale_grad_by_freq = {};     // false
  };
  // Gradient of an embedding with respect to its table.
  OutputOf EmbeddingDenseBackward(const ListedTensor& grad, const ListedTensor& indices,
                                  const EmbeddingDenseBackwardOptions& options) {
    Invocation call{.operator_name = "EmbeddingDenseBackward"};
    AddInput("grad", grad, &call);
    AddInput("indices", indices, &call);
    AddAttribute("num_weights", options.num_weights, &call);
    AddAttribute("padding_idx", options.padding_idx, &call);
    AddAttribute("scale_grad_by_freq", options.scale_grad_by_freq, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf EmbeddingDenseBackward(const ListedTensor& grad, const ListedTensor& indices) {
    return EmbeddingDenseBackward(grad, indices, EmbeddingDenseBackwardOptions());
  }

  struct EqScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where a tensor is equal to a number.
  OutputOf EqScalar(const ListedTensor& self, const EqScalarOptions& options) {
    Invocation call{.operator_name = "EqScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf EqScalar(const ListedTensor& self) { return EqScalar(self, EqScalarOptions()); }

  struct EqTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where one tensor is equal to another.
  OutputOf EqTensor(const ListedTensor& self, const ListedTensor& other,
                    const EqTensorOptions& options) {
    Invocation call{.operator_name = "EqTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf EqTensor(const ListedTensor& self, const ListedTensor& other) {
    return EqTensor(self, other, EqTensorOptions());
  }

  struct ErfOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the error function.
  OutputOf Erf(const ListedTensor& self, const ErfOptions& options) {
    Invocation call{.operator_name = "Erf"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Erf(const ListedTensor& self) { return Erf(self, ErfOptions()); }

  struct ErfcOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the complement of the error function.
  OutputOf Erfc(const ListedTensor& self, const ErfcOptions& options) {
    Invocation call{.operator_name = "Erfc"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Erfc(const ListedTensor& self) { return Erfc(self, ErfcOptions()); }

  struct ExpOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the exponential.
  OutputOf Exp(const ListedTensor& self, const ExpOptions& options) {
    Invocation call{.operator_name = "Exp"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Exp(const ListedTensor& self) { return Exp(self, ExpOptions()); }

  struct Exp2Options {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Raises two to the power of a tensor.
  OutputOf Exp2(const ListedTensor& self, const Exp2Options& options) {
    Invocation call{.operator_name = "Exp2"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Exp2(const ListedTensor& self) { return Exp2(self, Exp2Options()); }

  struct ExpandOptions {
    NumberList<int64_t> size = {};  // required
  };
  // Broadcasts a tensor to a shape.
  OutputOf Expand(const ListedTensor& self, const ExpandOptions& options) {
    Invocation call{.operator_name = "Expand"};
    AddInput("self", self, &call);
    AddAttribute("size", options.size, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Expand(const ListedTensor& self) { return Expand(self, ExpandOptions()); }

  struct Expm1Options {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the exponential less one.
  OutputOf Expm1(const ListedTensor& self, const Expm1Options& options) {
    Invocation call{.operator_name = "Expm1"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Expm1(const ListedTensor& self) { return Expm1(self, Expm1Options()); }

  struct EyeOptions {
    std::optional<int64_t> n = {};  // required
    std::optional<int64_t> m = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Makes a matrix with ones on its diagonal.
  OutputOf Eye(const EyeOptions& options) {
    Invocation call{.operator_name = "Eye"};
    AddAttribute("n", options.n, &call);
    AddAttribute("m", options.m, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Eye() { return Eye(EyeOptions()); }

  // Applies the fast approximation of GELU.
  OutputOf FastGelu(const ListedTensor& self) {
    Invocation call{.operator_name = "FastGelu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of the fast approximation of GELU with respect to its input.
  OutputOf FastGeluBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "FastGeluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct FastLayerNormOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> bias = {};
    NumberList<int64_t> normalized_shape = {};  // required
    std::optional<double> eps = {};             // 1e-05
    std::vector<OutputDataType> output_dtypes = {};
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct FastLayerNormOutputs {
    OutputOf out;
    OutputOf mean_out;
    OutputOf rstd_out;
  };
  // Layer normalisation by a faster kernel.
  FastLayerNormOutputs FastLayerNorm(const ListedTensor& input,
                                     const FastLayerNormOptions& options) {
    Invocation call{.operator_name = "FastLayerNorm"};
    AddInput("input", input, &call);
    AddInput("weight", options.weight, &call);
    AddInput("bias", options.bias, &call);
    AddAttribute("normalized_shape", options.normalized_shape, &call);
    AddAttribute("eps", options.eps, &call);
    call.output_dtypes = options.output_dtypes;
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "mean_out"}, {number, "rstd_out"}};
  }
  FastLayerNormOutputs FastLayerNorm(const ListedTensor& input) {
    return FastLayerNorm(input, FastLayerNormOptions());
  }

  struct FlipOptions {
    NumberList<int64_t> dims = {};  // required
  };
  // Reverses axes.
  OutputOf Flip(const ListedTensor& self, const FlipOptions& options) {
    Invocation call{.operator_name = "Flip"};
    AddInput("self", self, &call);
    AddAttribute("dims", options.dims, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Flip(const ListedTensor& self) { return Flip(self, FlipOptions()); }

  // Rounds down.
  OutputOf Floor(const ListedTensor& self) {
    Invocation call{.operator_name = "Floor"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct FloorDivideOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Divides two tensors and rounds down.
  OutputOf FloorDivide(const ListedTensor& self, const ListedTensor& other,
                       const FloorDivideOptions& options) {
    Invocation call{.operator_name = "FloorDivide"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf FloorDivide(const ListedTensor& self, const ListedTensor& other) {
    return FloorDivide(self, other, FloorDivideOptions());
  }

  struct FloorDividesOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Divides a tensor and a number and rounds down.
  OutputOf FloorDivides(const ListedTensor& self, const FloorDividesOptions& options) {
    Invocation call{.operator_name = "FloorDivides"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf FloorDivides(const ListedTensor& self) {
    return FloorDivides(self, FloorDividesOptions());
  }

  struct FmodScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the remainder of a tensor and a number with the dividend's sign.
  OutputOf FmodScalar(const ListedTensor& self, const FmodScalarOptions& options) {
    Invocation call{.operator_name = "FmodScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf FmodScalar(const ListedTensor& self) { return FmodScalar(self, FmodScalarOptions()); }

  struct FmodTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the remainder of two tensors with the dividend's sign.
  OutputOf FmodTensor(const ListedTensor& self, const ListedTensor& other,
                      const FmodTensorOptions& options) {
    Invocation call{.operator_name = "FmodTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf FmodTensor(const ListedTensor& self, const ListedTensor& other) {
    return FmodTensor(self, other, FmodTensorOptions());
  }

  // Adds two lists of tensors, the factor being in a tensor.
  OutputList ForeachAddList(const std::vector<ListedTensor>& x1,
                            const std::vector<ListedTensor>& x2, const ListedTensor& alpha) {
    Invocation call{.operator_name = "ForeachAddList"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("alpha", alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachAddListV2Options {
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Adds two lists of tensors.
  OutputList ForeachAddListV2(const std::vector<ListedTensor>& x1,
                              const std::vector<ListedTensor>& x2,
                              const ForeachAddListV2Options& options) {
    Invocation call{.operator_name = "ForeachAddListV2"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachAddListV2(const std::vector<ListedTensor>& x1,
                              const std::vector<ListedTensor>& x2) {
    return ForeachAddListV2(x1, x2, ForeachAddListV2Options());
  }

  // Adds a number to the tensors of a list, the number being in a tensor.
  OutputList ForeachAddScalar(const std::vector<ListedTensor>& x, const ListedTensor& scalar) {
    Invocation call{.operator_name = "ForeachAddScalar"};
    AddInput("x", x, &call);
    AddInput("scalar", scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachAddScalarListOptions {
    NumberList<double> scalars = {};  // required
  };
  // Adds a number of its own to each tensor of a list.
  OutputList ForeachAddScalarList(const std::vector<ListedTensor>& x,
                                  const ForeachAddScalarListOptions& options) {
    Invocation call{.operator_name = "ForeachAddScalarList"};
    AddInput("x", x, &call);
    AddAttribute("scalars", options.scalars, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachAddScalarList(const std::vector<ListedTensor>& x) {
    return ForeachAddScalarList(x, ForeachAddScalarListOptions());
  }

  struct ForeachAddScalarV2Options {
    std::optional<AttributeValue> scalar = {};  // required
  };
  // Adds a number to the tensors of a list.
  OutputList ForeachAddScalarV2(const std::vector<ListedTensor>& x,
                                const ForeachAddScalarV2Options& options) {
    Invocation call{.operator_name = "ForeachAddScalarV2"};
    AddInput("x", x, &call);
    AddAttribute("scalar", options.scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachAddScalarV2(const std::vector<ListedTensor>& x) {
    return ForeachAddScalarV2(x, ForeachAddScalarV2Options());
  }

  // Adds a scaled quotient of two lists of tensors to a list, the number being in a tensor.
  OutputList ForeachAddcdivScalar(const std::vector<ListedTensor>& x1,
                                  const std::vector<ListedTensor>& x2,
                                  const std::vector<ListedTensor>& x3, const ListedTensor& scalar) {
    Invocation call{.operator_name = "ForeachAddcdivScalar"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("x3", x3, &call);
    AddInput("scalar", scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Adds a quotient of two lists of tensors to a list, each scaled by a number of its own.
  OutputList ForeachAddcdivScalarList(const std::vector<ListedTensor>& x1,
                                      const std::vector<ListedTensor>& x2,
                                      const std::vector<ListedTensor>& x3,
                                      const ListedTensor& scalars) {
    Invocation call{.operator_name = "ForeachAddcdivScalarList"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("x3", x3, &call);
    AddInput("scalars", scalars, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachAddcdivScalarV2Options {
    std::optional<AttributeValue> scalar = {};  // required
  };
  // Adds a scaled quotient of two lists of tensors to a list.
  OutputList ForeachAddcdivScalarV2(const std::vector<ListedTensor>& x1,
                                    const std::vector<ListedTensor>& x2,
                                    const std::vector<ListedTensor>& x3,
                                    const ForeachAddcdivScalarV2Options& options) {
    Invocation call{.operator_name = "ForeachAddcdivScalarV2"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("x3", x3, &call);
    AddAttribute("scalar", options.scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachAddcdivScalarV2(const std::vector<ListedTensor>& x1,
                                    const std::vector<ListedTensor>& x2,
                                    const std::vector<ListedTensor>& x3) {
    return ForeachAddcdivScalarV2(x1, x2, x3, ForeachAddcdivScalarV2Options());
  }

  // Adds a scaled product of two lists of tensors to a list, the number being in a tensor.
  OutputList ForeachAddcmulScalar(const std::vector<ListedTensor>& x1,
                                  const std::vector<ListedTensor>& x2,
                                  const std::vector<ListedTensor>& x3, const ListedTensor& scalar) {
    Invocation call{.operator_name = "ForeachAddcmulScalar"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("x3", x3, &call);
    AddInput("scalar", scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachAddcmulScalarV2Options {
    std::optional<AttributeValue> scalar = {};  // required
  };
  // Adds a scaled product of two lists of tensors to a list.
  OutputList ForeachAddcmulScalarV2(const std::vector<ListedTensor>& x1,
                                    const std::vector<ListedTensor>& x2,
                                    const std::vector<ListedTensor>& x3,
                                    const ForeachAddcmulScalarV2Options& options) {
    Invocation call{.operator_name = "ForeachAddcmulScalarV2"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddInput("x3", x3, &call);
    AddAttribute("scalar", options.scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachAddcmulScalarV2(const std::vector<ListedTensor>& x1,
                                    const std::vector<ListedTensor>& x2,
                                    const std::vector<ListedTensor>& x3) {
    return ForeachAddcmulScalarV2(x1, x2, x3, ForeachAddcmulScalarV2Options());
  }

  struct ForeachCopyOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Copies a list of tensors, converting dtypes.
  OutputList ForeachCopy(const std::vector<ListedTensor>& x, const ForeachCopyOptions& options) {
    Invocation call{.operator_name = "ForeachCopy"};
    AddInput("x", x, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachCopy(const std::vector<ListedTensor>& x) {
    return ForeachCopy(x, ForeachCopyOptions());
  }

  // Divides the tensors of a list by a number, the number being in a tensor.
  OutputList ForeachDivScalar(const std::vector<ListedTensor>& x, const ListedTensor& scalar) {
    Invocation call{.operator_name = "ForeachDivScalar"};
    AddInput("x", x, &call);
    AddInput("scalar", scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachLerpScalarOptions {
    std::optional<AttributeValue> weight = {};  // required
  };
  // Interpolates between two lists of tensors.
  OutputList ForeachLerpScalar(const std::vector<ListedTensor>& x1,
                               const std::vector<ListedTensor>& x2,
                               const ForeachLerpScalarOptions& options) {
    Invocation call{.operator_name = "ForeachLerpScalar"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    AddAttribute("weight", options.weight, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachLerpScalar(const std::vector<ListedTensor>& x1,
                               const std::vector<ListedTensor>& x2) {
    return ForeachLerpScalar(x1, x2, ForeachLerpScalarOptions());
  }

  // Takes the larger elements of two lists of tensors.
  OutputList ForeachMaximumList(const std::vector<ListedTensor>& x1,
                                const std::vector<ListedTensor>& x2) {
    Invocation call{.operator_name = "ForeachMaximumList"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Multiplies two lists of tensors.
  OutputList ForeachMulList(const std::vector<ListedTensor>& x1,
                            const std::vector<ListedTensor>& x2) {
    Invocation call{.operator_name = "ForeachMulList"};
    AddInput("x1", x1, &call);
    AddInput("x2", x2, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Multiplies the tensors of a list by a number, the number being in a tensor.
  OutputList ForeachMulScalar(const std::vector<ListedTensor>& x, const ListedTensor& scalar) {
    Invocation call{.operator_name = "ForeachMulScalar"};
    AddInput("x", x, &call);
    AddInput("scalar", scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachMulScalarListOptions {
    NumberList<double> scalars = {};  // required
  };
  // Multiplies each tensor of a list by a number of its own.
  OutputList ForeachMulScalarList(const std::vector<ListedTensor>& x,
                                  const ForeachMulScalarListOptions& options) {
    Invocation call{.operator_name = "ForeachMulScalarList"};
    AddInput("x", x, &call);
    AddAttribute("scalars", options.scalars, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachMulScalarList(const std::vector<ListedTensor>& x) {
    return ForeachMulScalarList(x, ForeachMulScalarListOptions());
  }

  struct ForeachMulScalarV2Options {
    std::optional<AttributeValue> scalar = {};  // required
  };
  // Multiplies the tensors of a list by a number.
  OutputList ForeachMulScalarV2(const std::vector<ListedTensor>& x,
                                const ForeachMulScalarV2Options& options) {
    Invocation call{.operator_name = "ForeachMulScalarV2"};
    AddInput("x", x, &call);
    AddAttribute("scalar", options.scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachMulScalarV2(const std::vector<ListedTensor>& x) {
    return ForeachMulScalarV2(x, ForeachMulScalarV2Options());
  }

  // Negates a list of tensors.
  OutputList ForeachNeg(const std::vector<ListedTensor>& x) {
    Invocation call{.operator_name = "ForeachNeg"};
    AddInput("x", x, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct ForeachNonFiniteCheckAndUnscaleOutputs {
    OutputList scaled_grads;
    OutputOf found_inf;
  };
  // Unscales gradients and tells whether any is not finite.
  ForeachNonFiniteCheckAndUnscaleOutputs ForeachNonFiniteCheckAndUnscale(
      const std::vector<ListedTensor>& scaled_grads, const ListedTensor& found_inf,
      const ListedTensor& inv_scale) {
    Invocation call{.operator_name = "ForeachNonFiniteCheckAndUnscale"};
    AddInput("scaled_grads", scaled_grads, &call);
    AddInput("found_inf", found_inf, &call);
    AddInput("inv_scale", inv_scale, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "scaled_grads"}, {number, "found_inf"}};
  }

  struct ForeachNormOptions {
    std::optional<AttributeValue> scalar = {};  // required
  };
  // Takes the vector norm of each tensor of a list.
  OutputList ForeachNorm(const std::vector<ListedTensor>& x, const ForeachNormOptions& options) {
    Invocation call{.operator_name = "ForeachNorm"};
    AddInput("x", x, &call);
    AddAttribute("scalar", options.scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList ForeachNorm(const std::vector<ListedTensor>& x) {
    return ForeachNorm(x, ForeachNormOptions());
  }

  // Raises a list of tensors to the power of a number, the number being in a tensor.
  OutputList ForeachPowScalar(const std::vector<ListedTensor>& x, const ListedTensor& scalar) {
    Invocation call{.operator_name = "ForeachPowScalar"};
    AddInput("x", x, &call);
    AddInput("scalar", scalar, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Takes the reciprocals of a list of tensors.
  OutputList ForeachReciprocal(const std::vector<ListedTensor>& x) {
    Invocation call{.operator_name = "ForeachReciprocal"};
    AddInput("x", x, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Takes the square roots of a list of tensors.
  OutputList ForeachSqrt(const std::vector<ListedTensor>& x) {
    Invocation call{.operator_name = "ForeachSqrt"};
    AddInput("x", x, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Fills a list of tensors with zeros.
  OutputList ForeachZeroInplace(const std::vector<ListedTensor>& x) {
    Invocation call{.operator_name = "ForeachZeroInplace"};
    AddInput("x", x, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "x"};
  }

  // Takes the fraction.
  OutputOf Frac(const ListedTensor& self) {
    Invocation call{.operator_name = "Frac"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct FusedAdamwOptions {
    std::optional<std::vector<ListedTensor>> max_exp_avg_sqs = {};
    std::optional<ListedTensor> grad_scale = {};
    std::optional<ListedTensor> found_inf = {};
    std::optional<double> lr = {};            // required
    std::optional<double> beta1 = {};         // 0.9
    std::optional<double> beta2 = {};         // 0.999
    std::optional<double> weight_decay = {};  // 0.01
    std::optional<double> eps = {};           // 1e-08
    std::optional<bool> amsgrad = {};         // false
    std::optional<bool> maximize = {};        // false
  };
  struct FusedAdamwOutputs {
    OutputList params;
    OutputList exp_avgs;
    OutputList exp_avg_sqs;
    OutputList max_exp_avg_sqs;
  };
  // One AdamW step on a list of parameters.
  FusedAdamwOutputs FusedAdamw(const std::vector<ListedTensor>& params,
                               const std::vector<ListedTensor>& grads,
                               const std::vector<ListedTensor>& exp_avgs,
                               const std::vector<ListedTensor>& exp_avg_sqs,
                               const std::vector<ListedTensor>& state_steps,
                               const FusedAdamwOptions& options) {
    Invocation call{.operator_name = "FusedAdamw"};
    AddInput("params", params, &call);
    AddInput("grads", grads, &call);
    AddInput("exp_avgs", exp_avgs, &call);
    AddInput("exp_avg_sqs", exp_avg_sqs, &call);
    AddInput("max_exp_avg_sqs", options.max_exp_avg_sqs, &call);
    AddInput("state_steps", state_steps, &call);
    AddInput("grad_scale", options.grad_scale, &call);
    AddInput("found_inf", options.found_inf, &call);
    AddAttribute("lr", options.lr, &call);
    AddAttribute("beta1", options.beta1, &call);
    AddAttribute("beta2", options.beta2, &call);
    AddAttribute("weight_decay", options.weight_decay, &call);
    AddAttribute("eps", options.eps, &call);
    AddAttribute("amsgrad", options.amsgrad, &call);
    AddAttribute("maximize", options.maximize, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "params"},
            {number, "exp_avgs"},
            {number, "exp_avg_sqs"},
            {number, "max_exp_avg_sqs"}};
  }
  FusedAdamwOutputs FusedAdamw(const std::vector<ListedTensor>& params,
                               const std::vector<ListedTensor>& grads,
                               const std::vector<ListedTensor>& exp_avgs,
                               const std::vector<ListedTensor>& exp_avg_sqs,
                               const std::vector<ListedTensor>& state_steps) {
    return FusedAdamw(params, grads, exp_avgs, exp_avg_sqs, state_steps, FusedAdamwOptions());
  }

  struct FusedSgdOptions {
    std::optional<ListedTensor> grad_scale = {};
    std::optional<double> weight_decay = {};  // 0.0
    std::optional<double> momentum = {};      // 0.0
    std::optional<double> lr = {};            // required
    std::optional<double> dampening = {};     // 0.0
    std::optional<bool> nesterov = {};        // false
    std::optional<bool> maximize = {};        // false
    std::optional<bool> is_first_step = {};   // false
  };
  struct FusedSgdOutputs {
    OutputList params;
    OutputList grads;
    OutputList momentum_buffers;
  };
  // One step of gradient descent with momentum on a list of parameters.
  FusedSgdOutputs FusedSgd(const std::vector<ListedTensor>& params,
                           const std::vector<ListedTensor>& grads,
                           const std::vector<ListedTensor>& momentum_buffers,
                           const FusedSgdOptions& options) {
    Invocation call{.operator_name = "FusedSgd"};
    AddInput("params", params, &call);
    AddInput("grads", grads, &call);
    AddInput("momentum_buffers", momentum_buffers, &call);
    AddInput("grad_scale", options.grad_scale, &call);
    AddAttribute("weight_decay", options.weight_decay, &call);
    AddAttribute("momentum", options.momentum, &call);
    AddAttribute("lr", options.lr, &call);
    AddAttribute("dampening", options.dampening, &call);
    AddAttribute("nesterov", options.nesterov, &call);
    AddAttribute("maximize", options.maximize, &call);
    AddAttribute("is_first_step", options.is_first_step, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "params"}, {number, "grads"}, {number, "momentum_buffers"}};
  }
  FusedSgdOutputs FusedSgd(const std::vector<ListedTensor>& params,
                           const std::vector<ListedTensor>& grads,
                           const std::vector<ListedTensor>& momentum_buffers) {
    return FusedSgd(params, grads, momentum_buffers, FusedSgdOptions());
  }

  struct GatherOptions {
    std::optional<int64_t> dim = {};  // required
  };
  // Elements at indices along an axis.
  OutputOf Gather(const ListedTensor& self, const ListedTensor& index,
                  const GatherOptions& options) {
    Invocation call{.operator_name = "Gather"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Gather(const ListedTensor& self, const ListedTensor& index) {
    return Gather(self, index, GatherOptions());
  }

  struct GatherNdOptions {
    std::optional<bool> negative_index_support = {};  // false
  };
  // Slices at places that are given by several indices.
  OutputOf GatherNd(const ListedTensor& self, const ListedTensor& indices,
                    const GatherNdOptions& options) {
    Invocation call{.operator_name = "GatherNd"};
    AddInput("self", self, &call);
    AddInput("indices", indices, &call);
    AddAttribute("negative_index_support", options.negative_index_support, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GatherNd(const ListedTensor& self, const ListedTensor& indices) {
    return GatherNd(self, indices, GatherNdOptions());
  }

  struct GatherV2Options {
    std::optional<int64_t> dim = {};  // required
  };
  // Slices at indices along an axis.
  OutputOf GatherV2(const ListedTensor& self, const ListedTensor& index,
                    const GatherV2Options& options) {
    Invocation call{.operator_name = "GatherV2"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GatherV2(const ListedTensor& self, const ListedTensor& index) {
    return GatherV2(self, index, GatherV2Options());
  }

  struct GeGluOptions {
    std::optional<int64_t> dim = {};                 // -1
    std::optional<AttributeValue> approximate = {};  // none (0), tanh (1); 1
  };
  struct GeGluOutputs {
    OutputOf out;
    OutputOf out_gelu;
  };
  // Applies the linear unit gated by GELU.
  GeGluOutputs GeGlu(const ListedTensor& self, const GeGluOptions& options) {
    Invocation call{.operator_name = "GeGlu"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("approximate", options.approximate, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "out_gelu"}};
  }
  GeGluOutputs GeGlu(const ListedTensor& self) { return GeGlu(self, GeGluOptions()); }

  struct GeGluBackwardOptions {
    std::optional<int64_t> dim = {};                 // -1
    std::optional<AttributeValue> approximate = {};  // none (0), tanh (1); 1
  };
  // Gradient of the linear unit gated by GELU with respect to its input.
  OutputOf GeGluBackward(const ListedTensor& grad_output, const ListedTensor& self,
                         const ListedTensor& gelu, const GeGluBackwardOptions& options) {
    Invocation call{.operator_name = "GeGluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("gelu", gelu, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("approximate", options.approximate, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf GeGluBackward(const ListedTensor& grad_output, const ListedTensor& self,
                         const ListedTensor& gelu) {
    return GeGluBackward(grad_output, self, gelu, GeGluBackwardOptions());
  }

  struct GeScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where a tensor is not below a number.
  OutputOf GeScalar(const ListedTensor& self, const GeScalarOptions& options) {
    Invocation call{.operator_name = "GeScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GeScalar(const ListedTensor& self) { return GeScalar(self, GeScalarOptions()); }

  struct GeTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where one tensor is not below another.
  OutputOf GeTensor(const ListedTensor& self, const ListedTensor& other,
                    const GeTensorOptions& options) {
    Invocation call{.operator_name = "GeTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GeTensor(const ListedTensor& self, const ListedTensor& other) {
    return GeTensor(self, other, GeTensorOptions());
  }

  // Applies GELU, the Gaussian error linear unit.
  OutputOf Gelu(const ListedTensor& self) {
    Invocation call{.operator_name = "Gelu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of exact GELU with respect to its input.
  OutputOf GeluBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "GeluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct GeluBackwardV2Options {
    std::optional<Text> approximate = {};  // none, tanh; none
  };
  // Gradient of GELU, exact or approximated, with respect to its input.
  OutputOf GeluBackwardV2(const ListedTensor& grad_output, const ListedTensor& self,
                          const GeluBackwardV2Options& options) {
    Invocation call{.operator_name = "GeluBackwardV2"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("approximate", options.approximate, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf GeluBackwardV2(const ListedTensor& grad_output, const ListedTensor& self) {
    return GeluBackwardV2(grad_output, self, GeluBackwardV2Options());
  }

  struct GeluV2Options {
    std::optional<AttributeValue> approximate = {};  // none (0), tanh (1); 0
  };
  // Applies GELU, exact or approximated.
  OutputOf GeluV2(const ListedTensor& x, const GeluV2Options& options) {
    Invocation call{.operator_name = "GeluV2"};
    AddInput("x", x, &call);
    AddAttribute("approximate", options.approximate, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "y"};
  }
  OutputOf GeluV2(const ListedTensor& x) { return GeluV2(x, GeluV2Options()); }

  struct GemmOptions {
    std::optional<double> alpha = {};     // 1.0
    std::optional<double> beta = {};      // 1.0
    std::optional<int64_t> trans_a = {};  // 0
    std::optional<int64_t> trans_b = {};  // 0
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // General product of matrices.
  OutputOf Gemm(const ListedTensor& a, const ListedTensor& b, const ListedTensor& c,
                const GemmOptions& options) {
    Invocation call{.operator_name = "Gemm"};
    AddInput("a", a, &call);
    AddInput("b", b, &call);
    AddInput("c", c, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("trans_a", options.trans_a, &call);
    AddAttribute("trans_b", options.trans_b, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Gemm(const ListedTensor& a, const ListedTensor& b, const ListedTensor& c) {
    return Gemm(a, b, c, GemmOptions());
  }

  // Outer product of two vectors.
  OutputOf Ger(const ListedTensor& self, const ListedTensor& vec2) {
    Invocation call{.operator_name = "Ger"};
    AddInput("self", self, &call);
    AddInput("vec2", vec2, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct GluOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Applies the gated linear unit.
  OutputOf Glu(const ListedTensor& self, const GluOptions& options) {
    Invocation call{.operator_name = "Glu"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Glu(const ListedTensor& self) { return Glu(self, GluOptions()); }

  struct GluBackwardOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Gradient of the gated linear unit with respect to its input.
  OutputOf GluBackward(const ListedTensor& grad_out, const ListedTensor& self,
                       const GluBackwardOptions& options) {
    Invocation call{.operator_name = "GluBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GluBackward(const ListedTensor& grad_out, const ListedTensor& self) {
    return GluBackward(grad_out, self, GluBackwardOptions());
  }

  struct GroupNormOptions {
    std::optional<ListedTensor> gamma = {};
    std::optional<ListedTensor> beta = {};
    std::optional<int64_t> n = {};      // required
    std::optional<int64_t> c = {};      // required
    std::optional<int64_t> hxw = {};    // required
    std::optional<int64_t> group = {};  // required
    std::optional<double> eps = {};     // 1e-05
  };
  struct GroupNormOutputs {
    OutputOf out;
    OutputOf mean_out;
    OutputOf rstd_out;
  };
  // Group normalisation.
  GroupNormOutputs GroupNorm(const ListedTensor& self, const GroupNormOptions& options) {
    Invocation call{.operator_name = "GroupNorm"};
    AddInput("self", self, &call);
    AddInput("gamma", options.gamma, &call);
    AddInput("beta", options.beta, &call);
    AddAttribute("n", options.n, &call);
    AddAttribute("c", options.c, &call);
    AddAttribute("hxw", options.hxw, &call);
    AddAttribute("group", options.group, &call);
    AddAttribute("eps", options.eps, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "mean_out"}, {number, "rstd_out"}};
  }
  GroupNormOutputs GroupNorm(const ListedTensor& self) {
    return GroupNorm(self, GroupNormOptions());
  }

  struct GroupNormBackwardOptions {
    std::optional<ListedTensor> gamma = {};
    std::optional<int64_t> n = {};                 // required
    std::optional<int64_t> c = {};                 // required
    std::optional<int64_t> hxw = {};               // required
    std::optional<int64_t> group = {};             // required
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct GroupNormBackwardOutputs {
    OutputOf grad_input;
    OutputOf grad_gamma_out;
    OutputOf grad_beta_out;
  };
  // Gradients of group normalisation.
  GroupNormBackwardOutputs GroupNormBackward(const ListedTensor& grad_out,
                                             const ListedTensor& input, const ListedTensor& mean,
                                             const ListedTensor& rstd,
                                             const GroupNormBackwardOptions& options) {
    Invocation call{.operator_name = "GroupNormBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("input", input, &call);
    AddInput("mean", mean, &call);
    AddInput("rstd", rstd, &call);
    AddInput("gamma", options.gamma, &call);
    AddAttribute("n", options.n, &call);
    AddAttribute("c", options.c, &call);
    AddAttribute("hxw", options.hxw, &call);
    AddAttribute("group", options.group, &call);
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "grad_input"}, {number, "grad_gamma_out"}, {number, "grad_beta_out"}};
  }
  GroupNormBackwardOutputs GroupNormBackward(const ListedTensor& grad_out,
                                             const ListedTensor& input, const ListedTensor& mean,
                                             const ListedTensor& rstd) {
    return GroupNormBackward(grad_out, input, mean, rstd, GroupNormBackwardOptions());
  }

  struct GtScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where a tensor is above a number.
  OutputOf GtScalar(const ListedTensor& self, const GtScalarOptions& options) {
    Invocation call{.operator_name = "GtScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GtScalar(const ListedTensor& self) { return GtScalar(self, GtScalarOptions()); }

  struct GtTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where one tensor is above another.
  OutputOf GtTensor(const ListedTensor& self, const ListedTensor& other,
                    const GtTensorOptions& options) {
    Invocation call{.operator_name = "GtTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf GtTensor(const ListedTensor& self, const ListedTensor& other) {
    return GtTensor(self, other, GtTensorOptions());
  }

  struct HardshrinkOptions {
    std::optional<AttributeValue> lambd = {};  // 0.5
  };
  // Makes small elements zero.
  OutputOf Hardshrink(const ListedTensor& self, const HardshrinkOptions& options) {
    Invocation call{.operator_name = "Hardshrink"};
    AddInput("self", self, &call);
    AddAttribute("lambd", options.lambd, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Hardshrink(const ListedTensor& self) { return Hardshrink(self, HardshrinkOptions()); }

  struct HardshrinkBackwardOptions {
    std::optional<AttributeValue> lambd = {};  // 0.5
  };
  // Gradient of hard shrinkage with respect to its input.
  OutputOf HardshrinkBackward(const ListedTensor& grad_output, const ListedTensor& self,
                              const HardshrinkBackwardOptions& options) {
    Invocation call{.operator_name = "HardshrinkBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("lambd", options.lambd, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf HardshrinkBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return HardshrinkBackward(grad_output, self, HardshrinkBackwardOptions());
  }

  // Applies the hard sigmoid.
  OutputOf Hardsigmoid(const ListedTensor& self) {
    Invocation call{.operator_name = "Hardsigmoid"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of the hard sigmoid with respect to its input.
  OutputOf HardsigmoidBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "HardsigmoidBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Applies hard swish.
  OutputOf Hardswish(const ListedTensor& self) {
    Invocation call{.operator_name = "Hardswish"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of hard swish with respect to its input.
  OutputOf HardswishBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "HardswishBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of hard swish with respect to its input.
  OutputOf HardswishBackwardV2(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "HardswishBackwardV2"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct HardtanhOptions {
    std::optional<AttributeValue> clip_value_min = {};  // -1
    std::optional<AttributeValue> clip_value_max = {};  // 1
  };
  // Limits a tensor to an interval, as an activation.
  OutputOf Hardtanh(const ListedTensor& self, const HardtanhOptions& options) {
    Invocation call{.operator_name = "Hardtanh"};
    AddInput("self", self, &call);
    AddAttribute("clip_value_min", options.clip_value_min, &call);
    AddAttribute("clip_value_max", options.clip_value_max, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Hardtanh(const ListedTensor& self) { return Hardtanh(self, HardtanhOptions()); }

  struct HardtanhBackwardOptions {
    std::optional<AttributeValue> min = {};  // -1
    std::optional<AttributeValue> max = {};  // 1
  };
  // Gradient of the limiting activation with respect to its input.
  OutputOf HardtanhBackward(const ListedTensor& grad_output, const ListedTensor& self,
                            const HardtanhBackwardOptions& options) {
    Invocation call{.operator_name = "HardtanhBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("min", options.min, &call);
    AddAttribute("max", options.max, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf HardtanhBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return HardtanhBackward(grad_output, self, HardtanhBackwardOptions());
  }

  // Elements at places that are given by a tensor for each leading axis.
  OutputOf Index(const ListedTensor& self, const std::vector<ListedTensor>& indices) {
    Invocation call{.operator_name = "Index"};
    AddInput("self", self, &call);
    AddInput("indices", indices, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct IndexAddOptions {
    std::optional<int64_t> dim = {};           // required
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Adds slices at indices along an axis.
  OutputOf IndexAdd(const ListedTensor& self, const ListedTensor& index, const ListedTensor& source,
                    const IndexAddOptions& options) {
    Invocation call{.operator_name = "IndexAdd"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddInput("source", source, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf IndexAdd(const ListedTensor& self, const ListedTensor& index,
                    const ListedTensor& source) {
    return IndexAdd(self, index, source, IndexAddOptions());
  }

  struct IndexPutImplOptions {
    std::optional<bool> accumulate = {};  // false
    std::optional<bool> unsafe = {};      // false
  };
  // Writes at places that are given by a tensor for each leading axis.
  OutputOf IndexPutImpl(const ListedTensor& self, const std::vector<ListedTensor>& indices,
                        const ListedTensor& values, const IndexPutImplOptions& options) {
    Invocation call{.operator_name = "IndexPutImpl"};
    AddInput("self", self, &call);
    AddInput("indices", indices, &call);
    AddInput("values", values, &call);
    AddAttribute("accumulate", options.accumulate, &call);
    AddAttribute("unsafe", options.unsafe, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf IndexPutImpl(const ListedTensor& self, const std::vector<ListedTensor>& indices,
                        const ListedTensor& values) {
    return IndexPutImpl(self, indices, values, IndexPutImplOptions());
  }

  struct IndexSelectOptions {
    std::optional<int64_t> dim = {};  // required
  };
  // Slices at indices along an axis.
  OutputOf IndexSelect(const ListedTensor& self, const ListedTensor& index,
                       const IndexSelectOptions& options) {
    Invocation call{.operator_name = "IndexSelect"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf IndexSelect(const ListedTensor& self, const ListedTensor& index) {
    return IndexSelect(self, index, IndexSelectOptions());
  }

  struct InplaceAddOptions {
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Adds a tensor to another, in place.
  OutputOf InplaceAdd(const ListedTensor& self, const ListedTensor& other,
                      const InplaceAddOptions& options) {
    Invocation call{.operator_name = "InplaceAdd"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceAdd(const ListedTensor& self, const ListedTensor& other) {
    return InplaceAdd(self, other, InplaceAddOptions());
  }

  struct InplaceAddcdivOptions {
    std::optional<AttributeValue> value = {};  // 1
  };
  // Adds a scaled quotient of two tensors to a tensor, in place.
  OutputOf InplaceAddcdiv(const ListedTensor& self, const ListedTensor& tensor1,
                          const ListedTensor& tensor2, const InplaceAddcdivOptions& options) {
    Invocation call{.operator_name = "InplaceAddcdiv"};
    AddInput("self", self, &call);
    AddInput("tensor1", tensor1, &call);
    AddInput("tensor2", tensor2, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceAddcdiv(const ListedTensor& self, const ListedTensor& tensor1,
                          const ListedTensor& tensor2) {
    return InplaceAddcdiv(self, tensor1, tensor2, InplaceAddcdivOptions());
  }

  struct InplaceAddcmulOptions {
    std::optional<AttributeValue> value = {};  // 1
  };
  // Adds a scaled product of two tensors to a tensor, in place.
  OutputOf InplaceAddcmul(const ListedTensor& self, const ListedTensor& tensor1,
                          const ListedTensor& tensor2, const InplaceAddcmulOptions& options) {
    Invocation call{.operator_name = "InplaceAddcmul"};
    AddInput("self", self, &call);
    AddInput("tensor1", tensor1, &call);
    AddInput("tensor2", tensor2, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceAddcmul(const ListedTensor& self, const ListedTensor& tensor1,
                          const ListedTensor& tensor2) {
    return InplaceAddcmul(self, tensor1, tensor2, InplaceAddcmulOptions());
  }

  struct InplaceAddmmOptions {
    std::optional<AttributeValue> beta = {};   // 1
    std::optional<AttributeValue> alpha = {};  // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Adds a product of matrices to a matrix, in place.
  OutputOf InplaceAddmm(const ListedTensor& self, const ListedTensor& mat1,
                        const ListedTensor& mat2, const InplaceAddmmOptions& options) {
    Invocation call{.operator_name = "InplaceAddmm"};
    AddInput("self", self, &call);
    AddInput("mat1", mat1, &call);
    AddInput("mat2", mat2, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceAddmm(const ListedTensor& self, const ListedTensor& mat1,
                        const ListedTensor& mat2) {
    return InplaceAddmm(self, mat1, mat2, InplaceAddmmOptions());
  }

  struct InplaceAddsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Adds a number to a tensor, in place.
  OutputOf InplaceAdds(const ListedTensor& self, const InplaceAddsOptions& options) {
    Invocation call{.operator_name = "InplaceAdds"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceAdds(const ListedTensor& self) { return InplaceAdds(self, InplaceAddsOptions()); }

  struct InplaceBaddbmmOptions {
    std::optional<AttributeValue> beta = {};   // 1
    std::optional<AttributeValue> alpha = {};  // 1
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Adds products of batches of matrices to a tensor, in place.
  OutputOf InplaceBaddbmm(const ListedTensor& self, const ListedTensor& batch1,
                          const ListedTensor& batch2, const InplaceBaddbmmOptions& options) {
    Invocation call{.operator_name = "InplaceBaddbmm"};
    AddInput("self", self, &call);
    AddInput("batch1", batch1, &call);
    AddInput("batch2", batch2, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceBaddbmm(const ListedTensor& self, const ListedTensor& batch1,
                          const ListedTensor& batch2) {
    return InplaceBaddbmm(self, batch1, batch2, InplaceBaddbmmOptions());
  }

  // Rounds up, in place.
  OutputOf InplaceCeil(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceCeil"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceCeluOptions {
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Applies CELU, the continuously differentiable exponential linear unit, in place.
  OutputOf InplaceCelu(const ListedTensor& self, const InplaceCeluOptions& options) {
    Invocation call{.operator_name = "InplaceCelu"};
    AddInput("self", self, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceCelu(const ListedTensor& self) { return InplaceCelu(self, InplaceCeluOptions()); }

  struct InplaceClampMaxOptions {
    std::optional<AttributeValue> clip_value_max = {};  // required
  };
  // Limits a tensor from above by a number, in place.
  OutputOf InplaceClampMax(const ListedTensor& self, const InplaceClampMaxOptions& options) {
    Invocation call{.operator_name = "InplaceClampMax"};
    AddInput("self", self, &call);
    AddAttribute("clip_value_max", options.clip_value_max, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceClampMax(const ListedTensor& self) {
    return InplaceClampMax(self, InplaceClampMaxOptions());
  }

  // Limits a tensor from above by another, in place.
  OutputOf InplaceClampMaxTensor(const ListedTensor& self, const ListedTensor& clip_value_max) {
    Invocation call{.operator_name = "InplaceClampMaxTensor"};
    AddInput("self", self, &call);
    AddInput("clip_value_max", clip_value_max, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Limits a tensor from below by another, in place.
  OutputOf InplaceClampMinTensor(const ListedTensor& self, const ListedTensor& clip_value_min) {
    Invocation call{.operator_name = "InplaceClampMinTensor"};
    AddInput("self", self, &call);
    AddInput("clip_value_min", clip_value_min, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Copies one tensor into another.
  OutputOf InplaceCopy(const ListedTensor& self, const ListedTensor& src) {
    Invocation call{.operator_name = "InplaceCopy"};
    AddInput("self", self, &call);
    AddInput("src", src, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes the cosine, in place.
  OutputOf InplaceCos(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceCos"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Divides a tensor by another, in place.
  OutputOf InplaceDiv(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceDiv"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceDivModOptions {
    std::optional<AttributeValue> mode = {};  // true (0), trunc (1), floor (2); 0
  };
  // Divides a tensor by another and rounds the quotient, in place.
  OutputOf InplaceDivMod(const ListedTensor& self, const ListedTensor& other,
                         const InplaceDivModOptions& options) {
    Invocation call{.operator_name = "InplaceDivMod"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("mode", options.mode, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceDivMod(const ListedTensor& self, const ListedTensor& other) {
    return InplaceDivMod(self, other, InplaceDivModOptions());
  }

  struct InplaceDivModsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> mode = {};   // true (0), trunc (1), floor (2); 0
  };
  // Divides a tensor by a number and rounds the quotient, in place.
  OutputOf InplaceDivMods(const ListedTensor& self, const InplaceDivModsOptions& options) {
    Invocation call{.operator_name = "InplaceDivMods"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("mode", options.mode, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceDivMods(const ListedTensor& self) {
    return InplaceDivMods(self, InplaceDivModsOptions());
  }

  struct InplaceDivsOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Divides a tensor by a number, in place.
  OutputOf InplaceDivs(const ListedTensor& self, const InplaceDivsOptions& options) {
    Invocation call{.operator_name = "InplaceDivs"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceDivs(const ListedTensor& self) { return InplaceDivs(self, InplaceDivsOptions()); }

  struct InplaceEluOptions {
    std::optional<AttributeValue> alpha = {};        // 1
    std::optional<AttributeValue> scale = {};        // 1
    std::optional<AttributeValue> input_scale = {};  // 1
  };
  // Applies ELU, the exponential linear unit, in place.
  OutputOf InplaceElu(const ListedTensor& self, const InplaceEluOptions& options) {
    Invocation call{.operator_name = "InplaceElu"};
    AddInput("self", self, &call);
    AddAttribute("alpha", options.alpha, &call);
    AddAttribute("scale", options.scale, &call);
    AddAttribute("input_scale", options.input_scale, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceElu(const ListedTensor& self) { return InplaceElu(self, InplaceEluOptions()); }

  struct InplaceEqScalarOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Tells where a tensor is equal to a number, in place.
  OutputOf InplaceEqScalar(const ListedTensor& self, const InplaceEqScalarOptions& options) {
    Invocation call{.operator_name = "InplaceEqScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceEqScalar(const ListedTensor& self) {
    return InplaceEqScalar(self, InplaceEqScalarOptions());
  }

  // Tells where one tensor is equal to another, in place.
  OutputOf InplaceEqTensor(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceEqTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes the error function, in place.
  OutputOf InplaceErf(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceErf"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes the exponential, in place.
  OutputOf InplaceExp(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceExp"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceFillScalarOptions {
    std::optional<AttributeValue> value = {};  // required
  };
  // Fills a tensor with a number.
  OutputOf InplaceFillScalar(const ListedTensor& self, const InplaceFillScalarOptions& options) {
    Invocation call{.operator_name = "InplaceFillScalar"};
    AddInput("self", self, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceFillScalar(const ListedTensor& self) {
    return InplaceFillScalar(self, InplaceFillScalarOptions());
  }

  // Fills a tensor with the number in another.
  OutputOf InplaceFillTensor(const ListedTensor& self, const ListedTensor& value) {
    Invocation call{.operator_name = "InplaceFillTensor"};
    AddInput("self", self, &call);
    AddInput("value", value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Rounds down, in place.
  OutputOf InplaceFloor(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceFloor"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceGeScalarOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Tells where a tensor is not below a number, in place.
  OutputOf InplaceGeScalar(const ListedTensor& self, const InplaceGeScalarOptions& options) {
    Invocation call{.operator_name = "InplaceGeScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceGeScalar(const ListedTensor& self) {
    return InplaceGeScalar(self, InplaceGeScalarOptions());
  }

  // Tells where one tensor is not below another, in place.
  OutputOf InplaceGeTensor(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceGeTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceGtScalarOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Tells where a tensor is above a number, in place.
  OutputOf InplaceGtScalar(const ListedTensor& self, const InplaceGtScalarOptions& options) {
    Invocation call{.operator_name = "InplaceGtScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceGtScalar(const ListedTensor& self) {
    return InplaceGtScalar(self, InplaceGtScalarOptions());
  }

  // Tells where one tensor is above another, in place.
  OutputOf InplaceGtTensor(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceGtTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Applies the hard sigmoid, in place.
  OutputOf InplaceHardsigmoid(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceHardsigmoid"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Applies hard swish, in place.
  OutputOf InplaceHardswish(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceHardswish"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceHardtanhOptions {
    std::optional<AttributeValue> clip_value_min = {};  // -1
    std::optional<AttributeValue> clip_value_max = {};  // 1
  };
  // Limits a tensor to an interval, as an activation, in place.
  OutputOf InplaceHardtanh(const ListedTensor& self, const InplaceHardtanhOptions& options) {
    Invocation call{.operator_name = "InplaceHardtanh"};
    AddInput("self", self, &call);
    AddAttribute("clip_value_min", options.clip_value_min, &call);
    AddAttribute("clip_value_max", options.clip_value_max, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceHardtanh(const ListedTensor& self) {
    return InplaceHardtanh(self, InplaceHardtanhOptions());
  }

  struct InplaceLeScalarOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Tells where a tensor is not above a number, in place.
  OutputOf InplaceLeScalar(const ListedTensor& self, const InplaceLeScalarOptions& options) {
    Invocation call{.operator_name = "InplaceLeScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceLeScalar(const ListedTensor& self) {
    return InplaceLeScalar(self, InplaceLeScalarOptions());
  }

  // Tells where one tensor is not above another, in place.
  OutputOf InplaceLeTensor(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceLeTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceLeakyReluOptions {
    std::optional<AttributeValue> negative_slope = {};  // 0.01
  };
  // Applies leaky relu, in place.
  OutputOf InplaceLeakyRelu(const ListedTensor& self, const InplaceLeakyReluOptions& options) {
    Invocation call{.operator_name = "InplaceLeakyRelu"};
    AddInput("self", self, &call);
    AddAttribute("negative_slope", options.negative_slope, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceLeakyRelu(const ListedTensor& self) {
    return InplaceLeakyRelu(self, InplaceLeakyReluOptions());
  }

  // Interpolates between two tensors with a weight for each element, in place.
  OutputOf InplaceLerp(const ListedTensor& self, const ListedTensor& end,
                       const ListedTensor& weight) {
    Invocation call{.operator_name = "InplaceLerp"};
    AddInput("self", self, &call);
    AddInput("end", end, &call);
    AddInput("weight", weight, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceLerpsOptions {
    std::optional<AttributeValue> weight = {};  // required
  };
  // Interpolates between two tensors with one weight, in place.
  OutputOf InplaceLerps(const ListedTensor& self, const ListedTensor& end,
                        const InplaceLerpsOptions& options) {
    Invocation call{.operator_name = "InplaceLerps"};
    AddInput("self", self, &call);
    AddInput("end", end, &call);
    AddAttribute("weight", options.weight, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceLerps(const ListedTensor& self, const ListedTensor& end) {
    return InplaceLerps(self, end, InplaceLerpsOptions());
  }

  // Takes the natural logarithm, in place.
  OutputOf InplaceLog(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceLog"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Joins two tensors by logical and, in place.
  OutputOf InplaceLogicalAnd(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceLogicalAnd"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Negates logically, in place.
  OutputOf InplaceLogicalNot(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceLogicalNot"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Joins two tensors by logical or, in place.
  OutputOf InplaceLogicalOr(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceLogicalOr"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceLtScalarOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Tells where a tensor is below a number, in place.
  OutputOf InplaceLtScalar(const ListedTensor& self, const InplaceLtScalarOptions& options) {
    Invocation call{.operator_name = "InplaceLtScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceLtScalar(const ListedTensor& self) {
    return InplaceLtScalar(self, InplaceLtScalarOptions());
  }

  // Tells where one tensor is below another, in place.
  OutputOf InplaceLtTensor(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceLtTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceMaskedFillScalarOptions {
    std::optional<AttributeValue> value = {};  // required
  };
  // Overwrites the masked elements with a number.
  OutputOf InplaceMaskedFillScalar(const ListedTensor& self, const ListedTensor& mask,
                                   const InplaceMaskedFillScalarOptions& options) {
    Invocation call{.operator_name = "InplaceMaskedFillScalar"};
    AddInput("self", self, &call);
    AddInput("mask", mask, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceMaskedFillScalar(const ListedTensor& self, const ListedTensor& mask) {
    return InplaceMaskedFillScalar(self, mask, InplaceMaskedFillScalarOptions());
  }

  // Overwrites the masked elements with the number in a tensor.
  OutputOf InplaceMaskedFillTensor(const ListedTensor& self, const ListedTensor& mask,
                                   const ListedTensor& value) {
    Invocation call{.operator_name = "InplaceMaskedFillTensor"};
    AddInput("self", self, &call);
    AddInput("mask", mask, &call);
    AddInput("value", value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Overwrites the masked elements with the elements of a tensor in turn.
  OutputOf InplaceMaskedScatter(const ListedTensor& self, const ListedTensor& mask,
                                const ListedTensor& source) {
    Invocation call{.operator_name = "InplaceMaskedScatter"};
    AddInput("self", self, &call);
    AddInput("mask", mask, &call);
    AddInput("source", source, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Applies Mish, in place.
  OutputOf InplaceMish(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceMish"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Multiplies a tensor by another, in place.
  OutputOf InplaceMul(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceMul"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceMulsOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Multiplies a tensor by a number, in place.
  OutputOf InplaceMuls(const ListedTensor& self, const InplaceMulsOptions& options) {
    Invocation call{.operator_name = "InplaceMuls"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceMuls(const ListedTensor& self) { return InplaceMuls(self, InplaceMulsOptions()); }

  struct InplaceNeScalarOptions {
    std::optional<AttributeValue> other = {};  // required
  };
  // Tells where a tensor is different from a number, in place.
  OutputOf InplaceNeScalar(const ListedTensor& self, const InplaceNeScalarOptions& options) {
    Invocation call{.operator_name = "InplaceNeScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceNeScalar(const ListedTensor& self) {
    return InplaceNeScalar(self, InplaceNeScalarOptions());
  }

  // Tells where one tensor is different from another, in place.
  OutputOf InplaceNeTensor(const ListedTensor& self, const ListedTensor& other) {
    Invocation call{.operator_name = "InplaceNeTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Negates a tensor, in place.
  OutputOf InplaceNeg(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceNeg"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Fills a tensor with ones.
  OutputOf InplaceOne(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceOne"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplacePowTensorScalarOptions {
    std::optional<AttributeValue> exponent = {};  // required
  };
  // Raises a tensor to the power of a number, in place.
  OutputOf InplacePowTensorScalar(const ListedTensor& self,
                                  const InplacePowTensorScalarOptions& options) {
    Invocation call{.operator_name = "InplacePowTensorScalar"};
    AddInput("self", self, &call);
    AddAttribute("exponent", options.exponent, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplacePowTensorScalar(const ListedTensor& self) {
    return InplacePowTensorScalar(self, InplacePowTensorScalarOptions());
  }

  // Raises a tensor to the powers in another, in place.
  OutputOf InplacePowTensorTensor(const ListedTensor& self, const ListedTensor& exponent) {
    Invocation call{.operator_name = "InplacePowTensorTensor"};
    AddInput("self", self, &call);
    AddInput("exponent", exponent, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes reciprocals, in place.
  OutputOf InplaceReciprocal(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceReciprocal"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Rectifies: keeps positive elements and makes the others zero, in place.
  OutputOf InplaceRelu(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceRelu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Rounds to the nearest whole number, in place.
  OutputOf InplaceRound(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceRound"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes the reciprocal of the square root, in place.
  OutputOf InplaceRsqrt(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceRsqrt"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceScatterOptions {
    std::optional<int64_t> dim = {};            // required
    std::optional<AttributeValue> reduce = {};  // replace (0), add (1), multiply (2); 0
  };
  // Writes elements at indices along an axis, in place.
  OutputOf InplaceScatter(const ListedTensor& self, const ListedTensor& index,
                          const ListedTensor& src, const InplaceScatterOptions& options) {
    Invocation call{.operator_name = "InplaceScatter"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddInput("src", src, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("reduce", options.reduce, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceScatter(const ListedTensor& self, const ListedTensor& index,
                          const ListedTensor& src) {
    return InplaceScatter(self, index, src, InplaceScatterOptions());
  }

  struct InplaceScatterUpdateOptions {
    std::optional<int64_t> axis = {};  // -2
  };
  // Overwrites slices at indices along an axis.
  OutputOf InplaceScatterUpdate(const ListedTensor& data, const ListedTensor& indices,
                                const ListedTensor& updates,
                                const InplaceScatterUpdateOptions& options) {
    Invocation call{.operator_name = "InplaceScatterUpdate"};
    AddInput("data", data, &call);
    AddInput("indices", indices, &call);
    AddInput("updates", updates, &call);
    AddAttribute("axis", options.axis, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "data"};
  }
  OutputOf InplaceScatterUpdate(const ListedTensor& data, const ListedTensor& indices,
                                const ListedTensor& updates) {
    return InplaceScatterUpdate(data, indices, updates, InplaceScatterUpdateOptions());
  }

  struct InplaceScatterValueOptions {
    std::optional<int64_t> dim = {};            // required
    std::optional<AttributeValue> value = {};   // required
    std::optional<AttributeValue> reduce = {};  // replace (0), add (1), multiply (2); 0
  };
  // Writes a number at indices along an axis, in place.
  OutputOf InplaceScatterValue(const ListedTensor& self, const ListedTensor& index,
                               const InplaceScatterValueOptions& options) {
    Invocation call{.operator_name = "InplaceScatterValue"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("value", options.value, &call);
    AddAttribute("reduce", options.reduce, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceScatterValue(const ListedTensor& self, const ListedTensor& index) {
    return InplaceScatterValue(self, index, InplaceScatterValueOptions());
  }

  // Applies SELU, the self-normalising exponential linear unit, in place.
  OutputOf InplaceSelu(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceSelu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Applies the logistic function, in place.
  OutputOf InplaceSigmoid(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceSigmoid"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes the sine, in place.
  OutputOf InplaceSin(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceSin"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Takes the square root, in place.
  OutputOf InplaceSqrt(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceSqrt"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceSubOptions {
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Subtracts a tensor from another, in place.
  OutputOf InplaceSub(const ListedTensor& self, const ListedTensor& other,
                      const InplaceSubOptions& options) {
    Invocation call{.operator_name = "InplaceSub"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceSub(const ListedTensor& self, const ListedTensor& other) {
    return InplaceSub(self, other, InplaceSubOptions());
  }

  struct InplaceSubsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> alpha = {};  // 1
  };
  // Subtracts a number from a tensor, in place.
  OutputOf InplaceSubs(const ListedTensor& self, const InplaceSubsOptions& options) {
    Invocation call{.operator_name = "InplaceSubs"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("alpha", options.alpha, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceSubs(const ListedTensor& self) { return InplaceSubs(self, InplaceSubsOptions()); }

  // Applies the hyperbolic tangent, in place.
  OutputOf InplaceTanh(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceTanh"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct InplaceThresholdOptions {
    std::optional<AttributeValue> threshold = {};  // required
    std::optional<AttributeValue> value = {};      // required
  };
  // Replaces elements that are not above a threshold, in place.
  OutputOf InplaceThreshold(const ListedTensor& self, const InplaceThresholdOptions& options) {
    Invocation call{.operator_name = "InplaceThreshold"};
    AddInput("self", self, &call);
    AddAttribute("threshold", options.threshold, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceThreshold(const ListedTensor& self) {
    return InplaceThreshold(self, InplaceThresholdOptions());
  }

  struct InplaceTrilOptions {
    std::optional<int64_t> diagonal = {};  // 0
  };
  // Keeps the lower triangle of matrices, in place.
  OutputOf InplaceTril(const ListedTensor& self, const InplaceTrilOptions& options) {
    Invocation call{.operator_name = "InplaceTril"};
    AddInput("self", self, &call);
    AddAttribute("diagonal", options.diagonal, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceTril(const ListedTensor& self) { return InplaceTril(self, InplaceTrilOptions()); }

  struct InplaceTriuOptions {
    std::optional<int64_t> diagonal = {};  // 0
  };
  // Keeps the upper triangle of matrices, in place.
  OutputOf InplaceTriu(const ListedTensor& self, const InplaceTriuOptions& options) {
    Invocation call{.operator_name = "InplaceTriu"};
    AddInput("self", self, &call);
    AddAttribute("diagonal", options.diagonal, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }
  OutputOf InplaceTriu(const ListedTensor& self) { return InplaceTriu(self, InplaceTriuOptions()); }

  // Rounds towards zero, in place.
  OutputOf InplaceTrunc(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceTrunc"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Fills a tensor with zeros.
  OutputOf InplaceZero(const ListedTensor& self) {
    Invocation call{.operator_name = "InplaceZero"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  // Tells where a tensor is finite.
  OutputOf IsFinite(const ListedTensor& self) {
    Invocation call{.operator_name = "IsFinite"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Tells where a tensor is infinite.
  OutputOf IsInf(const ListedTensor& x) {
    Invocation call{.operator_name = "IsInf"};
    AddInput("x", x, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Tells where a tensor is -inf.
  OutputOf IsNegInf(const ListedTensor& self) {
    Invocation call{.operator_name = "IsNegInf"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Tells where a tensor is inf.
  OutputOf IsPosInf(const ListedTensor& self) {
    Invocation call{.operator_name = "IsPosInf"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct KlDivOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2), batchmean (3); 1
    std::optional<bool> log_target = {};           // false
  };
  // KL divergence loss between log-probabilities and a target.
  OutputOf KlDiv(const ListedTensor& self, const ListedTensor& target,
                 const KlDivOptions& options) {
    Invocation call{.operator_name = "KlDiv"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("log_target", options.log_target, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf KlDiv(const ListedTensor& self, const ListedTensor& target) {
    return KlDiv(self, target, KlDivOptions());
  }

  struct KlDivBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2), batchmean (3); 1
    std::optional<bool> log_target = {};           // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Gradient of the KL divergence loss with respect to its input.
  OutputOf KlDivBackward(const ListedTensor& grad_output, const ListedTensor& self,
                         const ListedTensor& target, const KlDivBackwardOptions& options) {
    Invocation call{.operator_name = "KlDivBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("log_target", options.log_target, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf KlDivBackward(const ListedTensor& grad_output, const ListedTensor& self,
                         const ListedTensor& target) {
    return KlDivBackward(grad_output, self, target, KlDivBackwardOptions());
  }

  struct KlDivTargetBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2), batchmean (3); 1
    std::optional<bool> log_target = {};           // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Gradient of the KL divergence loss with respect to its target.
  OutputOf KlDivTargetBackward(const ListedTensor& grad_output, const ListedTensor& self,
                               const ListedTensor& target,
                               const KlDivTargetBackwardOptions& options) {
    Invocation call{.operator_name = "KlDivTargetBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("log_target", options.log_target, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_target"};
  }
  OutputOf KlDivTargetBackward(const ListedTensor& grad_output, const ListedTensor& self,
                               const ListedTensor& target) {
    return KlDivTargetBackward(grad_output, self, target, KlDivTargetBackwardOptions());
  }

  struct L1LossOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Mean absolute error between two tensors.
  OutputOf L1Loss(const ListedTensor& self, const ListedTensor& target,
                  const L1LossOptions& options) {
    Invocation call{.operator_name = "L1Loss"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf L1Loss(const ListedTensor& self, const ListedTensor& target) {
    return L1Loss(self, target, L1LossOptions());
  }

  struct L1LossBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Gradient of the L1 (mean absolute error) loss with respect to its input.
  OutputOf L1LossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                          const ListedTensor& target, const L1LossBackwardOptions& options) {
    Invocation call{.operator_name = "L1LossBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf L1LossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                          const ListedTensor& target) {
    return L1LossBackward(grad_output, self, target, L1LossBackwardOptions());
  }

  struct LayerNormOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> bias = {};
    NumberList<int64_t> normalized_shape = {};  // required
    std::optional<double> eps = {};             // 1e-05
    std::vector<OutputDataType> output_dtypes = {};
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct LayerNormOutputs {
    OutputOf out;
    OutputOf mean_out;
    OutputOf rstd_out;
  };
  // Layer normalisation.
  LayerNormOutputs LayerNorm(const ListedTensor& input, const LayerNormOptions& options) {
    Invocation call{.operator_name = "LayerNorm"};
    AddInput("input", input, &call);
    AddInput("weight", options.weight, &call);
    AddInput("bias", options.bias, &call);
    AddAttribute("normalized_shape", options.normalized_shape, &call);
    AddAttribute("eps", options.eps, &call);
    call.output_dtypes = options.output_dtypes;
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "mean_out"}, {number, "rstd_out"}};
  }
  LayerNormOutputs LayerNorm(const ListedTensor& input) {
    return LayerNorm(input, LayerNormOptions());
  }

  struct LayerNormBackwardOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> bias = {};
    NumberList<int64_t> normalized_shape = {};     // required
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct LayerNormBackwardOutputs {
    OutputOf grad_input_out;
    OutputOf grad_weight_out;
    OutputOf grad_bias_out;
  };
  // Gradients of layer normalisation.
  LayerNormBackwardOutputs LayerNormBackward(const ListedTensor& grad_out,
                                             const ListedTensor& input, const ListedTensor& mean,
                                             const ListedTensor& rstd,
                                             const LayerNormBackwardOptions& options) {
    Invocation call{.operator_name = "LayerNormBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("input", input, &call);
    AddInput("mean", mean, &call);
    AddInput("rstd", rstd, &call);
    AddInput("weight", options.weight, &call);
    AddInput("bias", options.bias, &call);
    AddAttribute("normalized_shape", options.normalized_shape, &call);
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "grad_input_out"}, {number, "grad_weight_out"}, {number, "grad_bias_out"}};
  }
  LayerNormBackwardOutputs LayerNormBackward(const ListedTensor& grad_out,
                                             const ListedTensor& input, const ListedTensor& mean,
                                             const ListedTensor& rstd) {
    return LayerNormBackward(grad_out, input, mean, rstd, LayerNormBackwardOptions());
  }

  struct LayerNormWithImplModeOptions {
    std::optional<ListedTensor> weight = {};
    std::optional<ListedTensor> bias = {};
    NumberList<int64_t> normalized_shape = {};     // required
    std::optional<double> eps = {};                // 1e-05
    std::optional<AttributeValue> impl_mode = {};  // precise (0), fast (1), keep_fp16 (2); 0
    std::vector<OutputDataType> output_dtypes = {};
    std::vector<std::string> masked_outputs = {};  // as Invocation's
  };
  struct LayerNormWithImplModeOutputs {
    OutputOf out;
    OutputOf mean_out;
    OutputOf rstd_out;
  };
  // Layer normalisation with a choice of precision.
  LayerNormWithImplModeOutputs LayerNormWithImplMode(const ListedTensor& input,
                                                     const LayerNormWithImplModeOptions& options) {
    Invocation call{.operator_name = "LayerNormWithImplMode"};
    AddInput("input", input, &call);
    AddInput("weight", options.weight, &call);
    AddInput("bias", options.bias, &call);
    AddAttribute("normalized_shape", options.normalized_shape, &call);
    AddAttribute("eps", options.eps, &call);
    AddAttribute("impl_mode", options.impl_mode, &call);
    call.output_dtypes = options.output_dtypes;
    call.masked_outputs = options.masked_outputs;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "mean_out"}, {number, "rstd_out"}};
  }
  LayerNormWithImplModeOutputs LayerNormWithImplMode(const ListedTensor& input) {
    return LayerNormWithImplMode(input, LayerNormWithImplModeOptions());
  }

  struct LeScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where a tensor is not above a number.
  OutputOf LeScalar(const ListedTensor& self, const LeScalarOptions& options) {
    Invocation call{.operator_name = "LeScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LeScalar(const ListedTensor& self) { return LeScalar(self, LeScalarOptions()); }

  struct LeTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where one tensor is not above another.
  OutputOf LeTensor(const ListedTensor& self, const ListedTensor& other,
                    const LeTensorOptions& options) {
    Invocation call{.operator_name = "LeTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LeTensor(const ListedTensor& self, const ListedTensor& other) {
    return LeTensor(self, other, LeTensorOptions());
  }

  struct LeakyReluOptions {
    std::optional<AttributeValue> negative_slope = {};  // 0.01
  };
  // Applies leaky relu.
  OutputOf LeakyRelu(const ListedTensor& self, const LeakyReluOptions& options) {
    Invocation call{.operator_name = "LeakyRelu"};
    AddInput("self", self, &call);
    AddAttribute("negative_slope", options.negative_slope, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LeakyRelu(const ListedTensor& self) { return LeakyRelu(self, LeakyReluOptions()); }

  struct LeakyReluBackwardOptions {
    std::optional<AttributeValue> negative_slope = {};  // 0.01
    std::optional<bool> self_is_result = {};            // false
  };
  // Gradient of leaky relu with respect to its input.
  OutputOf LeakyReluBackward(const ListedTensor& grad_output, const ListedTensor& self,
                             const LeakyReluBackwardOptions& options) {
    Invocation call{.operator_name = "LeakyReluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("negative_slope", options.negative_slope, &call);
    AddAttribute("self_is_result", options.self_is_result, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LeakyReluBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return LeakyReluBackward(grad_output, self, LeakyReluBackwardOptions());
  }

  // Interpolates between two tensors with a weight for each element.
  OutputOf Lerp(const ListedTensor& self, const ListedTensor& end, const ListedTensor& weight) {
    Invocation call{.operator_name = "Lerp"};
    AddInput("self", self, &call);
    AddInput("end", end, &call);
    AddInput("weight", weight, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct LerpsOptions {
    std::optional<AttributeValue> weight = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Interpolates between two tensors with one weight.
  OutputOf Lerps(const ListedTensor& self, const ListedTensor& end, const LerpsOptions& options) {
    Invocation call{.operator_name = "Lerps"};
    AddInput("self", self, &call);
    AddInput("end", end, &call);
    AddAttribute("weight", options.weight, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Lerps(const ListedTensor& self, const ListedTensor& end) {
    return Lerps(self, end, LerpsOptions());
  }

  struct LinalgVectorNormOptions {
    std::optional<AttributeValue> ord = {};  // 2
    NumberList<int64_t> dims = {};           // left out
    std::optional<bool> keep_dims = {};      // false
    std::optional<DataType> dtype = {};      // required
  };
  // Vector norm along axes in a chosen dtype.
  OutputOf LinalgVectorNorm(const ListedTensor& self, const LinalgVectorNormOptions& options) {
    Invocation call{.operator_name = "LinalgVectorNorm"};
    AddInput("self", self, &call);
    AddAttribute("ord", options.ord, &call);
    AddAttribute("dims", options.dims, &call);
    AddAttribute("keep_dims", options.keep_dims, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LinalgVectorNorm(const ListedTensor& self) {
    return LinalgVectorNorm(self, LinalgVectorNormOptions());
  }

  struct LinspaceOptions {
    std::optional<AttributeValue> start = {};  // required
    std::optional<AttributeValue> end = {};    // required
    std::optional<int64_t> steps = {};         // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Lists numbers from one to another.
  OutputOf Linspace(const LinspaceOptions& options) {
    Invocation call{.operator_name = "Linspace"};
    AddAttribute("start", options.start, &call);
    AddAttribute("end", options.end, &call);
    AddAttribute("steps", options.steps, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Linspace() { return Linspace(LinspaceOptions()); }

  struct LogOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the natural logarithm.
  OutputOf Log(const ListedTensor& self, const LogOptions& options) {
    Invocation call{.operator_name = "Log"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Log(const ListedTensor& self) { return Log(self, LogOptions()); }

  struct Log10Options {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the logarithm to base ten.
  OutputOf Log10(const ListedTensor& self, const Log10Options& options) {
    Invocation call{.operator_name = "Log10"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Log10(const ListedTensor& self) { return Log10(self, Log10Options()); }

  struct Log1pOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the natural logarithm of one plus a tensor.
  OutputOf Log1p(const ListedTensor& self, const Log1pOptions& options) {
    Invocation call{.operator_name = "Log1p"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Log1p(const ListedTensor& self) { return Log1p(self, Log1pOptions()); }

  struct Log2Options {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the logarithm to base two.
  OutputOf Log2(const ListedTensor& self, const Log2Options& options) {
    Invocation call{.operator_name = "Log2"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Log2(const ListedTensor& self) { return Log2(self, Log2Options()); }

  // Takes the logarithm of the logistic function.
  OutputOf LogSigmoid(const ListedTensor& self) {
    Invocation call{.operator_name = "LogSigmoid"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of the logarithm of the logistic function with respect to its input.
  OutputOf LogSigmoidBackward(const ListedTensor& grad_output, const ListedTensor& self,
                              const ListedTensor& buffer) {
    Invocation call{.operator_name = "LogSigmoidBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("buffer", buffer, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct LogSigmoidForwardOutputs {
    OutputOf out;
    OutputOf buffer;
  };
  // Takes the logarithm of the logistic function, with a buffer for its gradient.
  LogSigmoidForwardOutputs LogSigmoidForward(const ListedTensor& self) {
    Invocation call{.operator_name = "LogSigmoidForward"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "buffer"}};
  }

  struct LogSoftmaxOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Logarithm of softmax along an axis.
  OutputOf LogSoftmax(const ListedTensor& self, const LogSoftmaxOptions& options) {
    Invocation call{.operator_name = "LogSoftmax"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogSoftmax(const ListedTensor& self) { return LogSoftmax(self, LogSoftmaxOptions()); }

  struct LogSoftmaxBackwardOptions {
    std::optional<int64_t> dim = {};  // -1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Gradient of log-softmax with respect to its input.
  OutputOf LogSoftmaxBackward(const ListedTensor& grad_output, const ListedTensor& output,
                              const LogSoftmaxBackwardOptions& options) {
    Invocation call{.operator_name = "LogSoftmaxBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("output", output, &call);
    AddAttribute("dim", options.dim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogSoftmaxBackward(const ListedTensor& grad_output, const ListedTensor& output) {
    return LogSoftmaxBackward(grad_output, output, LogSoftmaxBackwardOptions());
  }

  struct LogSumExpOptions {
    NumberList<int64_t> dim = {};       // required
    std::optional<bool> keep_dim = {};  // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Logarithm of the sum of exponentials.
  OutputOf LogSumExp(const ListedTensor& self, const LogSumExpOptions& options) {
    Invocation call{.operator_name = "LogSumExp"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogSumExp(const ListedTensor& self) { return LogSumExp(self, LogSumExpOptions()); }

  struct LogicalAndOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins two tensors by logical and.
  OutputOf LogicalAnd(const ListedTensor& self, const ListedTensor& other,
                      const LogicalAndOptions& options) {
    Invocation call{.operator_name = "LogicalAnd"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogicalAnd(const ListedTensor& self, const ListedTensor& other) {
    return LogicalAnd(self, other, LogicalAndOptions());
  }

  struct LogicalNotOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Negates logically.
  OutputOf LogicalNot(const ListedTensor& self, const LogicalNotOptions& options) {
    Invocation call{.operator_name = "LogicalNot"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogicalNot(const ListedTensor& self) { return LogicalNot(self, LogicalNotOptions()); }

  struct LogicalOrOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins two tensors by logical or.
  OutputOf LogicalOr(const ListedTensor& self, const ListedTensor& other,
                     const LogicalOrOptions& options) {
    Invocation call{.operator_name = "LogicalOr"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogicalOr(const ListedTensor& self, const ListedTensor& other) {
    return LogicalOr(self, other, LogicalOrOptions());
  }

  struct LogicalXorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where exactly one of two tensors is true.
  OutputOf LogicalXor(const ListedTensor& self, const ListedTensor& other,
                      const LogicalXorOptions& options) {
    Invocation call{.operator_name = "LogicalXor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogicalXor(const ListedTensor& self, const ListedTensor& other) {
    return LogicalXor(self, other, LogicalXorOptions());
  }

  struct LogitOptions {
    std::optional<double> eps = {};  // -1.0
  };
  // Takes the logit of probabilities.
  OutputOf Logit(const ListedTensor& input, const LogitOptions& options) {
    Invocation call{.operator_name = "Logit"};
    AddInput("input", input, &call);
    AddAttribute("eps", options.eps, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Logit(const ListedTensor& input) { return Logit(input, LogitOptions()); }

  struct LogitGradOptions {
    std::optional<double> eps = {};  // -1.0
  };
  // Gradient of the logit with respect to the probabilities.
  OutputOf LogitGrad(const ListedTensor& x, const ListedTensor& dy,
                     const LogitGradOptions& options) {
    Invocation call{.operator_name = "LogitGrad"};
    AddInput("x", x, &call);
    AddInput("dy", dy, &call);
    AddAttribute("eps", options.eps, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LogitGrad(const ListedTensor& x, const ListedTensor& dy) {
    return LogitGrad(x, dy, LogitGradOptions());
  }

  struct LtScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where a tensor is below a number.
  OutputOf LtScalar(const ListedTensor& self, const LtScalarOptions& options) {
    Invocation call{.operator_name = "LtScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LtScalar(const ListedTensor& self) { return LtScalar(self, LtScalarOptions()); }

  struct LtTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where one tensor is below another.
  OutputOf LtTensor(const ListedTensor& self, const ListedTensor& other,
                    const LtTensorOptions& options) {
    Invocation call{.operator_name = "LtTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf LtTensor(const ListedTensor& self, const ListedTensor& other) {
    return LtTensor(self, other, LtTensorOptions());
  }

  struct MatmulOptions {
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Matrix product by the rules of torch.matmul.
  OutputOf Matmul(const ListedTensor& self, const ListedTensor& mat2,
                  const MatmulOptions& options) {
    Invocation call{.operator_name = "Matmul"};
    AddInput("self", self, &call);
    AddInput("mat2", mat2, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Matmul(const ListedTensor& self, const ListedTensor& mat2) {
    return Matmul(self, mat2, MatmulOptions());
  }

  // The largest element of a tensor.
  OutputOf Max(const ListedTensor& self) {
    Invocation call{.operator_name = "Max"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct MaxDimOptions {
    std::optional<int64_t> dim = {};   // required
    std::optional<bool> keepdim = {};  // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  struct MaxDimOutputs {
    OutputOf out;
    OutputOf indices;
  };
  // Largest elements along an axis and where they are.
  MaxDimOutputs MaxDim(const ListedTensor& self, const MaxDimOptions& options) {
    Invocation call{.operator_name = "MaxDim"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "indices"}};
  }
  MaxDimOutputs MaxDim(const ListedTensor& self) { return MaxDim(self, MaxDimOptions()); }

  struct MaxPool2dWithIndicesOptions {
    NumberList<int64_t> kernel_size = {};  // required
    NumberList<int64_t> stride = {};       // required
    NumberList<int64_t> padding = {};      // required
    NumberList<int64_t> dilation = {};     // required
    std::optional<bool> ceil_mode = {};    // false
    std::vector<OutputDataType> output_dtypes = {};
  };
  struct MaxPool2dWithIndicesOutputs {
    OutputOf out;
    OutputOf indices;
  };
  // Largest elements of windows of images, and where they are.
  MaxPool2dWithIndicesOutputs MaxPool2dWithIndices(const ListedTensor& self,
                                                   const MaxPool2dWithIndicesOptions& options) {
    Invocation call{.operator_name = "MaxPool2dWithIndices"};
    AddInput("self", self, &call);
    AddAttribute("kernel_size", options.kernel_size, &call);
    AddAttribute("stride", options.stride, &call);
    AddAttribute("padding", options.padding, &call);
    AddAttribute("dilation", options.dilation, &call);
    AddAttribute("ceil_mode", options.ceil_mode, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "indices"}};
  }
  MaxPool2dWithIndicesOutputs MaxPool2dWithIndices(const ListedTensor& self) {
    return MaxPool2dWithIndices(self, MaxPool2dWithIndicesOptions());
  }

  struct MaxPool2dWithIndicesBackwardOptions {
    NumberList<int64_t> kernel_size = {};  // required
    NumberList<int64_t> stride = {};       // required
    NumberList<int64_t> padding = {};      // required
    NumberList<int64_t> dilation = {};     // required
    std::optional<bool> ceil_mode = {};    // false
  };
  // Gradient of the largest elements of windows of images.
  OutputOf MaxPool2dWithIndicesBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                        const ListedTensor& indices,
                                        const MaxPool2dWithIndicesBackwardOptions& options) {
    Invocation call{.operator_name = "MaxPool2dWithIndicesBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("indices", indices, &call);
    AddAttribute("kernel_size", options.kernel_size, &call);
    AddAttribute("stride", options.stride, &call);
    AddAttribute("padding", options.padding, &call);
    AddAttribute("dilation", options.dilation, &call);
    AddAttribute("ceil_mode", options.ceil_mode, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf MaxPool2dWithIndicesBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                        const ListedTensor& indices) {
    return MaxPool2dWithIndicesBackward(grad_output, self, indices,
                                        MaxPool2dWithIndicesBackwardOptions());
  }

  struct MaximumOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the larger of two tensors, element by element.
  OutputOf Maximum(const ListedTensor& self, const ListedTensor& other,
                   const MaximumOptions& options) {
    Invocation call{.operator_name = "Maximum"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Maximum(const ListedTensor& self, const ListedTensor& other) {
    return Maximum(self, other, MaximumOptions());
  }

  struct MeanOptions {
    NumberList<int64_t> dim = {};        // required
    std::optional<bool> keep_dim = {};   // false
    std::optional<DataType> dtype = {};  // required
  };
  // Mean along axes.
  OutputOf Mean(const ListedTensor& self, const MeanOptions& options) {
    Invocation call{.operator_name = "Mean"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Mean(const ListedTensor& self) { return Mean(self, MeanOptions()); }

  struct MeanV2Options {
    NumberList<int64_t> dim = {};                   // required
    std::optional<bool> keep_dim = {};              // false
    std::optional<bool> noop_with_empty_axes = {};  // false
  };
  // Mean along axes, or a copy for no axes.
  OutputOf MeanV2(const ListedTensor& self, const MeanV2Options& options) {
    Invocation call{.operator_name = "MeanV2"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    AddAttribute("noop_with_empty_axes", options.noop_with_empty_axes, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf MeanV2(const ListedTensor& self) { return MeanV2(self, MeanV2Options()); }

  // The smallest element of a tensor.
  OutputOf Min(const ListedTensor& self) {
    Invocation call{.operator_name = "Min"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct MinDimOptions {
    std::optional<int64_t> dim = {};   // required
    std::optional<bool> keepdim = {};  // false
  };
  struct MinDimOutputs {
    OutputOf out;
    OutputOf indices;
  };
  // Smallest elements along an axis and where they are.
  MinDimOutputs MinDim(const ListedTensor& self, const MinDimOptions& options) {
    Invocation call{.operator_name = "MinDim"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "indices"}};
  }
  MinDimOutputs MinDim(const ListedTensor& self) { return MinDim(self, MinDimOptions()); }

  struct MinimumOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the smaller of two tensors, element by element.
  OutputOf Minimum(const ListedTensor& self, const ListedTensor& other,
                   const MinimumOptions& options) {
    Invocation call{.operator_name = "Minimum"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Minimum(const ListedTensor& self, const ListedTensor& other) {
    return Minimum(self, other, MinimumOptions());
  }

  // Applies Mish.
  OutputOf Mish(const ListedTensor& self) {
    Invocation call{.operator_name = "Mish"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of Mish with respect to its input.
  OutputOf MishBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "MishBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct MmOptions {
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Product of two matrices.
  OutputOf Mm(const ListedTensor& self, const ListedTensor& mat2, const MmOptions& options) {
    Invocation call{.operator_name = "Mm"};
    AddInput("self", self, &call);
    AddInput("mat2", mat2, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Mm(const ListedTensor& self, const ListedTensor& mat2) {
    return Mm(self, mat2, MmOptions());
  }

  struct MseLossOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Mean squared error between two tensors.
  OutputOf MseLoss(const ListedTensor& self, const ListedTensor& target,
                   const MseLossOptions& options) {
    Invocation call{.operator_name = "MseLoss"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf MseLoss(const ListedTensor& self, const ListedTensor& target) {
    return MseLoss(self, target, MseLossOptions());
  }

  struct MseLossBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Gradient of the mean squared error loss with respect to its input.
  OutputOf MseLossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                           const ListedTensor& target, const MseLossBackwardOptions& options) {
    Invocation call{.operator_name = "MseLossBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf MseLossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                           const ListedTensor& target) {
    return MseLossBackward(grad_output, self, target, MseLossBackwardOptions());
  }

  struct MulOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Multiplies two tensors.
  OutputOf Mul(const ListedTensor& self, const ListedTensor& other, const MulOptions& options) {
    Invocation call{.operator_name = "Mul"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Mul(const ListedTensor& self, const ListedTensor& other) {
    return Mul(self, other, MulOptions());
  }

  struct MulsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Multiplies a tensor by a number.
  OutputOf Muls(const ListedTensor& self, const MulsOptions& options) {
    Invocation call{.operator_name = "Muls"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Muls(const ListedTensor& self) { return Muls(self, MulsOptions()); }

  struct MultilabelMarginLossOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  struct MultilabelMarginLossOutputs {
    OutputOf out;
    OutputOf is_target;
  };
  // Margin loss for several target classes of each sample.
  MultilabelMarginLossOutputs MultilabelMarginLoss(const ListedTensor& self,
                                                   const ListedTensor& target,
                                                   const MultilabelMarginLossOptions& options) {
    Invocation call{.operator_name = "MultilabelMarginLoss"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "is_target"}};
  }
  MultilabelMarginLossOutputs MultilabelMarginLoss(const ListedTensor& self,
                                                   const ListedTensor& target) {
    return MultilabelMarginLoss(self, target, MultilabelMarginLossOptions());
  }

  struct MvOptions {
    std::optional<AttributeValue> cube_math_type =
        {};  // keep (0), allow_hf32 (1), use_fp16 (2), use_hf32 (3); 0
  };
  // Product of a matrix and a vector.
  OutputOf Mv(const ListedTensor& self, const ListedTensor& vec, const MvOptions& options) {
    Invocation call{.operator_name = "Mv"};
    AddInput("self", self, &call);
    AddInput("vec", vec, &call);
    AddAttribute("cube_math_type", options.cube_math_type, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Mv(const ListedTensor& self, const ListedTensor& vec) {
    return Mv(self, vec, MvOptions());
  }

  struct NanToNumOptions {
    std::optional<double> nan = {};     // 0.0
    std::optional<double> posinf = {};  // required
    std::optional<double> neginf = {};  // required
  };
  // Replaces NaN and infinities by numbers.
  OutputOf NanToNum(const ListedTensor& self, const NanToNumOptions& options) {
    Invocation call{.operator_name = "NanToNum"};
    AddInput("self", self, &call);
    AddAttribute("nan", options.nan, &call);
    AddAttribute("posinf", options.posinf, &call);
    AddAttribute("neginf", options.neginf, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf NanToNum(const ListedTensor& self) { return NanToNum(self, NanToNumOptions()); }

  struct NeScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where a tensor is different from a number.
  OutputOf NeScalar(const ListedTensor& self, const NeScalarOptions& options) {
    Invocation call{.operator_name = "NeScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf NeScalar(const ListedTensor& self) { return NeScalar(self, NeScalarOptions()); }

  struct NeTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Tells where one tensor is different from another.
  OutputOf NeTensor(const ListedTensor& self, const ListedTensor& other,
                    const NeTensorOptions& options) {
    Invocation call{.operator_name = "NeTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf NeTensor(const ListedTensor& self, const ListedTensor& other) {
    return NeTensor(self, other, NeTensorOptions());
  }

  // Negates a tensor.
  OutputOf Neg(const ListedTensor& self) {
    Invocation call{.operator_name = "Neg"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct NllLossOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::optional<int64_t> ignore_index = {};      // -100
  };
  struct NllLossOutputs {
    OutputOf out;
    OutputOf total_weight_out;
  };
  // Negative log likelihood of target classes.
  NllLossOutputs NllLoss(const ListedTensor& self, const ListedTensor& target,
                         const ListedTensor& weight, const NllLossOptions& options) {
    Invocation call{.operator_name = "NllLoss"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("ignore_index", options.ignore_index, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "total_weight_out"}};
  }
  NllLossOutputs NllLoss(const ListedTensor& self, const ListedTensor& target,
                         const ListedTensor& weight) {
    return NllLoss(self, target, weight, NllLossOptions());
  }

  struct NllLoss2dOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::optional<int64_t> ignore_index = {};      // -100
  };
  struct NllLoss2dOutputs {
    OutputOf out;
    OutputOf total_weight_out;
  };
  // Negative log likelihood of target classes for each point of an image.
  NllLoss2dOutputs NllLoss2d(const ListedTensor& self, const ListedTensor& target,
                             const ListedTensor& weight, const NllLoss2dOptions& options) {
    Invocation call{.operator_name = "NllLoss2d"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("ignore_index", options.ignore_index, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "out"}, {number, "total_weight_out"}};
  }
  NllLoss2dOutputs NllLoss2d(const ListedTensor& self, const ListedTensor& target,
                             const ListedTensor& weight) {
    return NllLoss2d(self, target, weight, NllLoss2dOptions());
  }

  struct NllLoss2dBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::optional<int64_t> ignore_index = {};      // -100
  };
  // Gradient of the negative log likelihood for each point of an image with respect to its input.
  OutputOf NllLoss2dBackward(const ListedTensor& grad_output, const ListedTensor& self,
                             const ListedTensor& target, const ListedTensor& weight,
                             const ListedTensor& total_weight,
                             const NllLoss2dBackwardOptions& options) {
    Invocation call{.operator_name = "NllLoss2dBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", weight, &call);
    AddInput("total_weight", total_weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("ignore_index", options.ignore_index, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf NllLoss2dBackward(const ListedTensor& grad_output, const ListedTensor& self,
                             const ListedTensor& target, const ListedTensor& weight,
                             const ListedTensor& total_weight) {
    return NllLoss2dBackward(grad_output, self, target, weight, total_weight,
                             NllLoss2dBackwardOptions());
  }

  struct NllLossBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::optional<int64_t> ignore_index = {};      // -100
  };
  // Gradient of the negative log likelihood with respect to its input.
  OutputOf NllLossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                           const ListedTensor& target, const ListedTensor& weight,
                           const ListedTensor& total_weight,
                           const NllLossBackwardOptions& options) {
    Invocation call{.operator_name = "NllLossBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddInput("weight", weight, &call);
    AddInput("total_weight", total_weight, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("ignore_index", options.ignore_index, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf NllLossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                           const ListedTensor& target, const ListedTensor& weight,
                           const ListedTensor& total_weight) {
    return NllLossBackward(grad_output, self, target, weight, total_weight,
                           NllLossBackwardOptions());
  }

  struct NormOptions {
    std::optional<AttributeValue> p_scalar = {};  // left out
    NumberList<int64_t> dim = {};                 // required
    std::optional<bool> keepdim = {};             // false
  };
  // Vector norm along axes.
  OutputOf Norm(const ListedTensor& self, const NormOptions& options) {
    Invocation call{.operator_name = "Norm"};
    AddInput("self", self, &call);
    AddAttribute("p_scalar", options.p_scalar, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Norm(const ListedTensor& self) { return Norm(self, NormOptions()); }

  struct OneHotOptions {
    std::optional<int64_t> num_classes = {};  // required
    std::optional<int64_t> axis = {};         // -1
  };
  // Marks classes along a new axis.
  OutputOf OneHot(const ListedTensor& self, const ListedTensor& on_value,
                  const ListedTensor& off_value, const OneHotOptions& options) {
    Invocation call{.operator_name = "OneHot"};
    AddInput("self", self, &call);
    AddInput("on_value", on_value, &call);
    AddInput("off_value", off_value, &call);
    AddAttribute("num_classes", options.num_classes, &call);
    AddAttribute("axis", options.axis, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf OneHot(const ListedTensor& self, const ListedTensor& on_value,
                  const ListedTensor& off_value) {
    return OneHot(self, on_value, off_value, OneHotOptions());
  }

  struct PermuteOptions {
    NumberList<int64_t> dims = {};  // required
  };
  // Reorders axes.
  OutputOf Permute(const ListedTensor& self, const PermuteOptions& options) {
    Invocation call{.operator_name = "Permute"};
    AddInput("self", self, &call);
    AddAttribute("dims", options.dims, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Permute(const ListedTensor& self) { return Permute(self, PermuteOptions()); }

  struct PowScalarTensorOptions {
    std::optional<AttributeValue> self = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Raises a number to the powers in a tensor.
  OutputOf PowScalarTensor(const ListedTensor& exponent, const PowScalarTensorOptions& options) {
    Invocation call{.operator_name = "PowScalarTensor"};
    AddInput("exponent", exponent, &call);
    AddAttribute("self", options.self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf PowScalarTensor(const ListedTensor& exponent) {
    return PowScalarTensor(exponent, PowScalarTensorOptions());
  }

  struct PowTensorScalarOptions {
    std::optional<AttributeValue> exponent = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Raises a tensor to the power of a number.
  OutputOf PowTensorScalar(const ListedTensor& self, const PowTensorScalarOptions& options) {
    Invocation call{.operator_name = "PowTensorScalar"};
    AddInput("self", self, &call);
    AddAttribute("exponent", options.exponent, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf PowTensorScalar(const ListedTensor& self) {
    return PowTensorScalar(self, PowTensorScalarOptions());
  }

  struct PowTensorTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Raises a tensor to the powers in another.
  OutputOf PowTensorTensor(const ListedTensor& self, const ListedTensor& exponent,
                           const PowTensorTensorOptions& options) {
    Invocation call{.operator_name = "PowTensorTensor"};
    AddInput("self", self, &call);
    AddInput("exponent", exponent, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf PowTensorTensor(const ListedTensor& self, const ListedTensor& exponent) {
    return PowTensorTensor(self, exponent, PowTensorTensorOptions());
  }

  // Applies leaky relu with learnt slopes.
  OutputOf Prelu(const ListedTensor& self, const ListedTensor& weight) {
    Invocation call{.operator_name = "Prelu"};
    AddInput("self", self, &call);
    AddInput("weight", weight, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct PreluBackwardOutputs {
    OutputOf grad_input;
    OutputOf grad_weight;
  };
  // Gradients of leaky relu with learnt slopes.
  PreluBackwardOutputs PreluBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                     const ListedTensor& weight) {
    Invocation call{.operator_name = "PreluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("weight", weight, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "grad_input"}, {number, "grad_weight"}};
  }

  struct ProdOptions {
    std::optional<DataType> dtype = {};  // required
  };
  // Product of all elements.
  OutputOf Prod(const ListedTensor& self, const ProdOptions& options) {
    Invocation call{.operator_name = "Prod"};
    AddInput("self", self, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Prod(const ListedTensor& self) { return Prod(self, ProdOptions()); }

  struct ProdDimOptions {
    std::optional<int64_t> dim = {};     // required
    std::optional<bool> keep_dim = {};   // false
    std::optional<DataType> dtype = {};  // required
  };
  // Product along an axis.
  OutputOf ProdDim(const ListedTensor& self, const ProdDimOptions& options) {
    Invocation call{.operator_name = "ProdDim"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ProdDim(const ListedTensor& self) { return ProdDim(self, ProdDimOptions()); }

  struct ReciprocalOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes reciprocals.
  OutputOf Reciprocal(const ListedTensor& self, const ReciprocalOptions& options) {
    Invocation call{.operator_name = "Reciprocal"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Reciprocal(const ListedTensor& self) { return Reciprocal(self, ReciprocalOptions()); }

  struct ReduceNansumOptions {
    NumberList<int64_t> dim = {};        // required
    std::optional<bool> keep_dim = {};   // false
    std::optional<DataType> dtype = {};  // required
  };
  // Sum along axes that leaves NaN out.
  OutputOf ReduceNansum(const ListedTensor& self, const ReduceNansumOptions& options) {
    Invocation call{.operator_name = "ReduceNansum"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("keep_dim", options.keep_dim, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ReduceNansum(const ListedTensor& self) {
    return ReduceNansum(self, ReduceNansumOptions());
  }

  struct ReduceSumOptions {
    NumberList<int64_t> dims = {};       // required
    std::optional<bool> keep_dims = {};  // false
    std::optional<DataType> dtype = {};  // required
  };
  // Sum along axes.
  OutputOf ReduceSum(const ListedTensor& self, const ReduceSumOptions& options) {
    Invocation call{.operator_name = "ReduceSum"};
    AddInput("self", self, &call);
    AddAttribute("dims", options.dims, &call);
    AddAttribute("keep_dims", options.keep_dims, &call);
    AddAttribute("dtype", options.dtype, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ReduceSum(const ListedTensor& self) { return ReduceSum(self, ReduceSumOptions()); }

  // Rectifies: keeps positive elements and makes the others zero.
  OutputOf Relu(const ListedTensor& self) {
    Invocation call{.operator_name = "Relu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct RemainderScalarTensorOptions {
    std::optional<AttributeValue> self = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the remainder of a number and a tensor with the divisor's sign.
  OutputOf RemainderScalarTensor(const ListedTensor& other,
                                 const RemainderScalarTensorOptions& options) {
    Invocation call{.operator_name = "RemainderScalarTensor"};
    AddInput("other", other, &call);
    AddAttribute("self", options.self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf RemainderScalarTensor(const ListedTensor& other) {
    return RemainderScalarTensor(other, RemainderScalarTensorOptions());
  }

  struct RemainderTensorScalarOptions {
    std::optional<AttributeValue> other = {};  // required
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the remainder of a tensor and a number with the divisor's sign.
  OutputOf RemainderTensorScalar(const ListedTensor& self,
                                 const RemainderTensorScalarOptions& options) {
    Invocation call{.operator_name = "RemainderTensorScalar"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf RemainderTensorScalar(const ListedTensor& self) {
    return RemainderTensorScalar(self, RemainderTensorScalarOptions());
  }

  struct RemainderTensorTensorOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the remainder of two tensors with the divisor's sign.
  OutputOf RemainderTensorTensor(const ListedTensor& self, const ListedTensor& other,
                                 const RemainderTensorTensorOptions& options) {
    Invocation call{.operator_name = "RemainderTensorTensor"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf RemainderTensorTensor(const ListedTensor& self, const ListedTensor& other) {
    return RemainderTensorTensor(self, other, RemainderTensorTensorOptions());
  }

  struct RenormOptions {
    std::optional<AttributeValue> p = {};         // 2
    std::optional<int64_t> dim = {};              // required
    std::optional<AttributeValue> max_norm = {};  // required
  };
  // Limits the norms of slices.
  OutputOf Renorm(const ListedTensor& self, const RenormOptions& options) {
    Invocation call{.operator_name = "Renorm"};
    AddInput("self", self, &call);
    AddAttribute("p", options.p, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("max_norm", options.max_norm, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Renorm(const ListedTensor& self) { return Renorm(self, RenormOptions()); }

  struct RepeatOptions {
    NumberList<int64_t> repeats = {};  // required
  };
  // Repeats a tensor along its axes.
  OutputOf Repeat(const ListedTensor& self, const RepeatOptions& options) {
    Invocation call{.operator_name = "Repeat"};
    AddInput("self", self, &call);
    AddAttribute("repeats", options.repeats, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Repeat(const ListedTensor& self) { return Repeat(self, RepeatOptions()); }

  struct RmsNormOptions {
    std::optional<double> epsilon = {};  // 1e-06
  };
  struct RmsNormOutputs {
    OutputOf y_out;
    OutputOf rstd_out;
  };
  // Normalisation by the root mean square.
  RmsNormOutputs RmsNorm(const ListedTensor& x, const ListedTensor& gamma,
                         const RmsNormOptions& options) {
    Invocation call{.operator_name = "RmsNorm"};
    AddInput("x", x, &call);
    AddInput("gamma", gamma, &call);
    AddAttribute("epsilon", options.epsilon, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "y_out"}, {number, "rstd_out"}};
  }
  RmsNormOutputs RmsNorm(const ListedTensor& x, const ListedTensor& gamma) {
    return RmsNorm(x, gamma, RmsNormOptions());
  }

  struct RmsNormGradOutputs {
    OutputOf dx_out;
    OutputOf dgamma_out;
  };
  // Gradients of normalisation by the root mean square.
  RmsNormGradOutputs RmsNormGrad(const ListedTensor& dy, const ListedTensor& x,
                                 const ListedTensor& rstd, const ListedTensor& gamma) {
    Invocation call{.operator_name = "RmsNormGrad"};
    AddInput("dy", dy, &call);
    AddInput("x", x, &call);
    AddInput("rstd", rstd, &call);
    AddInput("gamma", gamma, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "dx_out"}, {number, "dgamma_out"}};
  }

  struct RollOptions {
    NumberList<int64_t> shifts = {};  // required
    NumberList<int64_t> dims = {};    // required
  };
  // Moves elements round along axes.
  OutputOf Roll(const ListedTensor& x, const RollOptions& options) {
    Invocation call{.operator_name = "Roll"};
    AddInput("x", x, &call);
    AddAttribute("shifts", options.shifts, &call);
    AddAttribute("dims", options.dims, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Roll(const ListedTensor& x) { return Roll(x, RollOptions()); }

  // Rounds to the nearest whole number.
  OutputOf Round(const ListedTensor& self) {
    Invocation call{.operator_name = "Round"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct RsqrtOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the reciprocal of the square root.
  OutputOf Rsqrt(const ListedTensor& self, const RsqrtOptions& options) {
    Invocation call{.operator_name = "Rsqrt"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Rsqrt(const ListedTensor& self) { return Rsqrt(self, RsqrtOptions()); }

  struct RsubOptions {
    std::optional<AttributeValue> alpha = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Subtracts the first tensor from the second.
  OutputOf Rsub(const ListedTensor& self, const ListedTensor& other, const RsubOptions& options) {
    Invocation call{.operator_name = "Rsub"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("alpha", options.alpha, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Rsub(const ListedTensor& self, const ListedTensor& other) {
    return Rsub(self, other, RsubOptions());
  }

  struct RsubsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> alpha = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Subtracts a tensor from a number.
  OutputOf Rsubs(const ListedTensor& self, const RsubsOptions& options) {
    Invocation call{.operator_name = "Rsubs"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("alpha", options.alpha, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Rsubs(const ListedTensor& self) { return Rsubs(self, RsubsOptions()); }

  struct SWhereOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Chooses between two tensors, element by element.
  OutputOf SWhere(const ListedTensor& condition, const ListedTensor& self,
                  const ListedTensor& other, const SWhereOptions& options) {
    Invocation call{.operator_name = "SWhere"};
    AddInput("condition", condition, &call);
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf SWhere(const ListedTensor& condition, const ListedTensor& self,
                  const ListedTensor& other) {
    return SWhere(condition, self, other, SWhereOptions());
  }

  struct ScaledMaskedSoftmaxOptions {
    std::optional<double> scale = {};          // 1.0
    std::optional<bool> fixed_triu_mask = {};  // false
  };
  // Softmax of scaled and masked logits along the last axis.
  OutputOf ScaledMaskedSoftmax(const ListedTensor& x, const ListedTensor& mask,
                               const ScaledMaskedSoftmaxOptions& options) {
    Invocation call{.operator_name = "ScaledMaskedSoftmax"};
    AddInput("x", x, &call);
    AddInput("mask", mask, &call);
    AddAttribute("scale", options.scale, &call);
    AddAttribute("fixed_triu_mask", options.fixed_triu_mask, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "y"};
  }
  OutputOf ScaledMaskedSoftmax(const ListedTensor& x, const ListedTensor& mask) {
    return ScaledMaskedSoftmax(x, mask, ScaledMaskedSoftmaxOptions());
  }

  struct ScaledMaskedSoftmaxBackwardOptions {
    std::optional<double> scale = {};        // 1.0
    std::optional<bool> fix_triu_mask = {};  // false
  };
  // Gradient of the softmax of scaled and masked logits.
  OutputOf ScaledMaskedSoftmaxBackward(const ListedTensor& grad_output, const ListedTensor& y,
                                       const ListedTensor& mask,
                                       const ScaledMaskedSoftmaxBackwardOptions& options) {
    Invocation call{.operator_name = "ScaledMaskedSoftmaxBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("y", y, &call);
    AddInput("mask", mask, &call);
    AddAttribute("scale", options.scale, &call);
    AddAttribute("fix_triu_mask", options.fix_triu_mask, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ScaledMaskedSoftmaxBackward(const ListedTensor& grad_output, const ListedTensor& y,
                                       const ListedTensor& mask) {
    return ScaledMaskedSoftmaxBackward(grad_output, y, mask, ScaledMaskedSoftmaxBackwardOptions());
  }

  struct ScatterOptions {
    std::optional<int64_t> dim = {};            // required
    std::optional<AttributeValue> reduce = {};  // replace (0), add (1), multiply (2); 0
  };
  // Writes elements at indices along an axis.
  OutputOf Scatter(const ListedTensor& self, const ListedTensor& index, const ListedTensor& src,
                   const ScatterOptions& options) {
    Invocation call{.operator_name = "Scatter"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddInput("src", src, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("reduce", options.reduce, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Scatter(const ListedTensor& self, const ListedTensor& index, const ListedTensor& src) {
    return Scatter(self, index, src, ScatterOptions());
  }

  struct ScatterAddOptions {
    std::optional<int64_t> dim = {};  // required
  };
  // Adds elements at indices along an axis.
  OutputOf ScatterAdd(const ListedTensor& self, const ListedTensor& index, const ListedTensor& src,
                      const ScatterAddOptions& options) {
    Invocation call{.operator_name = "ScatterAdd"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddInput("src", src, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ScatterAdd(const ListedTensor& self, const ListedTensor& index,
                      const ListedTensor& src) {
    return ScatterAdd(self, index, src, ScatterAddOptions());
  }

  // Writes slices at places that are given by several indices.
  OutputOf ScatterNdUpdate(const ListedTensor& self, const ListedTensor& indices,
                           const ListedTensor& updates) {
    Invocation call{.operator_name = "ScatterNdUpdate"};
    AddInput("self", self, &call);
    AddInput("indices", indices, &call);
    AddInput("updates", updates, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "self"};
  }

  struct ScatterValueOptions {
    std::optional<int64_t> dim = {};            // required
    std::optional<AttributeValue> value = {};   // required
    std::optional<AttributeValue> reduce = {};  // replace (0), add (1), multiply (2); 0
  };
  // Writes a number at indices along an axis.
  OutputOf ScatterValue(const ListedTensor& self, const ListedTensor& index,
                        const ScatterValueOptions& options) {
    Invocation call{.operator_name = "ScatterValue"};
    AddInput("self", self, &call);
    AddInput("index", index, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("value", options.value, &call);
    AddAttribute("reduce", options.reduce, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ScatterValue(const ListedTensor& self, const ListedTensor& index) {
    return ScatterValue(self, index, ScatterValueOptions());
  }

  // Applies SELU, the self-normalising exponential linear unit.
  OutputOf Selu(const ListedTensor& self) {
    Invocation call{.operator_name = "Selu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of SELU with respect to its input.
  OutputOf SeluBackward(const ListedTensor& grad_output, const ListedTensor& result) {
    Invocation call{.operator_name = "SeluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("result", result, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct SigmoidOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Applies the logistic function.
  OutputOf Sigmoid(const ListedTensor& self, const SigmoidOptions& options) {
    Invocation call{.operator_name = "Sigmoid"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Sigmoid(const ListedTensor& self) { return Sigmoid(self, SigmoidOptions()); }

  // Gradient of the logistic function with respect to its input.
  OutputOf SigmoidBackward(const ListedTensor& grad_output, const ListedTensor& output) {
    Invocation call{.operator_name = "SigmoidBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("output", output, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  // Takes the sign of each element.
  OutputOf Sign(const ListedTensor& self) {
    Invocation call{.operator_name = "Sign"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "result"};
  }

  // Applies SiLU, the sigmoid linear unit.
  OutputOf Silu(const ListedTensor& self) {
    Invocation call{.operator_name = "Silu"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  // Gradient of SiLU with respect to its input.
  OutputOf SiluBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    Invocation call{.operator_name = "SiluBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct SinOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the sine.
  OutputOf Sin(const ListedTensor& self, const SinOptions& options) {
    Invocation call{.operator_name = "Sin"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Sin(const ListedTensor& self) { return Sin(self, SinOptions()); }

  struct SinhOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the hyperbolic sine.
  OutputOf Sinh(const ListedTensor& self, const SinhOptions& options) {
    Invocation call{.operator_name = "Sinh"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Sinh(const ListedTensor& self) { return Sinh(self, SinhOptions()); }

  struct SliceOptions {
    std::optional<int64_t> dim = {};    // required
    std::optional<int64_t> start = {};  // 0
    std::optional<int64_t> end = {};    // required
    std::optional<int64_t> step = {};   // 1
  };
  // Every so many slices of a range along an axis.
  OutputOf Slice(const ListedTensor& self, const SliceOptions& options) {
    Invocation call{.operator_name = "Slice"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("start", options.start, &call);
    AddAttribute("end", options.end, &call);
    AddAttribute("step", options.step, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Slice(const ListedTensor& self) { return Slice(self, SliceOptions()); }

  struct SmoothL1LossOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::optional<double> beta = {};               // 1.0
  };
  // L1 loss that is quadratic for small differences.
  OutputOf SmoothL1Loss(const ListedTensor& self, const ListedTensor& target,
                        const SmoothL1LossOptions& options) {
    Invocation call{.operator_name = "SmoothL1Loss"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("beta", options.beta, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "result"};
  }
  OutputOf SmoothL1Loss(const ListedTensor& self, const ListedTensor& target) {
    return SmoothL1Loss(self, target, SmoothL1LossOptions());
  }

  struct SmoothL1LossBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
    std::optional<double> beta = {};               // 1.0
  };
  // Gradient of the smooth L1 loss with respect to its input.
  OutputOf SmoothL1LossBackward(const ListedTensor& grad_out, const ListedTensor& self,
                                const ListedTensor& target,
                                const SmoothL1LossBackwardOptions& options) {
    Invocation call{.operator_name = "SmoothL1LossBackward"};
    AddInput("grad_out", grad_out, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    AddAttribute("beta", options.beta, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf SmoothL1LossBackward(const ListedTensor& grad_out, const ListedTensor& self,
                                const ListedTensor& target) {
    return SmoothL1LossBackward(grad_out, self, target, SmoothL1LossBackwardOptions());
  }

  struct SoftMarginLossOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Soft margin loss between two tensors.
  OutputOf SoftMarginLoss(const ListedTensor& self, const ListedTensor& target,
                          const SoftMarginLossOptions& options) {
    Invocation call{.operator_name = "SoftMarginLoss"};
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf SoftMarginLoss(const ListedTensor& self, const ListedTensor& target) {
    return SoftMarginLoss(self, target, SoftMarginLossOptions());
  }

  struct SoftMarginLossBackwardOptions {
    std::optional<AttributeValue> reduction = {};  // none (0), mean (1), sum (2); 1
  };
  // Gradient of the soft margin loss with respect to its input.
  OutputOf SoftMarginLossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                  const ListedTensor& target,
                                  const SoftMarginLossBackwardOptions& options) {
    Invocation call{.operator_name = "SoftMarginLossBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddInput("target", target, &call);
    AddAttribute("reduction", options.reduction, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf SoftMarginLossBackward(const ListedTensor& grad_output, const ListedTensor& self,
                                  const ListedTensor& target) {
    return SoftMarginLossBackward(grad_output, self, target, SoftMarginLossBackwardOptions());
  }

  struct SoftmaxOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Softmax along an axis.
  OutputOf Softmax(const ListedTensor& self, const SoftmaxOptions& options) {
    Invocation call{.operator_name = "Softmax"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Softmax(const ListedTensor& self) { return Softmax(self, SoftmaxOptions()); }

  struct SoftmaxBackwardOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Gradient of softmax with respect to its input.
  OutputOf SoftmaxBackward(const ListedTensor& grad_output, const ListedTensor& output,
                           const SoftmaxBackwardOptions& options) {
    Invocation call{.operator_name = "SoftmaxBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("output", output, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf SoftmaxBackward(const ListedTensor& grad_output, const ListedTensor& output) {
    return SoftmaxBackward(grad_output, output, SoftmaxBackwardOptions());
  }

  struct SoftmaxCrossEntropyWithLogitsOutputs {
    OutputOf loss;
    OutputOf backprop;
  };
  // Cross entropy of softmax with a target distribution, and its gradient.
  SoftmaxCrossEntropyWithLogitsOutputs SoftmaxCrossEntropyWithLogits(const ListedTensor& features,
                                                                     const ListedTensor& labels) {
    Invocation call{.operator_name = "SoftmaxCrossEntropyWithLogits"};
    AddInput("features", features, &call);
    AddInput("labels", labels, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "loss"}, {number, "backprop"}};
  }

  struct SoftplusOptions {
    std::optional<AttributeValue> beta = {};       // 1
    std::optional<AttributeValue> threshold = {};  // 20
  };
  // Applies softplus, a smooth relu.
  OutputOf Softplus(const ListedTensor& self, const SoftplusOptions& options) {
    Invocation call{.operator_name = "Softplus"};
    AddInput("self", self, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("threshold", options.threshold, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Softplus(const ListedTensor& self) { return Softplus(self, SoftplusOptions()); }

  struct SoftplusBackwardOptions {
    std::optional<AttributeValue> beta = {};       // 1
    std::optional<AttributeValue> threshold = {};  // 20
  };
  // Gradient of softplus with respect to its input.
  OutputOf SoftplusBackward(const ListedTensor& grad_output, const ListedTensor& self,
                            const SoftplusBackwardOptions& options) {
    Invocation call{.operator_name = "SoftplusBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("beta", options.beta, &call);
    AddAttribute("threshold", options.threshold, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf SoftplusBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return SoftplusBackward(grad_output, self, SoftplusBackwardOptions());
  }

  struct SoftshrinkOptions {
    std::optional<AttributeValue> lambd = {};  // 0.5
  };
  // Moves elements towards zero.
  OutputOf Softshrink(const ListedTensor& self, const SoftshrinkOptions& options) {
    Invocation call{.operator_name = "Softshrink"};
    AddInput("self", self, &call);
    AddAttribute("lambd", options.lambd, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Softshrink(const ListedTensor& self) { return Softshrink(self, SoftshrinkOptions()); }

  struct SoftshrinkBackwardOptions {
    std::optional<AttributeValue> lambd = {};  // 0.5
  };
  // Gradient of soft shrinkage with respect to its input.
  OutputOf SoftshrinkBackward(const ListedTensor& grad_output, const ListedTensor& self,
                              const SoftshrinkBackwardOptions& options) {
    Invocation call{.operator_name = "SoftshrinkBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("lambd", options.lambd, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf SoftshrinkBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return SoftshrinkBackward(grad_output, self, SoftshrinkBackwardOptions());
  }

  struct SortOptions {
    std::optional<bool> stable = {};      // true
    std::optional<int64_t> dim = {};      // -1
    std::optional<bool> descending = {};  // false
  };
  struct SortOutputs {
    OutputOf values_out;
    OutputOf indices_out;
  };
  // Sorts along an axis.
  SortOutputs Sort(const ListedTensor& self, const SortOptions& options) {
    Invocation call{.operator_name = "Sort"};
    AddInput("self", self, &call);
    AddAttribute("stable", options.stable, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("descending", options.descending, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "values_out"}, {number, "indices_out"}};
  }
  SortOutputs Sort(const ListedTensor& self) { return Sort(self, SortOptions()); }

  struct SplitTensorOptions {
    std::optional<int64_t> split_sections = {};  // required
    std::optional<int64_t> dim = {};             // 0
  };
  // Splits a tensor into equal parts along an axis.
  OutputList SplitTensor(const ListedTensor& self, const SplitTensorOptions& options) {
    Invocation call{.operator_name = "SplitTensor"};
    AddInput("self", self, &call);
    AddAttribute("split_sections", options.split_sections, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList SplitTensor(const ListedTensor& self) {
    return SplitTensor(self, SplitTensorOptions());
  }

  struct SplitWithSizeOptions {
    NumberList<int64_t> split_size = {};  // required
    std::optional<int64_t> dim = {};      // 0
  };
  // Splits a tensor into parts of given extents along an axis.
  OutputList SplitWithSize(const ListedTensor& self, const SplitWithSizeOptions& options) {
    Invocation call{.operator_name = "SplitWithSize"};
    AddInput("self", self, &call);
    AddAttribute("split_size", options.split_size, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputList SplitWithSize(const ListedTensor& self) {
    return SplitWithSize(self, SplitWithSizeOptions());
  }

  struct SqrtOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the square root.
  OutputOf Sqrt(const ListedTensor& self, const SqrtOptions& options) {
    Invocation call{.operator_name = "Sqrt"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Sqrt(const ListedTensor& self) { return Sqrt(self, SqrtOptions()); }

  struct StackOptions {
    std::optional<int64_t> dim = {};  // 0
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Joins tensors along a new axis.
  OutputOf Stack(const std::vector<ListedTensor>& tensors, const StackOptions& options) {
    Invocation call{.operator_name = "Stack"};
    AddInput("tensors", tensors, &call);
    AddAttribute("dim", options.dim, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Stack(const std::vector<ListedTensor>& tensors) {
    return Stack(tensors, StackOptions());
  }

  struct StdOptions {
    NumberList<int64_t> dim = {};            // left out
    std::optional<int64_t> correction = {};  // 1
    std::optional<bool> keepdim = {};        // false
  };
  // Standard deviation along axes.
  OutputOf Std(const ListedTensor& self, const StdOptions& options) {
    Invocation call{.operator_name = "Std"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("correction", options.correction, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Std(const ListedTensor& self) { return Std(self, StdOptions()); }

  struct StdMeanCorrectionOptions {
    NumberList<int64_t> dim = {};            // left out
    std::optional<int64_t> correction = {};  // 1
    std::optional<bool> keepdim = {};        // false
  };
  struct StdMeanCorrectionOutputs {
    OutputOf std_out;
    OutputOf mean_out;
  };
  // Standard deviation and mean along axes.
  StdMeanCorrectionOutputs StdMeanCorrection(const ListedTensor& self,
                                             const StdMeanCorrectionOptions& options) {
    Invocation call{.operator_name = "StdMeanCorrection"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("correction", options.correction, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "std_out"}, {number, "mean_out"}};
  }
  StdMeanCorrectionOutputs StdMeanCorrection(const ListedTensor& self) {
    return StdMeanCorrection(self, StdMeanCorrectionOptions());
  }

  struct SubOptions {
    std::optional<AttributeValue> alpha = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Subtracts one tensor from another.
  OutputOf Sub(const ListedTensor& self, const ListedTensor& other, const SubOptions& options) {
    Invocation call{.operator_name = "Sub"};
    AddInput("self", self, &call);
    AddInput("other", other, &call);
    AddAttribute("alpha", options.alpha, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Sub(const ListedTensor& self, const ListedTensor& other) {
    return Sub(self, other, SubOptions());
  }

  struct SubsOptions {
    std::optional<AttributeValue> other = {};  // required
    std::optional<AttributeValue> alpha = {};  // 1
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Subtracts a number from a tensor.
  OutputOf Subs(const ListedTensor& self, const SubsOptions& options) {
    Invocation call{.operator_name = "Subs"};
    AddInput("self", self, &call);
    AddAttribute("other", options.other, &call);
    AddAttribute("alpha", options.alpha, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Subs(const ListedTensor& self) { return Subs(self, SubsOptions()); }

  // Adds the tensors of a list.
  OutputOf Sum(const std::vector<ListedTensor>& tensors) {
    Invocation call{.operator_name = "Sum"};
    AddInput("tensors", tensors, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct SwiGluOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Applies the linear unit gated by SiLU.
  OutputOf SwiGlu(const ListedTensor& x, const SwiGluOptions& options) {
    Invocation call{.operator_name = "SwiGlu"};
    AddInput("x", x, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf SwiGlu(const ListedTensor& x) { return SwiGlu(x, SwiGluOptions()); }

  struct SwiGluGradOptions {
    std::optional<int64_t> dim = {};  // -1
  };
  // Gradient of the linear unit gated by SiLU with respect to its input.
  OutputOf SwiGluGrad(const ListedTensor& y_grad, const ListedTensor& x,
                      const SwiGluGradOptions& options) {
    Invocation call{.operator_name = "SwiGluGrad"};
    AddInput("y_grad", y_grad, &call);
    AddInput("x", x, &call);
    AddAttribute("dim", options.dim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf SwiGluGrad(const ListedTensor& y_grad, const ListedTensor& x) {
    return SwiGluGrad(y_grad, x, SwiGluGradOptions());
  }

  struct SwishOptions {
    std::optional<AttributeValue> beta = {};  // left out
  };
  // Applies Swish, a sigmoid linear unit with a factor.
  OutputOf Swish(const ListedTensor& self, const SwishOptions& options) {
    Invocation call{.operator_name = "Swish"};
    AddInput("self", self, &call);
    AddAttribute("beta", options.beta, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Swish(const ListedTensor& self) { return Swish(self, SwishOptions()); }

  struct SwishBackwardOptions {
    std::optional<AttributeValue> beta = {};  // left out
  };
  // Gradient of Swish with respect to its input.
  OutputOf SwishBackward(const ListedTensor& grad_output, const ListedTensor& self,
                         const SwishBackwardOptions& options) {
    Invocation call{.operator_name = "SwishBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("beta", options.beta, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf SwishBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return SwishBackward(grad_output, self, SwishBackwardOptions());
  }

  struct TanOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Takes the tangent.
  OutputOf Tan(const ListedTensor& self, const TanOptions& options) {
    Invocation call{.operator_name = "Tan"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Tan(const ListedTensor& self) { return Tan(self, TanOptions()); }

  struct TanhOptions {
    std::vector<OutputDataType> output_dtypes = {};
  };
  // Applies the hyperbolic tangent.
  OutputOf Tanh(const ListedTensor& self, const TanhOptions& options) {
    Invocation call{.operator_name = "Tanh"};
    AddInput("self", self, &call);
    call.output_dtypes = options.output_dtypes;
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Tanh(const ListedTensor& self) { return Tanh(self, TanhOptions()); }

  // Gradient of the hyperbolic tangent with respect to its input.
  OutputOf TanhBackward(const ListedTensor& grad_output, const ListedTensor& output) {
    Invocation call{.operator_name = "TanhBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("output", output, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }

  struct ThresholdOptions {
    std::optional<AttributeValue> threshold = {};  // required
    std::optional<AttributeValue> value = {};      // required
  };
  // Replaces elements that are not above a threshold.
  OutputOf Threshold(const ListedTensor& self, const ThresholdOptions& options) {
    Invocation call{.operator_name = "Threshold"};
    AddInput("self", self, &call);
    AddAttribute("threshold", options.threshold, &call);
    AddAttribute("value", options.value, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Threshold(const ListedTensor& self) { return Threshold(self, ThresholdOptions()); }

  struct ThresholdBackwardOptions {
    std::optional<AttributeValue> threshold = {};  // 0
  };
  // Gradient of threshold, and of relu, with respect to its input.
  OutputOf ThresholdBackward(const ListedTensor& grad_output, const ListedTensor& self,
                             const ThresholdBackwardOptions& options) {
    Invocation call{.operator_name = "ThresholdBackward"};
    AddInput("grad_output", grad_output, &call);
    AddInput("self", self, &call);
    AddAttribute("threshold", options.threshold, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf ThresholdBackward(const ListedTensor& grad_output, const ListedTensor& self) {
    return ThresholdBackward(grad_output, self, ThresholdBackwardOptions());
  }

  struct TopkOptions {
    std::optional<int64_t> k = {};     // required
    std::optional<int64_t> dim = {};   // -1
    std::optional<bool> largest = {};  // true
    std::optional<bool> sorted = {};   // true
  };
  struct TopkOutputs {
    OutputOf values_out;
    OutputOf indices_out;
  };
  // The largest or smallest elements along an axis.
  TopkOutputs Topk(const ListedTensor& self, const TopkOptions& options) {
    Invocation call{.operator_name = "Topk"};
    AddInput("self", self, &call);
    AddAttribute("k", options.k, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("largest", options.largest, &call);
    AddAttribute("sorted", options.sorted, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "values_out"}, {number, "indices_out"}};
  }
  TopkOutputs Topk(const ListedTensor& self) { return Topk(self, TopkOptions()); }

  struct TrilOptions {
    std::optional<int64_t> diagonal = {};  // 0
  };
  // Keeps the lower triangle of matrices.
  OutputOf Tril(const ListedTensor& self, const TrilOptions& options) {
    Invocation call{.operator_name = "Tril"};
    AddInput("self", self, &call);
    AddAttribute("diagonal", options.diagonal, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Tril(const ListedTensor& self) { return Tril(self, TrilOptions()); }

  struct TriuOptions {
    std::optional<int64_t> diagonal = {};  // 0
  };
  // Keeps the upper triangle of matrices.
  OutputOf Triu(const ListedTensor& self, const TriuOptions& options) {
    Invocation call{.operator_name = "Triu"};
    AddInput("self", self, &call);
    AddAttribute("diagonal", options.diagonal, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Triu(const ListedTensor& self) { return Triu(self, TriuOptions()); }

  // Rounds towards zero.
  OutputOf Trunc(const ListedTensor& self) {
    Invocation call{.operator_name = "Trunc"};
    AddInput("self", self, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }

  struct UnfoldGradOptions {
    NumberList<int64_t> input_sizes = {};  // required
    std::optional<int64_t> dim = {};       // required
    std::optional<int64_t> size = {};      // required
    std::optional<int64_t> step = {};      // required
  };
  // Gradient of windows along an axis.
  OutputOf UnfoldGrad(const ListedTensor& grad_out, const UnfoldGradOptions& options) {
    Invocation call{.operator_name = "UnfoldGrad"};
    AddInput("grad_out", grad_out, &call);
    AddAttribute("input_sizes", options.input_sizes, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("size", options.size, &call);
    AddAttribute("step", options.step, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_in"};
  }
  OutputOf UnfoldGrad(const ListedTensor& grad_out) {
    return UnfoldGrad(grad_out, UnfoldGradOptions());
  }

  struct UpsampleBilinear2dOptions {
    NumberList<int64_t> output_size = {};    // required
    std::optional<bool> align_corners = {};  // false
    std::optional<double> scales_h = {};     // 0.0
    std::optional<double> scales_w = {};     // 0.0
  };
  // Resizes images by bilinear interpolation.
  OutputOf UpsampleBilinear2d(const ListedTensor& self, const UpsampleBilinear2dOptions& options) {
    Invocation call{.operator_name = "UpsampleBilinear2d"};
    AddInput("self", self, &call);
    AddAttribute("output_size", options.output_size, &call);
    AddAttribute("align_corners", options.align_corners, &call);
    AddAttribute("scales_h", options.scales_h, &call);
    AddAttribute("scales_w", options.scales_w, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf UpsampleBilinear2d(const ListedTensor& self) {
    return UpsampleBilinear2d(self, UpsampleBilinear2dOptions());
  }

  struct UpsampleBilinear2dBackwardOptions {
    NumberList<int64_t> output_size = {};    // required
    NumberList<int64_t> input_size = {};     // required
    std::optional<bool> align_corners = {};  // false
    std::optional<double> scales_h = {};     // 0.0
    std::optional<double> scales_w = {};     // 0.0
  };
  // Gradient of resizing images by bilinear interpolation.
  OutputOf UpsampleBilinear2dBackward(const ListedTensor& grad_out,
                                      const UpsampleBilinear2dBackwardOptions& options) {
    Invocation call{.operator_name = "UpsampleBilinear2dBackward"};
    AddInput("grad_out", grad_out, &call);
    AddAttribute("output_size", options.output_size, &call);
    AddAttribute("input_size", options.input_size, &call);
    AddAttribute("align_corners", options.align_corners, &call);
    AddAttribute("scales_h", options.scales_h, &call);
    AddAttribute("scales_w", options.scales_w, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf UpsampleBilinear2dBackward(const ListedTensor& grad_out) {
    return UpsampleBilinear2dBackward(grad_out, UpsampleBilinear2dBackwardOptions());
  }

  struct UpsampleNearest2dOptions {
    NumberList<int64_t> output_size = {};  // required
  };
  // Resizes images by nearest elements.
  OutputOf UpsampleNearest2d(const ListedTensor& self, const UpsampleNearest2dOptions& options) {
    Invocation call{.operator_name = "UpsampleNearest2d"};
    AddInput("self", self, &call);
    AddAttribute("output_size", options.output_size, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf UpsampleNearest2d(const ListedTensor& self) {
    return UpsampleNearest2d(self, UpsampleNearest2dOptions());
  }

  struct UpsampleNearest2dBackwardOptions {
    NumberList<int64_t> output_size = {};  // required
    NumberList<int64_t> input_size = {};   // required
    std::optional<double> scales_h = {};   // 0.0
    std::optional<double> scales_w = {};   // 0.0
  };
  // Gradient of resizing images by nearest elements.
  OutputOf UpsampleNearest2dBackward(const ListedTensor& grad_out,
                                     const UpsampleNearest2dBackwardOptions& options) {
    Invocation call{.operator_name = "UpsampleNearest2dBackward"};
    AddInput("grad_out", grad_out, &call);
    AddAttribute("output_size", options.output_size, &call);
    AddAttribute("input_size", options.input_size, &call);
    AddAttribute("scales_h", options.scales_h, &call);
    AddAttribute("scales_w", options.scales_w, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "grad_input"};
  }
  OutputOf UpsampleNearest2dBackward(const ListedTensor& grad_out) {
    return UpsampleNearest2dBackward(grad_out, UpsampleNearest2dBackwardOptions());
  }

  struct UpsampleNearest2dV2Options {
    NumberList<int64_t> output_size = {};  // required
    std::optional<double> scales_h = {};   // 0.0
    std::optional<double> scales_w = {};   // 0.0
  };
  // Resizes images by nearest elements, with given factors.
  OutputOf UpsampleNearest2dV2(const ListedTensor& self,
                               const UpsampleNearest2dV2Options& options) {
    Invocation call{.operator_name = "UpsampleNearest2dV2"};
    AddInput("self", self, &call);
    AddAttribute("output_size", options.output_size, &call);
    AddAttribute("scales_h", options.scales_h, &call);
    AddAttribute("scales_w", options.scales_w, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf UpsampleNearest2dV2(const ListedTensor& self) {
    return UpsampleNearest2dV2(self, UpsampleNearest2dV2Options());
  }

  struct VarOptions {
    NumberList<int64_t> dim = {};       // left out
    std::optional<bool> unbiased = {};  // true
    std::optional<bool> keepdim = {};   // false
  };
  // Variance along axes.
  OutputOf Var(const ListedTensor& self, const VarOptions& options) {
    Invocation call{.operator_name = "Var"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("unbiased", options.unbiased, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf Var(const ListedTensor& self) { return Var(self, VarOptions()); }

  struct VarCorrectionOptions {
    NumberList<int64_t> dim = {};            // left out
    std::optional<int64_t> correction = {};  // 1
    std::optional<bool> keepdim = {};        // false
  };
  // Variance along axes with a correction.
  OutputOf VarCorrection(const ListedTensor& self, const VarCorrectionOptions& options) {
    Invocation call{.operator_name = "VarCorrection"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("correction", options.correction, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {number, "out"};
  }
  OutputOf VarCorrection(const ListedTensor& self) {
    return VarCorrection(self, VarCorrectionOptions());
  }

  struct VarMeanOptions {
    NumberList<int64_t> dim = {};            // left out
    std::optional<int64_t> correction = {};  // 1
    std::optional<bool> keepdim = {};        // false
  };
  struct VarMeanOutputs {
    OutputOf var_out;
    OutputOf mean_out;
  };
  // Variance and mean along axes.
  VarMeanOutputs VarMean(const ListedTensor& self, const VarMeanOptions& options) {
    Invocation call{.operator_name = "VarMean"};
    AddInput("self", self, &call);
    AddAttribute("dim", options.dim, &call);
    AddAttribute("correction", options.correction, &call);
    AddAttribute("keepdim", options.keepdim, &call);
    const uint32_t number = Invoke(std::move(call));
    return {{number, "var_out"}, {number, "mean_out"}};
  }
  VarMeanOutputs VarMean(const ListedTensor& self) { return VarMean(self, VarMeanOptions()); }
};

}  // namespace opserve
