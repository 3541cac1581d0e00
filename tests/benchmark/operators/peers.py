"""What PyTorch computes an operator with: an expression for each, which is also what the table of evidence shows.

Names are the operator's: inputs and attributes as the description calls them, outputs as tensors that it may write
into (`out=out`), so that results need no new memory where torch allows that. Beside them: torch, aten
(torch.ops.aten), F (torch.nn.functional), np (numpy), math, `zero` (of rank 0), and for a tensor of integers `x`
also `x_64`, of INT64. Operators without a function of torch's are composed of several; of several ways the one is
here that reads and writes memory least.
"""

PEERS = {}
# What torch's forward function leaves for its gradient, by name and before the time is taken: expressions as well.
PREPARED = {
    "LogSigmoidBackward": {"buffer": "torch.exp(-self.abs())"},
    "CrossEntropyLossGrad": {"total_weight": "weight[target].sum()"},
}


def define(table):
    """Lines of an operator's name and its expression; those that are indented go on with the one before."""
    for line in table.strip().replace("\n  ", " ").splitlines():
        name, expression = line.split(": ", 1)
        PEERS[name] = expression


# Functions of one number, as a result and in place.
for _name in (
    "Neg Abs Exp Expm1 Log Log1p Log2 Sqrt Rsqrt Reciprocal Sin Erf Erfc Floor Ceil Round Tan Sinh Cosh Asin Acos Atan "
    "Asinh Acosh Atanh Exp2 Log10 Trunc Frac Sigmoid Tanh"
).split():
    PEERS[_name] = f"torch.{_name.lower()}(self, out=out)"
for _name in "Exp Log Sqrt Rsqrt Reciprocal Sin Cos Erf Trunc Floor Ceil Round Neg Sigmoid Tanh".split():
    PEERS[f"Inplace{_name}"] = f"self.{_name.lower()}_()"
# Comparisons of tensors and with numbers.
for _name in "Eq Ne Gt Ge Lt Le".split():
    for _kind in ("Tensor", "Scalar"):
        PEERS[f"{_name}{_kind}"] = f"torch.{_name.lower()}(self, other, out=out)"
        PEERS[f"Inplace{_name}{_kind}"] = f"self.{_name.lower()}_(other)"
for _name in "And Or Xor".split():
    for _kind in ("Tensor", "Scalar"):
        PEERS[f"Bitwise{_name}{_kind}"] = f"torch.bitwise_{_name.lower()}(self, other, out=out)"

define("""
Cos: torch.cos(input, out=out)
Sign: torch.sign(self, out=result)
NanToNum: torch.nan_to_num(self, nan, posinf, neginf, out=out)
Logit: torch.logit(input, out=out)
LogitGrad: aten.logit_backward(dy, x, grad_input=out)
LogicalAnd: torch.logical_and(self, other, out=out)
LogicalOr: torch.logical_or(self, other, out=out)
LogicalXor: torch.logical_xor(self, other, out=out)
LogicalNot: torch.logical_not(self, out=out)
InplaceLogicalAnd: self.logical_and_(other)
InplaceLogicalOr: self.logical_or_(other)
InplaceLogicalNot: self.logical_not_()
BitwiseNot: torch.bitwise_not(self, out=out)
IsFinite: torch.isfinite(self)
IsInf: torch.isinf(x)
IsPosInf: torch.isposinf(self, out=out)
IsNegInf: torch.isneginf(self, out=out)
""")

# Arithmetic.
define("""
Add: torch.add(self, other, alpha=alpha, out=out)
Adds: torch.add(self, other, alpha=alpha, out=out)
InplaceAdd: self.add_(other, alpha=alpha)
InplaceAdds: self.add_(other, alpha=alpha)
Sub: torch.sub(self, other, alpha=alpha, out=out)
Subs: torch.sub(self, other, alpha=alpha, out=out)
InplaceSub: self.sub_(other, alpha=alpha)
InplaceSubs: self.sub_(other, alpha=alpha)
Rsub: torch.sub(other, self, alpha=alpha, out=out)
Rsubs: torch.rsub(self, other, alpha=alpha)
Mul: torch.mul(self, other, out=out)
Muls: torch.mul(self, other, out=out)
InplaceMul: self.mul_(other)
InplaceMuls: self.mul_(other)
Div: torch.div(self, other, out=out)
Divs: torch.div(self, other, out=out)
InplaceDiv: self.div_(other)
InplaceDivs: self.div_(other)
DivMod: torch.div(self, other, rounding_mode="floor", out=out)
DivMods: torch.div(self, other, rounding_mode="floor", out=out)
InplaceDivMod: self.div_(other, rounding_mode="floor")
InplaceDivMods: self.div_(other, rounding_mode="floor")
Maximum: torch.maximum(self, other, out=out)
Minimum: torch.minimum(self, other, out=out)
Clamp: torch.clamp(self, clip_value_min, clip_value_max, out=out)
ClampTensor: torch.clamp(self, clip_value_min, clip_value_max, out=out)
ClampMin: torch.clamp_min(self, clip_value_min, out=out)
ClampMax: torch.clamp_max(self, clip_value_max, out=out)
ClampMinTensor: torch.maximum(self, clip_value_min, out=out)
ClampMaxTensor: torch.minimum(self, clip_value_max, out=out)
InplaceClampMax: self.clamp_max_(clip_value_max)
InplaceClampMinTensor: self.clamp_min_(clip_value_min)
InplaceClampMaxTensor: self.clamp_max_(clip_value_max)
PowTensorScalar: torch.pow(self, exponent, out=out)
PowTensorTensor: torch.pow(self, exponent, out=out)
PowScalarTensor: torch.pow(self, exponent, out=out)
InplacePowTensorScalar: self.pow_(exponent)
InplacePowTensorTensor: self.pow_(exponent)
Addcmul: torch.addcmul(self, tensor1, tensor2, value=value, out=out)
InplaceAddcmul: self.addcmul_(tensor1, tensor2, value=value)
Addcdiv: torch.addcdiv(self, tensor1, tensor2, value=value, out=out)
InplaceAddcdiv: self.addcdiv_(tensor1, tensor2, value=value)
Lerp: torch.lerp(self, end, weight, out=out)
Lerps: torch.lerp(self, end, weight, out=out)
InplaceLerp: self.lerp_(end, weight)
InplaceLerps: self.lerp_(end, weight)
Atan2: torch.atan2(self, other, out=out)
FloorDivide: torch.floor_divide(self, other, out=out)
FloorDivides: torch.floor_divide(self, other)
FmodTensor: torch.fmod(self, other, out=out)
FmodScalar: torch.fmod(self, other, out=out)
RemainderTensorTensor: torch.remainder(self, other, out=out)
RemainderTensorScalar: torch.remainder(self, other, out=out)
RemainderScalarTensor: torch.remainder(self, other)
""")

# Activations and gated units.
define("""
Relu: torch.clamp_min(self, 0, out=out)
InplaceRelu: self.relu_()
Threshold: aten.threshold(self, threshold, value, out=out)
InplaceThreshold: aten.threshold_(self, threshold, value)
ThresholdBackward: aten.threshold_backward(grad_output, self, threshold, grad_input=out)
Gelu: aten.gelu(self, out=out)
GeluV2: aten.gelu(x, approximate="tanh", out=y)
GeluBackward: aten.gelu_backward(grad_output, self, grad_input=grad_input)
GeluBackwardV2: aten.gelu_backward(grad_output, self, approximate=approximate, grad_input=grad_input)
FastGelu: torch.mul(self, 1.702, out=out).sigmoid_().mul_(self)
FastGeluBackward: aten.silu_backward(grad_output, self * 1.702, grad_input=grad_input)
Silu: aten.silu(self, out=out)
SiluBackward: aten.silu_backward(grad_output, self, grad_input=grad_input)
Swish: torch.mul(self, beta, out=out).sigmoid_().mul_(self)
SwishBackward: aten.silu_backward(grad_output, self * beta, grad_input=grad_input)
SigmoidBackward: aten.sigmoid_backward(grad_output, output, grad_input=grad_input)
TanhBackward: aten.tanh_backward(grad_output, output, grad_input=grad_input)
LogSigmoid: aten.log_sigmoid(self, out=out)
LogSigmoidForward: aten.log_sigmoid_forward(self, output=out, buffer=buffer)
LogSigmoidBackward: aten.log_sigmoid_backward(grad_output, self, buffer, grad_input=grad_input)
Softplus: aten.softplus(self, beta, threshold, out=out)
SoftplusBackward: aten.softplus_backward(grad_output, self, beta, threshold, grad_input=grad_input)
Elu: aten.elu(self, alpha, scale, input_scale, out=out)
InplaceElu: aten.elu_(self, alpha, scale, input_scale)
EluBackward: aten.elu_backward(grad_output, alpha, scale, input_scale, False, self_or_result, grad_input=grad_input)
Celu: aten.elu(self, alpha, 1, 1 / alpha, out=out)
InplaceCelu: aten.celu_(self, alpha)
Selu: aten.elu(self, 1.6732632423543772, 1.0507009873554805, 1, out=out)
InplaceSelu: aten.selu_(self)
SeluBackward: aten.elu_backward(grad_output, 1.6732632423543772, 1.0507009873554805, 1, True, result,
  grad_input=grad_input)
LeakyRelu: aten.leaky_relu(self, negative_slope, out=out)
InplaceLeakyRelu: aten.leaky_relu_(self, negative_slope)
LeakyReluBackward: aten.leaky_relu_backward(grad_output, self, negative_slope, False, grad_input=out)
Prelu: torch.prelu(self, weight)
PreluBackward: (lambda g, w: (g, w.sum(0)))(*aten._prelu_kernel_backward(grad_output, self, weight.view(1, -1)))
Hardswish: aten.hardswish(self, out=out)
InplaceHardswish: aten.hardswish_(self)
HardswishBackward: aten.hardswish_backward(grad_output, self)
HardswishBackwardV2: aten.hardswish_backward(grad_output, self)
Hardsigmoid: aten.hardsigmoid(self, out=out)
InplaceHardsigmoid: aten.hardsigmoid_(self)
HardsigmoidBackward: aten.hardsigmoid_backward(grad_output, self, grad_input=out)
Hardtanh: aten.hardtanh(self, clip_value_min, clip_value_max, out=out)
InplaceHardtanh: aten.hardtanh_(self, clip_value_min, clip_value_max)
HardtanhBackward: aten.hardtanh_backward(grad_output, self, min, max, grad_input=out)
Hardshrink: aten.hardshrink(self, lambd, out=out)
HardshrinkBackward: aten.hardshrink_backward(grad_output, self, lambd, grad_input=grad_input)
Softshrink: aten.softshrink(self, lambd, out=out)
SoftshrinkBackward: aten.softshrink_backward(grad_output, self, lambd, grad_input=grad_input)
Mish: aten.mish(self, out=out)
InplaceMish: aten.mish_(self)
MishBackward: aten.mish_backward(grad_output, self)
Glu: aten.glu(self, dim, out=out)
GluBackward: aten.glu_backward(grad_out, self, dim, grad_input=out)
GeGlu: (lambda a, b: (torch.mul(a, aten.gelu(b, approximate="tanh", out=out_gelu), out=out), out_gelu))(*self.chunk(2,
  dim))
GeGluBackward: (lambda a, b: torch.cat([grad_output * gelu, aten.gelu_backward(grad_output * a, b,
  approximate="tanh")], dim, out=grad_input))(*self.chunk(2, dim))
SwiGlu: (lambda a, b: torch.mul(F.silu(a), b, out=out))(*x.chunk(2, dim))
SwiGluGrad: (lambda a, b: torch.cat([aten.silu_backward(y_grad * b, a), F.silu(a).mul_(y_grad)], dim,
  out=out))(*x.chunk(2, dim))
""")

# Copies, choices, fills, sequences and masks.
define("""
SWhere: torch.where(condition, self, other, out=out)
InplaceMaskedFillScalar: self.masked_fill_(mask, value)
InplaceMaskedFillTensor: self.masked_fill_(mask, value)
InplaceMaskedScatter: self.masked_scatter_(mask, source)
Cast: out.copy_(self)
InplaceCopy: self.copy_(src)
InplaceZero: self.zero_()
InplaceOne: self.fill_(1)
InplaceFillScalar: self.fill_(value)
InplaceFillTensor: self.fill_(value)
Tril: torch.tril(self, diagonal, out=out)
InplaceTril: self.tril_(diagonal)
Triu: torch.triu(self, diagonal, out=out)
InplaceTriu: self.triu_(diagonal)
Arange: torch.arange(start, end, step, out=out)
Eye: torch.eye(n, m, out=out)
Linspace: torch.linspace(start, end, steps, out=out)
DropoutDoMask: torch.mul(self, torch.from_numpy(np.unpackbits(mask.numpy(), bitorder="little")).view(self.shape),
  out=out).mul_(1 / (1 - prob))
DropoutBackward: torch.mul(grad_output, torch.from_numpy(np.unpackbits(mask.numpy(),
  bitorder="little")).view(grad_output.shape), out=out).mul_(scale)
DropoutGenMask: np.packbits((torch.rand(math.prod(shape)) >= prob).numpy(), bitorder="little")
Dropout: torch.native_dropout(input, p, train)
""")

# Lists of tensors, and optimizers.
define("""
ForeachAddScalar: torch._foreach_add(x, scalar.item())
ForeachAddScalarV2: torch._foreach_add(x, scalar)
ForeachAddScalarList: torch._foreach_add(x, scalars)
ForeachAddList: torch._foreach_add(x1, x2, alpha=alpha.item())
ForeachAddListV2: torch._foreach_add(x1, x2, alpha=alpha)
ForeachMulScalar: torch._foreach_mul(x, scalar.item())
ForeachMulScalarV2: torch._foreach_mul(x, scalar)
ForeachMulScalarList: torch._foreach_mul(x, scalars)
ForeachMulList: torch._foreach_mul(x1, x2)
ForeachDivScalar: torch._foreach_div(x, scalar.item())
ForeachAddcmulScalar: torch._foreach_addcmul(x1, x2, x3, scalar.item())
ForeachAddcmulScalarV2: torch._foreach_addcmul(x1, x2, x3, scalar)
ForeachAddcdivScalar: torch._foreach_addcdiv(x1, x2, x3, scalar.item())
ForeachAddcdivScalarV2: torch._foreach_addcdiv(x1, x2, x3, scalar)
ForeachAddcdivScalarList: torch._foreach_addcdiv(x1, x2, x3, scalars)
ForeachLerpScalar: torch._foreach_lerp(x1, x2, weight)
ForeachSqrt: torch._foreach_sqrt(x)
ForeachNeg: torch._foreach_neg(x)
ForeachReciprocal: torch._foreach_reciprocal(x)
ForeachMaximumList: torch._foreach_maximum(x1, x2)
ForeachPowScalar: torch._foreach_pow(x, scalar.item())
ForeachNorm: torch._foreach_norm(x, scalar)
ForeachCopy: torch._foreach_copy_(out, x)
ForeachZeroInplace: torch._foreach_zero_(x)
Sum: torch.add(tensors[0], tensors[1], out=out).add_(tensors[2]).add_(tensors[3])
ForeachNonFiniteCheckAndUnscale: aten._amp_foreach_non_finite_check_and_unscale_(scaled_grads, found_inf, inv_scale)
AmpUpdateScale: (aten._amp_update_scale_(current_scale, growth_tracker, found_inf, growth_factor, backoff_factor,
  growth_interval), growth_tracker)
ApplyAdamWV2: aten._fused_adamw_([var], [grad], [m], [v], [], [step.float() + 1], lr=lr, beta1=beta1, beta2=beta2,
  weight_decay=weight_decay, eps=eps, amsgrad=amsgrad, maximize=maximize)
ApplyFusedEmaAdam: (aten._fused_adamw_([var], [grad], [m], [v], [], [step.float()], lr=lr, beta1=beta1, beta2=beta2,
  weight_decay=weight_decay, eps=eps, amsgrad=False, maximize=False), s.lerp_(var, 1 - ema_decay))
FusedAdamw: aten._fused_adamw_(params, grads, exp_avgs, exp_avg_sqs, [], state_steps, lr=lr, beta1=beta1, beta2=beta2,
  weight_decay=weight_decay, eps=eps, amsgrad=amsgrad, maximize=maximize)
FusedSgd: aten._fused_sgd_(params, grads, momentum_buffers, lr=lr, momentum=momentum, weight_decay=weight_decay,
  dampening=dampening, nesterov=nesterov, maximize=maximize, is_first_step=is_first_step)
Renorm: torch.renorm(self, p, dim, max_norm, out=out)
""")

# Reading and writing at indices.
define("""
Embedding: F.embedding(indices, weight)
EmbeddingBag: aten._embedding_bag(weight, indices, offsets, False, mode)
EmbeddingDenseBackward: aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
Gather: torch.gather(self, dim, index, out=out)
GatherV2: torch.index_select(self, dim, index, out=out)
GatherNd: self[indices[:, 0], indices[:, 1]]
IndexSelect: torch.index_select(self, dim, index, out=out)
Index: aten.index(self, indices, out=out)
IndexAdd: torch.index_add(self, dim, index, source, alpha=alpha, out=out)
IndexPutImpl: aten.index_put_(self, indices, values, accumulate)
Scatter: torch.scatter(self, dim, index, src, out=out)
ScatterValue: torch.scatter(self, dim, index, value, out=out)
ScatterAdd: torch.scatter_add(self, dim, index, src, out=out)
InplaceScatter: self.scatter_(dim, index, src)
InplaceScatterValue: self.scatter_(dim, index, value)
ScatterNdUpdate: aten.index_put_(self, [indices[:, 0]], updates)
UnfoldGrad: aten.unfold_backward(grad_out, input_sizes, dim, size, step)
InplaceScatterUpdate: [data[b].narrow(0, i, updates.shape[1]).copy_(updates[b]) for b, i in enumerate(indices.tolist())]
""")

# Losses.
define("""
KlDivBackward: torch.addcmul(zero, grad_output, target, value=-1 / target.numel(), out=out)
KlDivTargetBackward: torch.addcmul(zero, grad_output, torch.log(target, out=grad_target).sub_(self).add_(1), value=1 /
  target.numel(), out=grad_target)
L1LossBackward: aten.smooth_l1_loss_backward(grad_output, self, target, reduction, 0, grad_input=grad_input)
MseLossBackward: aten.mse_loss_backward(grad_output, self, target, reduction, grad_input=out)
L1Loss: F.l1_loss(self, target)
MseLoss: aten.mse_loss(self, target, reduction)
SmoothL1Loss: aten.smooth_l1_loss(self, target, reduction, beta)
SmoothL1LossBackward: aten.smooth_l1_loss_backward(grad_out, self, target, reduction, beta, grad_input=grad_input)
KlDiv: F.kl_div(self, target, reduction="mean")
BinaryCrossEntropy: aten.binary_cross_entropy(self, target, weight, reduction)
BinaryCrossEntropyBackward: aten.binary_cross_entropy_backward(grad_output, self, target, weight, reduction,
  grad_input=out)
BinaryCrossEntropyWithLogits: aten.binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction)
BinaryCrossEntropyWithLogitsBackward: (lambda t: torch.addcmul(-t, t + 1 - target, torch.sigmoid(self),
  out=out).mul_(grad_output).mul_(weight).div_(target.numel()))(pos_weight * target)
BinaryCrossEntropyWithLogitsTargetBackward: F.logsigmoid(self).mul_(1 -
  pos_weight).sub_(self).mul_(grad_output).mul_(weight).div_(target.numel())
SoftMarginLoss: aten.soft_margin_loss(self, target, reduction)
SoftMarginLossBackward: aten.soft_margin_loss_backward(grad_output, self, target, reduction)
NllLoss: aten.nll_loss_forward(self, target, weight, reduction, ignore_index)
NllLossBackward: aten.nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight,
  grad_input=out)
NllLoss2d: aten.nll_loss2d_forward(self, target, weight, reduction, ignore_index)
NllLoss2dBackward: aten.nll_loss2d_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight,
  grad_input=out)
CrossEntropyLoss: (lambda p: (F.nll_loss(p, target, weight), p))(torch.log_softmax(input, 1))
CrossEntropyLossGrad: aten._log_softmax_backward_data(aten.nll_loss_backward(grad_loss, log_prob, target, weight, 1,
  ignore_index, total_weight), log_prob, 1, torch.float32, out=out)
SoftmaxCrossEntropyWithLogits: (lambda p: (-(labels * p).sum(1), p.exp_().sub_(labels)))(torch.log_softmax(features, 1))
MultilabelMarginLoss: aten.multilabel_margin_loss_forward(self, target, reduction)
""")

# Products of matrices, convolutions, pooling and resampling.
define("""
Matmul: torch.matmul(self, mat2, out=out)
Mm: torch.mm(self, mat2, out=out)
BatchMatMul: torch.bmm(self, mat2, out=out)
Addmm: torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha, out=out)
InplaceAddmm: self.addmm_(mat1, mat2, beta=beta, alpha=alpha)
Baddbmm: torch.baddbmm(self, batch1, batch2, beta=beta, alpha=alpha, out=out)
InplaceBaddbmm: self.baddbmm_(batch1, batch2, beta=beta, alpha=alpha)
Addbmm: torch.addbmm(self, batch1, batch2, beta=beta, alpha=alpha, out=out)
Mv: torch.mv(self, vec, out=out)
Addmv: torch.addmv(self, mat, vec, beta=beta, alpha=alpha, out=out)
Dot: torch.dot(self, tensor, out=out)
Ger: torch.outer(self, vec2, out=out)
Gemm: torch.addmm(c, a, b, beta=beta, alpha=alpha, out=out)
Convolution: torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
ConvolutionBackward: aten.convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
  transposed, output_padding, groups, [True] * 3)
AvgPool2d: aten.avg_pool2d(self, kernel_size, strides, paddings, ceil_mode, count_include_pad, out=out)
AvgPool2dBackward: aten.avg_pool2d_backward(grad_output, self, kernel_size, stride, padding, ceil_mode,
  count_include_pad, None, grad_input=grad_input)
MaxPool2dWithIndices: aten.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)
MaxPool2dWithIndicesBackward: aten.max_pool2d_with_indices_backward(grad_output, self, kernel_size, stride, padding,
  dilation, ceil_mode, indices_64, grad_input=grad_input)
UpsampleNearest2d: aten.upsample_nearest2d(self, output_size, out=out)
UpsampleNearest2dV2: aten.upsample_nearest2d(self, output_size, out=out)
UpsampleNearest2dBackward: aten.upsample_nearest2d_backward(grad_out, output_size, input_size, grad_input=grad_input)
UpsampleBilinear2d: aten.upsample_bilinear2d(self, output_size, align_corners, out=out)
UpsampleBilinear2dBackward: aten.upsample_bilinear2d_backward(grad_out, output_size, input_size, align_corners,
  grad_input=out)
""")

# Normalisation and softmax.
define("""
LayerNorm: torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
LayerNormWithImplMode: torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
FastLayerNorm: torch.native_layer_norm(input, normalized_shape, weight, bias, eps)
LayerNormBackward: aten.native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, [True]
  * 3)
RmsNorm: aten._fused_rms_norm(x, gamma.shape, gamma, epsilon)
RmsNormGrad: (lambda h, g: (torch.addcmul(g, h, (g * h).mean(1, keepdim=True), value=-1).mul_(rstd), (dy *
  h).sum(0)))(x * rstd, dy * gamma)
AddRmsNorm: (lambda x: (*aten._fused_rms_norm(x, gamma.shape, gamma, epsilon), x))(torch.add(x1, x2, out=x_out))
AddLayerNorm: (lambda x: (*torch.native_layer_norm(x, gamma.shape, gamma, beta, epsilon), x))(torch.add(x1, x2,
  out=x_out).add_(bias))
AddLayerNormGrad: (lambda x, g, b: (x.add_(dsum), g, b))(*aten.native_layer_norm_backward(dy, x1 + x2, gamma.shape,
  mean, rstd, gamma, gamma, [True] * 3))
DeepNorm: (lambda y, m, r: (m, r, y))(*torch.native_layer_norm(torch.add(gx, x, alpha=alpha), gamma.shape, gamma,
  beta, epsilon))
DeepNormGrad: (lambda g, w, b: (alpha * g, g, b, w))(*aten.native_layer_norm_backward(dy, torch.add(gx, x,
  alpha=alpha), gamma.shape, mean, rstd, gamma, gamma, [True] * 3))
GroupNorm: torch.native_group_norm(self, gamma, beta, n, c, hxw, group, eps)
GroupNormBackward: aten.native_group_norm_backward(grad_out, input, mean, rstd, gamma, n, c, hxw, group, [True] * 3)
BatchNorm: torch.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
BatchNormBackward: aten.native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean,
  save_invstd, training, eps, [True] * 3)
BatchNormStats: (lambda v, m: (m, v.add_(eps).rsqrt_()))(*torch.var_mean(input, (0, 2, 3), correction=0))
BatchNormElemt: torch.native_batch_norm(input, weight, bias, mean, invstd.square().reciprocal_(), False, 0, 0)[0]
BatchNormReduceBackward: (lambda s, p: (s, p, p * invstd, s))(grad_out.sum((0, 2, 3)), (input - mean.view(1, -1, 1,
  1)).mul_(grad_out).sum((0, 2, 3)))
BatchNormElemtBackward: (lambda c, n: torch.addcmul(grad_out - c(sum_dy / n), input - c(mean), c(invstd.square() *
  sum_dy_xmu / n), value=-1).mul_(c(invstd * weight)))(lambda t: t.view(1, -1, 1, 1), counter.sum())
LogSoftmaxBackward: aten._log_softmax_backward_data(grad_output, output, dim, torch.float32, out=out)
Softmax: aten._softmax(self, dim, False, out=out)
SoftmaxBackward: aten._softmax_backward_data(grad_output, output, dim, torch.float32, grad_input=out)
LogSoftmax: aten._log_softmax(self, dim, False, out=out)
ScaledMaskedSoftmax: aten._softmax(torch.mul(x, scale).masked_fill_(mask, -10000), -1, False, out=y)
ScaledMaskedSoftmaxBackward: aten._softmax_backward_data(grad_output, y, -1, torch.float32,
  grad_input=out).mul_(scale).masked_fill_(mask, 0)
LogSumExp: torch.logsumexp(self, dim, keep_dim, out=out)
""")

# Reductions, running sums and order.
define("""
ReduceSum: torch.sum(self, dims, keep_dims, out=out)
ReduceNansum: torch.nansum(self, dim, keep_dim, out=out)
Mean: torch.mean(self, dim, keep_dim, out=out)
MeanV2: torch.mean(self, dim, keep_dim, out=out)
Amax: torch.amax(self, dim, keep_dim, out=out)
Amin: torch.amin(self, dim, keep_dim, out=out)
Max: torch.max(self)
Min: torch.min(self)
MaxDim: torch.max(self, dim, keepdim)
MinDim: torch.min(self, dim, keepdim)
Prod: torch.prod(self)
ProdDim: torch.prod(self, dim, keep_dim, out=out)
Var: torch.var(self, dim, correction=int(unbiased), keepdim=keepdim, out=out)
VarCorrection: torch.var(self, dim, correction=correction, keepdim=keepdim, out=out)
VarMean: torch.var_mean(self, dim, correction=correction, keepdim=keepdim)
Std: torch.std(self, dim, correction=correction, keepdim=keepdim, out=out)
StdMeanCorrection: torch.std_mean(self, dim, correction=correction, keepdim=keepdim)
Norm: torch.norm(self, p_scalar, dim, keepdim)
LinalgVectorNorm: torch.linalg.vector_norm(self, ord, dims, keep_dims, out=out)
ArgMax: torch.argmax(self, dim, keepdim)
ArgMin: torch.argmin(self, dim, keepdim)
All: torch.all(self, dim, keepdim)
Any: torch.any(self, dim, keepdim)
Cumsum: torch.cumsum(self, dim, out=out)
CumsumV2: torch.cumsum(self, dim, out=out)
Cumprod: torch.cumprod(input, int(dim), out=out)
Topk: torch.topk(self, k, dim, largest, sorted)
Sort: torch.sort(self, stable=stable, dim=dim, descending=descending)
""")

# Shapes.
define("""
Slice: out.copy_(self[:, start:end:step])
Permute: out.copy_(self.permute(dims))
Cat: torch.cat(tensors, dim, out=out)
Stack: torch.stack(tensors, dim, out=out)
SplitTensor: torch.split_copy(self, split_sections, dim, out=out)
SplitWithSize: torch.split_with_sizes_copy(self, split_size, dim, out=out)
Expand: out.copy_(self.expand(size))
Repeat: self.repeat(repeats)
Flip: torch.flip(self, dims)
Roll: torch.roll(x, shifts, dims)
ConstantPadNd: torch.constant_pad_nd(self, pad, value)
OneHot: out.fill_(off_value.item()).scatter_(axis, self_64.unsqueeze(axis), on_value.item())
""")
