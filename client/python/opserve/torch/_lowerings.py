"""Which operators of the pool serve which ATen nodes.

A lowering takes the builder of the program and the node's arguments, tensors as values, and gives
the node's value. `builder.result` is torch's result, as meta tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from opserve.program import Literal
from opserve.torch import _random_lowerings
from opserve.torch._graph import Builder, Unsupported, Value

aten = torch.ops.aten
prims = torch.ops.prims

Lowering = Callable[..., Any]

LOWERINGS: dict[Any, Lowering] = dict(_random_lowerings.LOWERINGS)

# Nodes that only look at elements in another way.
VIEWS = {
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.permute.default,
    aten.expand.default,
    aten.slice.Tensor,
    aten.select.int,
    aten.unsqueeze.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.transpose.int,
    aten.t.default,
    aten.alias.default,
    aten.detach.default,
    aten.diagonal.default,
    aten.unfold.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
    aten.chunk.default,
}


def lowers(*targets: Any) -> Callable[[Lowering], Lowering]:
    def add(lowering: Lowering) -> Lowering:
        for target in targets:
            LOWERINGS[target] = lowering
        return lowering

    return add


# Functions of one tensor, element by element.
_UNARY = {
    aten.relu.default: "Relu",
    aten.silu.default: "Silu",
    aten.sigmoid.default: "Sigmoid",
    aten.tanh.default: "Tanh",
    aten.hardswish.default: "Hardswish",
    aten.hardsigmoid.default: "Hardsigmoid",
    aten.mish.default: "Mish",
    aten.neg.default: "Neg",
    aten.abs.default: "Abs",
    aten.sign.default: "Sign",
    aten.exp.default: "Exp",
    aten.expm1.default: "Expm1",
    aten.log.default: "Log",
    aten.log1p.default: "Log1p",
    aten.log2.default: "Log2",
    aten.log10.default: "Log10",
    aten.sqrt.default: "Sqrt",
    aten.rsqrt.default: "Rsqrt",
    aten.reciprocal.default: "Reciprocal",
    aten.sin.default: "Sin",
    aten.cos.default: "Cos",
    aten.tan.default: "Tan",
    aten.sinh.default: "Sinh",
    aten.cosh.default: "Cosh",
    aten.asin.default: "Asin",
    aten.acos.default: "Acos",
    aten.atan.default: "Atan",
    aten.asinh.default: "Asinh",
    aten.acosh.default: "Acosh",
    aten.atanh.default: "Atanh",
    aten.erf.default: "Erf",
    aten.erfc.default: "Erfc",
    aten.exp2.default: "Exp2",
    aten.floor.default: "Floor",
    aten.ceil.default: "Ceil",
    aten.round.default: "Round",
    aten.trunc.default: "Trunc",
    aten.logical_not.default: "LogicalNot",
    aten.bitwise_not.default: "BitwiseNot",
}
_FLOAT_RESULT = {"Neg", "Abs", "Sign", "Relu", "LogicalNot", "BitwiseNot", "Floor", "Ceil",
                 "Round", "Trunc"}  # fmt: skip


def _unary(name: str) -> Lowering:
    key = "input" if name == "Cos" else "self"

    def lowering(b: Builder, x: Value) -> Value:
        if name not in _FLOAT_RESULT:
            x = b.cast(x, b.result.dtype)
        return b.op(name, **{key: x})

    return lowering


for _target, _name in _UNARY.items():
    LOWERINGS[_target] = _unary(_name)


def tensor(b: Builder, value: Any, dtype: torch.dtype) -> Value:
    """A tensor of this dtype: of the graph, or of one number."""
    if isinstance(value, Value):
        return b.cast(value, dtype)
    return b.full(value, torch.empty((), dtype=dtype, device="meta"))


def _promoted(x: Any, y: Any) -> torch.dtype:
    metas = [one.meta if isinstance(one, Value) else one for one in (x, y)]
    return torch.result_type(*metas)


def _is_one(number: Any) -> bool:
    return isinstance(number, (int, float)) and number == 1


@lowers(aten.add.Tensor, aten.add.Scalar)
def _add(b: Builder, x: Value, y: Any, alpha: Any = 1) -> Value:
    return _sum(b, "Add", "Adds", x, y, alpha)


@lowers(aten.sub.Tensor, aten.sub.Scalar)
def _sub(b: Builder, x: Value, y: Any, alpha: Any = 1) -> Value:
    return _sum(b, "Sub", "Subs", x, y, alpha)


@lowers(aten.rsub.Scalar, aten.rsub.Tensor)
def _rsub(b: Builder, x: Value, y: Any, alpha: Any = 1) -> Value:
    return _sum(b, "Sub", "Subs", tensor(b, y, b.result.dtype), x, alpha)


def _sum(b: Builder, name: str, scalar: str, x: Any, y: Any, alpha: Any) -> Value:
    dtype = b.result.dtype
    x = tensor(b, x, dtype)
    alpha = None if _is_one(alpha) else alpha
    if not isinstance(y, Value):
        return b.op(scalar, self=x, other=y, alpha=alpha)
    return b.op(name, self=x, other=b.cast(y, dtype), alpha=alpha)


@lowers(aten.mul.Tensor, aten.mul.Scalar)
def _mul(b: Builder, x: Any, y: Any) -> Value:
    dtype = b.result.dtype
    if not isinstance(x, Value):
        x, y = y, x
    if not isinstance(y, Value):
        return b.op("Muls", self=b.cast(x, dtype), other=y)
    if dtype == torch.bool:
        return b.op("LogicalAnd", self=x, other=y)
    return b.op("Mul", self=b.cast(x, dtype), other=b.cast(y, dtype))


@lowers(aten.div.Tensor, aten.div.Scalar)
def _div(b: Builder, x: Any, y: Any) -> Value:
    dtype = b.result.dtype
    x = tensor(b, x, dtype)
    if not isinstance(y, Value):
        return b.op("Divs", self=x, other=y)
    return b.op("Div", self=x, other=b.cast(y, dtype))


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _div_mode(b: Builder, x: Value, y: Any, rounding_mode: Optional[str] = None) -> Value:
    if rounding_mode is None:
        return _div(b, x, y)
    dtype = b.result.dtype
    mode = 2 if rounding_mode == "floor" else 1
    return b.op("DivMod", self=b.cast(x, dtype), other=tensor(b, y, dtype), mode=mode)


@lowers(aten.floor_divide.default)
def _floor_divide(b: Builder, x: Value, y: Any) -> Value:
    dtype = b.result.dtype
    return b.op("FloorDivide", self=b.cast(x, dtype), other=tensor(b, y, dtype))


@lowers(aten.remainder.Tensor, aten.remainder.Scalar)
def _remainder(b: Builder, x: Value, y: Any) -> Value:
    dtype = b.result.dtype
    return b.op(
        "RemainderTensorTensor", self=b.cast(x, dtype), other=tensor(b, y, dtype)
    )


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def _fmod(b: Builder, x: Value, y: Any) -> Value:
    dtype = b.result.dtype
    return b.op("FmodTensor", self=b.cast(x, dtype), other=tensor(b, y, dtype))


def _binary(name: str, other: str = "other") -> Lowering:
    def lowering(b: Builder, x: Value, y: Any) -> Value:
        dtype = b.result.dtype
        return b.op(name, **{"self": tensor(b, x, dtype), other: tensor(b, y, dtype)})

    return lowering


LOWERINGS[aten.maximum.default] = _binary("Maximum")
LOWERINGS[aten.minimum.default] = _binary("Minimum")
LOWERINGS[aten.atan2.default] = _binary("Atan2")
LOWERINGS[aten.pow.Tensor_Tensor] = _binary("PowTensorTensor", "exponent")


@lowers(aten.pow.Tensor_Scalar)
def _pow(b: Builder, x: Value, exponent: Any) -> Value:
    return b.op("PowTensorScalar", self=b.cast(x, b.result.dtype), exponent=exponent)


@lowers(aten.pow.Scalar)
def _pow_scalar(b: Builder, base: Any, exponent: Value) -> Value:
    return b.op("PowScalarTensor", self=base, exponent=b.cast(exponent, b.result.dtype))


def _comparison(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, y: Any) -> Value:
        dtype = _promoted(x, y)
        return b.op(f"{name}Tensor", self=b.cast(x, dtype), other=tensor(b, y, dtype))

    return lowering


for _short in ("eq", "ne", "gt", "ge", "lt", "le"):
    _packet = getattr(aten, _short)
    for _overload in (_packet.Tensor, _packet.Scalar):
        LOWERINGS[_overload] = _comparison(_short.capitalize())


def _logical(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, y: Any) -> Value:
        return b.op(
            name, self=b.cast(x, torch.bool), other=tensor(b, y, torch.bool)
        )

    return lowering


LOWERINGS[aten.logical_and.default] = _logical("LogicalAnd")
LOWERINGS[aten.logical_or.default] = _logical("LogicalOr")
LOWERINGS[aten.logical_xor.default] = _logical("LogicalXor")


def _bitwise(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, y: Any) -> Value:
        dtype = b.result.dtype
        return b.op(
            f"Bitwise{name}Tensor", self=b.cast(x, dtype), other=tensor(b, y, dtype)
        )

    return lowering


for _short in ("and", "or", "xor"):
    _packet = getattr(aten, f"bitwise_{_short}")
    for _overload in (_packet.Tensor, _packet.Scalar):
        LOWERINGS[_overload] = _bitwise(_short.capitalize())


@lowers(aten.isnan.default)
def _isnan(b: Builder, x: Value) -> Value:
    return b.op("NeTensor", self=x, other=x)  # only NaN differs from itself


@lowers(aten.isinf.default)
def _isinf(b: Builder, x: Value) -> Value:
    return b.op("IsInf", x=x)


@lowers(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def _where(b: Builder, condition: Value, x: Any, y: Any) -> Value:
    dtype = b.result.dtype
    return b.op(
        "SWhere",
        condition=b.cast(condition, torch.bool),
        self=tensor(b, x, dtype),
        other=tensor(b, y, dtype),
    )


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def _masked_fill(b: Builder, x: Value, mask: Value, value: Any) -> Value:
    return _where(b, mask, value, x)


@lowers(aten.clamp.default)
def _clamp(b: Builder, x: Value, low: Any = None, high: Any = None) -> Value:
    x = b.cast(x, b.result.dtype)
    return b.op("Clamp", self=x, clip_value_min=low, clip_value_max=high)


@lowers(aten.clamp_min.default)
def _clamp_min(b: Builder, x: Value, low: Any) -> Value:
    return _clamp(b, x, low)


@lowers(aten.clamp_max.default)
def _clamp_max(b: Builder, x: Value, high: Any) -> Value:
    return _clamp(b, x, None, high)


@lowers(aten.addcmul.default)
def _addcmul(b: Builder, x: Value, y: Value, z: Value, value: Any = 1) -> Value:
    return b.op("Addcmul", self=x, tensor1=y, tensor2=z, value=value)


@lowers(aten.addcdiv.default)
def _addcdiv(b: Builder, x: Value, y: Value, z: Value, value: Any = 1) -> Value:
    return b.op("Addcdiv", self=x, tensor1=y, tensor2=z, value=value)


@lowers(aten.lerp.Scalar)
def _lerp_scalar(b: Builder, x: Value, end: Value, weight: Any) -> Value:
    return b.op("Lerps", self=x, end=end, weight=weight)


@lowers(aten.lerp.Tensor)
def _lerp(b: Builder, x: Value, end: Value, weight: Value) -> Value:
    return b.op("Lerp", self=x, end=end, weight=weight)


# Activations and their gradients.


@lowers(aten.gelu.default)
def _gelu(b: Builder, x: Value, approximate: str = "none") -> Value:
    return b.op("GeluV2", x=x, approximate=1 if approximate == "tanh" else 0)


@lowers(aten.gelu_backward.default)
def _gelu_backward(b: Builder, grad: Value, x: Value, approximate: str = "none") -> Value:
    return b.op("GeluBackwardV2", grad_output=grad, self=x, approximate=approximate)


def _backward(name: str, saved: str = "self") -> Lowering:
    def lowering(b: Builder, grad: Value, x: Value) -> Value:
        return b.op(name, **{"grad_output": grad, saved: x})

    return lowering


LOWERINGS[aten.silu_backward.default] = _backward("SiluBackward")
LOWERINGS[aten.sigmoid_backward.default] = _backward("SigmoidBackward", "output")
LOWERINGS[aten.tanh_backward.default] = _backward("TanhBackward", "output")
LOWERINGS[aten.hardswish_backward.default] = _backward("HardswishBackward")
LOWERINGS[aten.hardsigmoid_backward.default] = _backward("HardsigmoidBackward")
LOWERINGS[aten.mish_backward.default] = _backward("MishBackward")


@lowers(aten.threshold_backward.default)
def _threshold_backward(b: Builder, grad: Value, x: Value, threshold: Any) -> Value:
    return b.op("ThresholdBackward", grad_output=grad, self=x, threshold=threshold)


@lowers(aten.leaky_relu.default)
def _leaky_relu(b: Builder, x: Value, slope: Any = 0.01) -> Value:
    return b.op("LeakyRelu", self=x, negative_slope=slope)


@lowers(aten.leaky_relu_backward.default)
def _leaky_relu_backward(
    b: Builder, grad: Value, x: Value, slope: Any, is_result: bool
) -> Value:
    return b.op(
        "LeakyReluBackward",
        grad_output=grad,
        self=x,
        negative_slope=slope,
        self_is_result=is_result,
    )


@lowers(aten._prelu_kernel.default)
def _prelu(b: Builder, x: Value, weight: Value) -> Value:
    """`weight` broadcasts; torch gives it one element, or one for each channel."""
    if x.dtype != torch.float64:
        slopes = b.view(torch.Tensor.view, weight, (-1,))
        return b.op("Prelu", self=x, weight=slopes)
    scaled = b.op("Mul", self=x, other=weight, meta=b.result)
    zero = tensor(b, 0, x.dtype)
    shape = torch.empty(x.shape, dtype=torch.bool, device="meta")
    is_above = b.op("GtTensor", self=x, other=zero, meta=shape)
    return b.op("SWhere", condition=is_above, self=x, other=scaled)


@lowers(aten.elu.default)
def _elu(b: Builder, x: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Value:
    return b.op("Elu", self=x, alpha=alpha, scale=scale, input_scale=input_scale)


@lowers(aten.elu_backward.default)
def _elu_backward(
    b: Builder, grad: Value, alpha: Any, scale: Any, input_scale: Any, is_result: bool, x: Value
) -> Value:
    return b.op(
        "EluBackward",
        grad_output=grad,
        alpha=alpha,
        scale=scale,
        input_scale=input_scale,
        is_result=is_result,
        self_or_result=x,
    )


@lowers(aten.hardtanh.default)
def _hardtanh(b: Builder, x: Value, low: Any = -1, high: Any = 1) -> Value:
    return b.op("Hardtanh", self=x, clip_value_min=low, clip_value_max=high)


@lowers(aten.hardtanh_backward.default)
def _hardtanh_backward(b: Builder, grad: Value, x: Value, low: Any, high: Any) -> Value:
    return b.op("HardtanhBackward", grad_output=grad, self=x, min=low, max=high)


@lowers(aten.softplus.default)
def _softplus(b: Builder, x: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    return b.op("Softplus", self=x, beta=beta, threshold=threshold)


@lowers(aten.softplus_backward.default)
def _softplus_backward(b: Builder, grad: Value, x: Value, beta: Any, threshold: Any) -> Value:
    return b.op(
        "SoftplusBackward", grad_output=grad, self=x, beta=beta, threshold=threshold
    )


@lowers(aten.log_sigmoid_forward.default)
def _log_sigmoid(b: Builder, x: Value) -> tuple[Value, Value]:
    metas = b.result[0], torch.empty(x.shape, dtype=x.dtype, device="meta")
    return b.op("LogSigmoidForward", self=x, meta=metas)


@lowers(aten.log_sigmoid_backward.default)
def _log_sigmoid_backward(b: Builder, grad: Value, x: Value, buffer: Value) -> Value:
    if buffer.shape != x.shape:  # torch's on the CPU may be empty
        buffer = _log_sigmoid_buffer(b, x)
    return b.op("LogSigmoidBackward", grad_output=grad, self=x, buffer=buffer)


def _log_sigmoid_buffer(b: Builder, x: Value) -> Value:
    metas = x.meta, torch.empty(x.shape, dtype=x.dtype, device="meta")
    return b.op("LogSigmoidForward", self=x, meta=metas)[1]


@lowers(aten.glu.default)
def _glu(b: Builder, x: Value, dim: int = -1) -> Value:
    return b.op("Glu", self=x, dim=dim)


@lowers(aten.glu_backward.default)
def _glu_backward(b: Builder, grad: Value, x: Value, dim: int) -> Value:
    return b.op("GluBackward", grad_out=grad, self=x, dim=dim)


# Products.


@lowers(aten.mm.default)
def _mm(b: Builder, x: Value, y: Value) -> Value:
    return b.op("Mm", self=x, mat2=y)


@lowers(aten.bmm.default)
def _bmm(b: Builder, x: Value, y: Value) -> Value:
    return b.op("BatchMatMul", self=x, mat2=y)


@lowers(aten.mv.default)
def _mv(b: Builder, x: Value, y: Value) -> Value:
    return b.op("Mv", self=x, vec=y)


@lowers(aten.dot.default)
def _dot(b: Builder, x: Value, y: Value) -> Value:
    return b.op("Dot", self=x, tensor=y)


@lowers(aten.addmm.default)
def _addmm(b: Builder, bias: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    return b.op("Addmm", self=bias, mat1=x, mat2=y, beta=beta, alpha=alpha)


@lowers(aten.baddbmm.default)
def _baddbmm(b: Builder, bias: Value, x: Value, y: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    return b.op("Baddbmm", self=bias, batch1=x, batch2=y, beta=beta, alpha=alpha)


# Reductions.


def _axes(x: Value, dims: Any) -> list[int]:
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(len(x.shape)))
    return [dims] if isinstance(dims, int) else list(dims)


@lowers(aten.sum.default, aten.sum.dim_IntList)
def _reduce_sum(
    b: Builder, x: Value, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    return _reduce(b, "ReduceSum", "dims", "keep_dims", x, dims, keepdim)


@lowers(aten.mean.default, aten.mean.dim)
def _mean(
    b: Builder, x: Value, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    return _reduce(b, "Mean", "dim", "keep_dim", x, dims, keepdim)


def _reduce(
    b: Builder, name: str, dims_key: str, keep_key: str, x: Value, dims: Any, keepdim: bool
) -> Value:
    dtype = str(b.result.dtype).rpartition(".")[2]
    return b.op(
        name, **{"self": x, dims_key: _axes(x, dims), keep_key: keepdim, "dtype": dtype}
    )


def _extreme(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
        return b.op(name, self=x, dim=_axes(x, dims), keep_dim=keepdim)

    return lowering


LOWERINGS[aten.amax.default] = _extreme("Amax")
LOWERINGS[aten.amin.default] = _extreme("Amin")
LOWERINGS[aten.max.default] = _extreme("Amax")
LOWERINGS[aten.min.default] = _extreme("Amin")


def _extreme_with_index(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dim: int, keepdim: bool = False) -> Any:
        return b.op(name, self=x, dim=dim, keepdim=keepdim)

    return lowering


LOWERINGS[aten.max.dim] = _extreme_with_index("MaxDim")
LOWERINGS[aten.min.dim] = _extreme_with_index("MinDim")


def _any_of(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dims: Any = None, keepdim: bool = False) -> Value:
        return b.op(
            name, self=b.cast(x, torch.bool), dim=_axes(x, dims), keepdim=keepdim
        )

    return lowering


for _packet, _name in ((aten.any, "Any"), (aten.all, "All")):
    for _overload in ("default", "dim", "dims"):
        if hasattr(_packet, _overload):
            LOWERINGS[getattr(_packet, _overload)] = _any_of(_name)


def _arg(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, dim: Optional[int] = None, keepdim: bool = False) -> Value:
        if dim is None:
            x = b.view(torch.reshape, x, (-1,))
            dim, keepdim = 0, False
            if b.result.dim() != 0:
                raise Unsupported("keepdim of all axes")
        return b.op(name, self=x, dim=dim, keepdim=keepdim)

    return lowering


LOWERINGS[aten.argmax.default] = _arg("ArgMax")
LOWERINGS[aten.argmin.default] = _arg("ArgMin")


@lowers(aten.var.correction)
def _var(
    b: Builder, x: Value, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Value:
    correction = 1 if correction is None else int(correction)
    return b.op(
        "VarCorrection", self=x, dim=_axes(x, dims), correction=correction, keepdim=keepdim
    )


@lowers(aten.var_mean.correction)
def _var_mean(
    b: Builder, x: Value, dims: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    correction = 1 if correction is None else int(correction)
    return b.op(
        "VarMean", self=x, dim=_axes(x, dims), correction=correction, keepdim=keepdim
    )


@lowers(aten.cumsum.default)
def _cumsum(b: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op("Cumsum", self=b.cast(x, b.result.dtype), dim=dim, dtype=name)


@lowers(aten.cumprod.default)
def _cumprod(b: Builder, x: Value, dim: int, dtype: Any = None) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op("Cumprod", input=b.cast(x, b.result.dtype), dim=dim, dtype=name)


@lowers(aten.prod.dim_int)
def _prod_dim(
    b: Builder, x: Value, dim: int, keepdim: bool = False, dtype: Any = None
) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op("ProdDim", self=x, dim=dim, keep_dim=keepdim, dtype=name)


@lowers(aten.prod.default)
def _prod(b: Builder, x: Value, dtype: Any = None) -> Value:
    return _prod_dim(b, b.view(torch.Tensor.view, x, (-1,)), 0)


@lowers(aten.topk.default)
def _topk(
    b: Builder, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:
    return b.op("Topk", self=x, k=k, dim=dim, largest=largest, sorted=sorted)


@lowers(aten.sort.default)
def _sort(b: Builder, x: Value, dim: int = -1, descending: bool = False) -> Any:
    return b.op("Sort", self=x, stable=True, dim=dim, descending=descending)


@lowers(aten.logsumexp.default)
def _logsumexp(b: Builder, x: Value, dims: Any, keepdim: bool = False) -> Value:
    return b.op("LogSumExp", self=x, dim=_axes(x, dims), keep_dim=keepdim)


@lowers(aten.linalg_vector_norm.default)
def _vector_norm(
    b: Builder, x: Value, ord: Any = 2, dims: Any = None, keepdim: bool = False, dtype: Any = None
) -> Value:
    name = str(b.result.dtype).rpartition(".")[2]
    return b.op(
        "LinalgVectorNorm", self=x, ord=ord, dims=_axes(x, dims), keep_dims=keepdim, dtype=name
    )


# Softmax and losses.


@lowers(aten._softmax.default)
def _softmax(b: Builder, x: Value, dim: int, half_to_float: bool) -> Value:
    return b.op("Softmax", self=b.cast(x, b.result.dtype), dim=dim)


@lowers(aten._log_softmax.default)
def _log_softmax(b: Builder, x: Value, dim: int, half_to_float: bool) -> Value:
    return b.op("LogSoftmax", self=b.cast(x, b.result.dtype), dim=dim)


@lowers(aten._softmax_backward_data.default)
def _softmax_backward(
    b: Builder, grad: Value, output: Value, dim: int, dtype: torch.dtype
) -> Value:
    return _softmax_gradient(b, "SoftmaxBackward", grad, output, dim)


@lowers(aten._log_softmax_backward_data.default)
def _log_softmax_backward(
    b: Builder, grad: Value, output: Value, dim: int, dtype: torch.dtype
) -> Value:
    return _softmax_gradient(b, "LogSoftmaxBackward", grad, output, dim)


def _softmax_gradient(b: Builder, name: str, grad: Value, output: Value, dim: int) -> Value:
    meta = torch.empty(output.shape, dtype=output.dtype, device="meta")
    value = b.op(name, grad_output=grad, output=output, dim=dim, meta=meta)
    return b.cast(value, b.result.dtype)


def _ones(b: Builder, count: int, dtype: torch.dtype) -> Value:
    return b.full(1, torch.empty((count,), dtype=dtype, device="meta"))


@lowers(aten.nll_loss_forward.default)
def _nll_loss(
    b: Builder, x: Value, target: Value, weight: Optional[Value], reduction: int, ignore: int
) -> Any:
    weight = weight or _ones(b, x.shape[-1], x.dtype)
    return b.op(
        "NllLoss", self=x, target=target, weight=weight, reduction=reduction, ignore_index=ignore
    )


@lowers(aten.nll_loss_backward.default)
def _nll_loss_backward(
    b: Builder,
    grad: Value,
    x: Value,
    target: Value,
    weight: Optional[Value],
    reduction: int,
    ignore: int,
    total_weight: Value,
) -> Value:
    weight = weight or _ones(b, x.shape[-1], x.dtype)
    return b.op(
        "NllLossBackward",
        grad_output=grad,
        self=x,
        target=target,
        weight=weight,
        reduction=reduction,
        ignore_index=ignore,
        total_weight=total_weight,
    )


@lowers(aten.mse_loss.default)
def _mse_loss(b: Builder, x: Value, target: Value, reduction: int = 1) -> Value:
    return b.op("MseLoss", self=x, target=target, reduction=reduction)


@lowers(aten.mse_loss_backward.default)
def _mse_loss_backward(b: Builder, grad: Value, x: Value, target: Value, reduction: int) -> Value:
    return b.op("MseLossBackward", grad_output=grad, self=x, target=target, reduction=reduction)


@lowers(aten.smooth_l1_loss.default)
def _smooth_l1(b: Builder, x: Value, target: Value, reduction: int = 1, beta: float = 1) -> Value:
    return b.op("SmoothL1Loss", self=x, target=target, reduction=reduction, beta=beta)


@lowers(aten.smooth_l1_loss_backward.default)
def _smooth_l1_backward(
    b: Builder, grad: Value, x: Value, target: Value, reduction: int, beta: float
) -> Value:
    return b.op(
        "SmoothL1LossBackward",
        grad_out=grad,
        self=x,
        target=target,
        reduction=reduction,
        beta=beta,
    )


@lowers(aten.binary_cross_entropy.default)
def _bce(
    b: Builder, x: Value, target: Value, weight: Optional[Value] = None, reduction: int = 1
) -> Value:
    return b.op("BinaryCrossEntropy", self=x, target=target, weight=weight, reduction=reduction)


@lowers(aten.binary_cross_entropy_backward.default)
def _bce_backward(
    b: Builder,
    grad: Value,
    x: Value,
    target: Value,
    weight: Optional[Value] = None,
    reduction: int = 1,
) -> Value:
    return b.op(
        "BinaryCrossEntropyBackward",
        grad_output=grad,
        self=x,
        target=target,
        weight=weight,
        reduction=reduction,
    )


@lowers(aten.binary_cross_entropy_with_logits.default)
def _bce_logits(
    b: Builder,
    x: Value,
    target: Value,
    weight: Optional[Value] = None,
    pos_weight: Optional[Value] = None,
    reduction: int = 1,
) -> Value:
    return b.op(
        "BinaryCrossEntropyWithLogits",
        self=x,
        target=target,
        weight=weight,
        pos_weight=pos_weight,
        reduction=reduction,
    )


# Norms.


@lowers(aten.native_layer_norm.default)
def _layer_norm(
    b: Builder,
    x: Value,
    shape: Sequence[int],
    weight: Optional[Value],
    bias: Optional[Value],
    eps: float,
) -> Any:
    return b.op(
        "LayerNorm", input=x, normalized_shape=list(shape), weight=weight, bias=bias, eps=eps
    )


@lowers(aten.native_layer_norm_backward.default)
def _layer_norm_backward(
    b: Builder,
    grad: Value,
    x: Value,
    shape: Sequence[int],
    mean: Value,
    rstd: Value,
    weight: Optional[Value],
    bias: Optional[Value],
    mask: Sequence[bool],
) -> Any:
    return b.op(
        "LayerNormBackward",
        grad_out=grad,
        input=x,
        normalized_shape=list(shape),
        mean=mean,
        rstd=rstd,
        weight=weight,
        bias=bias,
        outputs=_wanted(["grad_input_out", "grad_weight_out", "grad_bias_out"], mask),
        meta=_masked(
            mask,
            x.meta,
            None if weight is None else weight.meta,
            None if bias is None else bias.meta,
        ),
    )


def _wanted(names: Sequence[str], mask: Sequence[bool]) -> list[str]:
    return [name for name, is_wanted in zip(names, mask) if is_wanted]


def _masked(mask: Sequence[bool], *metas: Any) -> list[Any]:
    return [meta if is_wanted else None for meta, is_wanted in zip(metas, mask)]


@lowers(aten.native_group_norm.default)
def _group_norm(
    b: Builder,
    x: Value,
    weight: Optional[Value],
    bias: Optional[Value],
    n: int,
    c: int,
    hxw: int,
    group: int,
    eps: float,
) -> Any:
    return b.op(
        "GroupNorm",
        self=x,
        gamma=weight,
        beta=bias,
        n=n,
        c=c,
        hxw=hxw,
        group=group,
        eps=eps,
    )


@lowers(aten.native_group_norm_backward.default)
def _group_norm_backward(
    b: Builder,
    grad: Value,
    x: Value,
    mean: Value,
    rstd: Value,
    weight: Optional[Value],
    n: int,
    c: int,
    hxw: int,
    group: int,
    mask: Sequence[bool],
) -> Any:
    per_channel = torch.empty((c,), dtype=x.dtype, device="meta")
    return b.op(
        "GroupNormBackward",
        grad_out=grad,
        input=x,
        mean=mean,
        rstd=rstd,
        gamma=weight,
        n=n,
        c=c,
        hxw=hxw,
        group=group,
        outputs=_wanted(["grad_input", "grad_gamma_out", "grad_beta_out"], mask),
        meta=_masked(mask, x.meta, per_channel, per_channel),
    )


@lowers(
    aten._native_batch_norm_legit_functional.default,
    aten._native_batch_norm_legit.default,
    aten.native_batch_norm.default,
)
def _batch_norm(
    b: Builder,
    x: Value,
    weight: Optional[Value],
    bias: Optional[Value],
    mean: Optional[Value],
    var: Optional[Value],
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    channels = x.shape[1]
    weight = weight or _ones(b, channels, x.dtype)
    bias = bias or b.full(0, torch.empty((channels,), dtype=x.dtype, device="meta"))
    # The outputs as the catalogue has them: running statistics, then the others.
    given = b.op(
        "BatchNorm",
        input=x,
        weight=weight,
        bias=bias,
        running_mean=mean,
        running_var=var,
        training=training,
        momentum=momentum,
        eps=eps,
        meta=_batch_norm_metas(x, weight, mean, var, training),
    )
    new_mean, new_var, output, save_mean, save_invstd = given
    if not training:
        empty = b.full(0, torch.empty((0,), dtype=x.dtype, device="meta"))
        save_mean = save_invstd = empty
    return output, save_mean, save_invstd, new_mean, new_var


@lowers(aten._native_batch_norm_legit_no_training.default)
def _batch_norm_in_evaluation(
    b: Builder,
    x: Value,
    weight: Optional[Value],
    bias: Optional[Value],
    mean: Value,
    var: Value,
    momentum: float,
    eps: float,
) -> Any:
    given = _batch_norm(b, x, weight, bias, mean, var, False, momentum, eps)
    return given[:3]


def _batch_norm_metas(
    x: Value, weight: Value, mean: Optional[Value], var: Optional[Value], training: bool
) -> list[Any]:
    per_channel = torch.empty((x.shape[1],), dtype=weight.dtype, device="meta")
    return [
        None if mean is None else mean.meta,
        None if var is None else var.meta,
        x.meta,
        per_channel,
        per_channel,
    ]


@lowers(aten.native_batch_norm_backward.default)
def _batch_norm_backward(
    b: Builder,
    grad: Value,
    x: Value,
    weight: Optional[Value],
    mean: Optional[Value],
    var: Optional[Value],
    save_mean: Optional[Value],
    save_invstd: Optional[Value],
    training: bool,
    eps: float,
    mask: Sequence[bool],
) -> Any:
    per_channel = torch.empty((x.shape[1],), dtype=x.dtype, device="meta")
    return b.op(
        "BatchNormBackward",
        grad_out=grad,
        input=x,
        weight=weight,
        running_mean=mean,
        running_var=var,
        save_mean=save_mean if training else None,
        save_invstd=save_invstd if training else None,
        training=training,
        eps=eps,
        outputs=_wanted(["grad_input", "grad_weight", "grad_bias"], mask),
        meta=_masked(mask, x.meta, per_channel, per_channel),
    )


# Windows.


def _pair(numbers: Any) -> list[int]:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * 2 if len(numbers) == 1 else numbers


@lowers(aten.convolution.default)
def _convolution(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Optional[Value],
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Value:
    return b.op(
        "Convolution",
        input=x,
        weight=weight,
        bias=bias,
        stride=list(stride),
        padding=list(padding),
        dilation=list(dilation),
        transposed=transposed,
        output_padding=list(output_padding),
        groups=groups,
    )


@lowers(aten.convolution_backward.default)
def _convolution_backward(
    b: Builder,
    grad: Value,
    x: Value,
    weight: Value,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    mask: Sequence[bool],
) -> Any:
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    per_channel = torch.empty((channels,), dtype=x.dtype, device="meta")
    return b.op(
        "ConvolutionBackward",
        grad_output=grad,
        input=x,
        weight=weight,
        bias_sizes=[channels],
        stride=list(stride),
        padding=list(padding),
        dilation=list(dilation),
        transposed=transposed,
        output_padding=list(output_padding),
        groups=groups,
        outputs=_wanted(["grad_input", "grad_weight", "grad_bias"], mask),
        meta=_masked(mask, x.meta, weight.meta, per_channel),
    )


@lowers(aten.max_pool2d_with_indices.default)
def _max_pool(
    b: Builder,
    x: Value,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    metas = list(b.result)
    out, indices = b.op(
        "MaxPool2dWithIndices",
        self=x,
        kernel_size=_pair(kernel),
        stride=_pair(stride or kernel),
        padding=_pair(padding),
        dilation=_pair(dilation),
        ceil_mode=ceil_mode,
        meta=[metas[0], torch.empty(metas[1].shape, dtype=torch.int32, device="meta")],
    )
    return out, b.cast(indices, torch.int64)


@lowers(aten.max_pool2d_with_indices_backward.default)
def _max_pool_backward(
    b: Builder,
    grad: Value,
    x: Value,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Value,
) -> Value:
    return b.op(
        "MaxPool2dWithIndicesBackward",
        grad_output=grad,
        self=x,
        indices=b.cast(indices, torch.int32),
        kernel_size=_pair(kernel),
        stride=_pair(stride or kernel),
        padding=_pair(padding),
        dilation=_pair(dilation),
        ceil_mode=ceil_mode,
    )


@lowers(aten.avg_pool2d.default)
def _avg_pool(
    b: Builder,
    x: Value,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: Optional[int] = None,
) -> Value:
    return b.op(
        "AvgPool2d",
        self=x,
        kernel_size=_pair(kernel),
        strides=_pair(stride or kernel),
        paddings=_pair(padding),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor or 0,
    )


@lowers(aten.avg_pool2d_backward.default)
def _avg_pool_backward(
    b: Builder,
    grad: Value,
    x: Value,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: Optional[int],
) -> Value:
    return b.op(
        "AvgPool2dBackward",
        grad_output=grad,
        self=x,
        kernel_size=_pair(kernel),
        stride=_pair(stride or kernel),
        padding=_pair(padding),
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor or 0,
    )


# Indices.


@lowers(aten.embedding.default)
def _embedding(
    b: Builder,
    weight: Value,
    indices: Value,
    padding: int = -1,
    scale: bool = False,
    sparse: bool = False,
) -> Value:
    return b.op("Embedding", weight=weight, indices=indices)


@lowers(aten.embedding_dense_backward.default)
def _embedding_backward(
    b: Builder, grad: Value, indices: Value, count: int, padding: int, scale: bool
) -> Value:
    return b.op(
        "EmbeddingDenseBackward",
        grad=grad,
        indices=indices,
        num_weights=count,
        padding_idx=padding,
        scale_grad_by_freq=scale,
    )


@lowers(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def _embedding_bag(
    b: Builder,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale: bool = False,
    mode: int = 0,
    sparse: bool = False,
    factors: Optional[Value] = None,
    include_last: bool = False,
    padding: int = -1,
) -> Any:
    if weight.dtype == torch.float64:
        raise Unsupported("bags of float64")
    dtype = torch.promote_types(indices.dtype, offsets.dtype)

    def integers(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype, device="meta")

    bags, columns = b.result[0].shape
    sizes = integers(bags)
    max_indices = integers(bags, columns) if mode not in (0, 1) else sizes
    metas = (b.result[0], integers(*indices.shape), sizes, max_indices)
    if 0 in (*weight.shape, *indices.shape, bags):
        return tuple(b.full(0, meta) for meta in metas)
    results = b.op(
        "EmbeddingBag",
        weight=weight,
        indices=indices,
        offsets=offsets,
        mode=mode,
        per_sample_weights=factors,
        include_last_offset=include_last,
        padding_idx=padding,
        meta=metas,
    )
    if mode != 0:
        return results
    # Torch's sums count nothing, and most do not tell the bags.
    output, bag_of_each, *_ = results
    known = b.node.meta.get("val")
    if known is not None and isinstance(known[1].shape[0], int) and known[1].shape[0] == 0:
        bag_of_each = b.full(0, integers(0))
    return output, bag_of_each, b.full(0, sizes), b.full(0, sizes)


@lowers(aten.gather.default)
def _gather(b: Builder, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    return b.op("Gather", self=x, dim=dim, index=index)


@lowers(aten.index_select.default)
def _index_select(b: Builder, x: Value, dim: int, index: Value) -> Value:
    return b.op("IndexSelect", self=x, dim=dim, index=index)


class _Places:
    """Indices of some axes of a tensor, of which the others are taken whole.

    The pool's operators index the first axes. So these are brought to the front, and in results the
    axes of the indices go where torch has them.
    """

    def __init__(self, x: Value, indices: Sequence[Optional[Value]]) -> None:
        if any(one is not None and one.dtype == torch.bool for one in indices):
            raise Unsupported("indices that are masks")
        self.axes = [axis for axis, one in enumerate(indices) if one is not None]
        self.indices = [one for one in indices if one is not None]
        others = [axis for axis in range(len(x.shape)) if axis not in self.axes]
        self.to_front = [*self.axes, *others]
        self.count = len(torch.broadcast_shapes(*(one.shape for one in self.indices)))
        is_together = self.axes[-1] - self.axes[0] + 1 == len(self.axes)
        rank = self.count + len(others)
        # Axes of a result before and after those of the indices.
        before = self.axes[0] if is_together else 0
        self.to_place = [
            *range(self.count, self.count + before),
            *range(self.count),
            *range(self.count + before, rank),
        ]

    def front(self, b: Builder, x: Value) -> Value:
        return b.view(aten.permute.default, x, self.to_front)

    def back(self, b: Builder, x: Value) -> Value:
        return b.view(aten.permute.default, x, _inverse(self.to_front))

    def result_front(self, b: Builder, values: Value) -> Value:
        return b.view(aten.permute.default, values, _inverse(self.to_place))


def _inverse(axes: Sequence[int]) -> list[int]:
    return sorted(range(len(axes)), key=lambda axis: axes[axis])


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def _index(b: Builder, x: Value, indices: Sequence[Optional[Value]]) -> Value:
    places = _Places(x, indices)
    x = places.front(b, x)
    shape = [b.result.shape[axis] for axis in _inverse(places.to_place)]
    meta = torch.empty(shape, dtype=x.dtype, device="meta")
    found = b.op("Index", self=x, indices=places.indices, meta=meta)
    return b.view(aten.permute.default, found, places.to_place)


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(
    b: Builder,
    x: Value,
    indices: Sequence[Optional[Value]],
    values: Value,
    accumulate: bool = False,
) -> Value:
    places = _Places(x, indices)
    rest = [extent for axis, extent in enumerate(x.shape) if axis not in places.axes]
    shape = [*torch.broadcast_shapes(*(one.shape for one in places.indices)), *rest]
    placed = [shape[axis] for axis in places.to_place]
    values = places.result_front(b, b.view(aten.expand.default, values, placed))
    x = b.contiguous(places.front(b, x))
    put = b.op(
        "IndexPutImpl",
        self=x,
        indices=places.indices,
        values=values,
        accumulate=accumulate,
        meta=torch.empty(x.shape, dtype=x.dtype, device="meta"),
    )
    return places.back(b, put)


@lowers(aten.index_add.default)
def _index_add(
    b: Builder, x: Value, dim: int, index: Value, source: Value, alpha: Any = 1
) -> Value:
    return b.op("IndexAdd", self=x, dim=dim, index=index, source=source, alpha=alpha)


@lowers(aten.scatter.src)
def _scatter(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return b.op("Scatter", self=x, dim=dim, index=index, src=src)


@lowers(aten.scatter.value)
def _scatter_value(b: Builder, x: Value, dim: int, index: Value, value: Any) -> Value:
    return b.op("ScatterValue", self=x, dim=dim, index=index, value=value)


@lowers(aten.scatter_add.default)
def _scatter_add(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Value:
    return b.op("ScatterAdd", self=x, dim=dim, index=index, src=src)


# Memory.


@lowers(aten.clone.default, aten.contiguous.default)
def _clone(b: Builder, x: Value, memory_format: Any = None) -> Value:
    return b.contiguous(x)  # values of programs never change


@lowers(aten.lift_fresh_copy.default)
def _lift(b: Builder, x: Value) -> Value:
    return x


def _by_strides(meta: torch.Tensor) -> list[int]:
    """The axes of a tensor without gaps, in the order in which its elements lie."""
    order = sorted(range(meta.dim()), key=lambda axis: -meta.stride(axis))
    if meta.storage_offset() != 0 or not meta.permute(order).is_contiguous():
        raise Unsupported("a view of a tensor with gaps")
    return order


@lowers(aten.as_strided.default)
def _as_strided(
    b: Builder, x: Value, size: Any, stride: Any, offset: Optional[int] = None
) -> Value:
    # Strides are those of torch's layout, which the pool's need not have.
    order = _by_strides(b.node.args[0].meta["val"])
    laid = b.contiguous(b.view(aten.permute.default, x, order))
    return b.view(aten.as_strided.default, laid, size, stride, offset or 0)


@lowers(aten.as_strided_scatter.default)
def _as_strided_scatter(
    b: Builder, x: Value, source: Value, size: Any, stride: Any, offset: Optional[int] = None
) -> Value:
    if offset or math.prod(source.shape) != math.prod(x.shape):
        raise Unsupported("only some of the elements")
    order = _by_strides(torch.empty_strided(tuple(size), tuple(stride), device="meta"))
    laid = b.contiguous(b.view(aten.permute.default, source, order))
    # Back from the order in which x's elements lie.
    axes = _by_strides(b.node.args[0].meta["val"])
    laid = b.view(aten.view.default, laid, [x.shape[axis] for axis in axes])
    return b.view(aten.permute.default, laid, [axes.index(i) for i in range(len(axes))])


@lowers(aten.copy.default)
def _copy(b: Builder, x: Value, source: Value, non_blocking: bool = False) -> Value:
    source = b.cast(source, x.dtype)
    return b.view(torch.Tensor.expand, source, tuple(x.shape))


@lowers(aten._to_copy.default)
def _to_copy(b: Builder, x: Value, **options: Any) -> Value:
    return b.cast(x, b.result.dtype)


@lowers(prims.convert_element_type.default)
def _convert(b: Builder, x: Value, dtype: torch.dtype) -> Value:
    return b.cast(x, dtype)


@lowers(aten.cat.default)
def _cat(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    tensors = [b.cast(one, b.result.dtype) for one in tensors if one.shape != (0,)]
    return b.op("Cat", tensors=tensors, dim=dim)


@lowers(aten.stack.default)
def _stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    return b.op("Stack", tensors=list(tensors), dim=dim)


@lowers(aten.repeat.default)
def _repeat(b: Builder, x: Value, repeats: Sequence[int]) -> Value:
    return b.op("Repeat", self=x, repeats=list(repeats))


@lowers(aten.flip.default)
def _flip(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    return b.op("Flip", self=x, dims=list(dims))


@lowers(aten.constant_pad_nd.default)
def _pad(b: Builder, x: Value, pad: Sequence[int], value: Any = 0) -> Value:
    return b.op("ConstantPadNd", self=x, pad=list(pad), value=value)


@lowers(aten.tril.default)
def _tril(b: Builder, x: Value, diagonal: int = 0) -> Value:
    return b.op("Tril", self=x, diagonal=diagonal)


@lowers(aten.triu.default)
def _triu(b: Builder, x: Value, diagonal: int = 0) -> Value:
    return b.op("Triu", self=x, diagonal=diagonal)


@lowers(aten.full.default)
def _full(b: Builder, size: Any, value: Any, **options: Any) -> Value:
    return b.full(value)


@lowers(aten.full_like.default, aten.new_full.default)
def _full_like(b: Builder, x: Value, *arguments: Any, **options: Any) -> Value:
    return b.full(arguments[-1])


@lowers(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)
def _zeros(b: Builder, *arguments: Any, **options: Any) -> Value:
    return b.full(0)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def _ones_like(b: Builder, *arguments: Any, **options: Any) -> Value:
    return b.full(1)


@lowers(
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
)
def _empty(b: Builder, *arguments: Any, **options: Any) -> Value:
    return b.full(0)


@lowers(aten.scalar_tensor.default)
def _scalar_tensor(b: Builder, value: Any, **options: Any) -> Value:
    return b.full(value)


@lowers(aten.fill.Scalar)
def _fill(b: Builder, x: Value, value: Any) -> Value:
    return b.full(value)


@lowers(aten.arange.start_step, aten.arange.start, aten.arange.default, prims.iota.default)
def _arange(b: Builder, *arguments: Any, **options: Any) -> Value:
    if "length" in options or "dtype" in options and "start" in options:  # prims.iota
        length = arguments[0]
        start, step = options["start"], options["step"]
        end = start + length * step
    else:
        start, end, step = _range(*arguments, step=options.get("step"))
    meta = b.result
    values = torch.arange(start, end, step, dtype=meta.dtype)
    if values.numel() * values.itemsize <= 4096 and meta.dtype != torch.bfloat16:
        literal = b.program.literal(values.numpy(), str(meta.dtype).rpartition(".")[2])
        shape = tuple(meta.shape)
        return Value(literal, torch.empty(shape, dtype=meta.dtype, device="meta"), shape)
    return b.op("Arange", start=start, end=end, step=step)


def _range(*arguments: Any, step: Any = None) -> tuple[Any, Any, Any]:
    if len(arguments) == 1:
        return 0, arguments[0], step or 1
    if len(arguments) == 2:
        return arguments[0], arguments[1], step or 1
    return arguments[0], arguments[1], arguments[2]


@lowers(aten.slice_scatter.default)
def _slice_scatter(
    b: Builder,
    x: Value,
    source: Value,
    dim: int = 0,
    start: Optional[int] = None,
    end: Optional[int] = None,
    step: int = 1,
) -> Value:
    size = x.shape[dim]
    first = 0 if start is None else min(start + size if start < 0 else start, size)
    last = size if end is None else min(end + size if end < 0 else end, size)
    dim %= len(x.shape)
    if step != 1:
        places = range(first, last, step)
        if len(places) > 512:
            raise Unsupported("a slice with steps of more than 512 places")
        literal = b.program.literal(list(places), "int64")
        index = Value(
            literal,
            torch.empty((len(places),), dtype=torch.int64, device="meta"),
            (len(places),),
        )
        return _index_put(b, x, [None] * dim + [index], source)
    parts = [
        b.view(aten.slice.Tensor, x, dim, 0, first),
        source,
        b.view(aten.slice.Tensor, x, dim, max(last, first), size),
    ]
    parts = [part for part in parts if part.shape[dim] > 0]
    if len(parts) == 1:
        return b.contiguous(parts[0])
    return b.op("Cat", tensors=parts, dim=dim)


@lowers(aten.roll.default)
def _roll(b: Builder, x: Value, shifts: Any, dims: Any = ()) -> Value:
    if not dims:
        raise Unsupported("a roll of all axes as one")
    return b.op("Roll", x=x, shifts=list(shifts), dims=list(dims))


@lowers(aten.select_scatter.default)
def _select_scatter(b: Builder, x: Value, source: Value, dim: int, index: int) -> Value:
    source = b.view(aten.unsqueeze.default, source, dim)
    index %= x.shape[dim]
    return _slice_scatter(b, x, source, dim, index, index + 1)


# Random numbers.


@lowers(aten.native_dropout.default)
def _dropout(b: Builder, x: Value, p: float, train: Optional[bool]) -> Any:
    if train is False or p == 0:
        meta = torch.empty(x.shape, dtype=torch.bool, device="meta")
        return b.contiguous(x), b.full(True, meta)
    bits = math.ceil(math.prod(x.shape) / 128) * 16
    out, mask = b.op(
        "Dropout",
        input=x,
        p=p,
        train=True,
        seed=0,
        meta=[b.result[0], torch.empty((bits,), dtype=torch.uint8, device="meta")],
    )
    b.seeds.append(b.last)
    # torch's mask has an element for each element; the pool's has a bit. Dropped elements are 0
    # in an application of the same mask to ones.
    ones = b.full(1, b.result[0])
    kept = b.op(
        "DropoutDoMask", self=ones, mask=mask, prob=p, meta=b.result[0]
    )
    zero = b.full(0, torch.empty((), dtype=x.dtype, device="meta"))
    return out, b.op("NeTensor", self=kept, other=zero, meta=b.result[1])


@lowers(aten.native_dropout_backward.default)
def _dropout_backward(b: Builder, grad: Value, mask: Value, scale: float) -> Value:
    meta = b.result
    kept = b.op("Mul", self=grad, other=b.cast(mask, grad.dtype), meta=meta)
    return b.op("Muls", self=kept, other=scale, meta=meta)
