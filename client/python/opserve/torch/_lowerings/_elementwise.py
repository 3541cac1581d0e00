"""Arithmetic, comparisons and functions, element by element."""

from __future__ import annotations

from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import Lowering, lowers
from opserve.torch._lowerings._values import tensor

aten = torch.ops.aten


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
    lowers(_target)(_unary(_name))


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


@lowers(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor)
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


lowers(aten.maximum.default)(_binary("Maximum"))
lowers(aten.minimum.default)(_binary("Minimum"))
lowers(aten.atan2.default)(_binary("Atan2"))
lowers(aten.pow.Tensor_Tensor)(_binary("PowTensorTensor", "exponent"))


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
        lowers(_overload)(_comparison(_short.capitalize()))


def _logical(name: str) -> Lowering:
    def lowering(b: Builder, x: Value, y: Any) -> Value:
        return b.op(
            name, self=b.cast(x, torch.bool), other=tensor(b, y, torch.bool)
        )

    return lowering


lowers(aten.logical_and.default)(_logical("LogicalAnd"))
lowers(aten.logical_or.default)(_logical("LogicalOr"))
lowers(aten.logical_xor.default)(_logical("LogicalXor"))


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
        lowers(_overload)(_bitwise(_short.capitalize()))


@lowers(aten.isnan.default)
def _isnan(b: Builder, x: Value) -> Value:
    return b.op("NeTensor", self=x, other=x)  # only NaN differs from itself


@lowers(aten.isinf.default)
def _isinf(b: Builder, x: Value) -> Value:
    return b.op("IsInf", x=x)


@lowers(aten.isposinf.default)
def _isposinf(b: Builder, x: Value) -> Value:
    return b.op("IsPosInf", self=x)


@lowers(aten.isneginf.default)
def _isneginf(b: Builder, x: Value) -> Value:
    return b.op("IsNegInf", self=x)


@lowers(aten.frac.default)
def _frac(b: Builder, x: Value) -> Value:
    return b.op("Frac", self=x)


@lowers(aten.nan_to_num.default)
def _nan_to_num(
    b: Builder,
    x: Value,
    nan: Optional[float] = None,
    above: Optional[float] = None,
    below: Optional[float] = None,
) -> Value:
    limits = torch.finfo(x.dtype)
    return b.op(
        "NanToNum",
        self=x,
        nan=nan or 0.0,
        posinf=limits.max if above is None else above,
        neginf=limits.min if below is None else below,
    )


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
