"""Random numbers of torch, made on the pool, and dropout.

The pool draws bits (dropout masks); numbers are made of these. Seeds come from torch's generator, so
torch.manual_seed repeats a run; the numbers are not torch's own.
"""

from __future__ import annotations

import math
from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Unsupported, Value
from opserve.torch._lowerings._registry import lowers

aten = torch.ops.aten

_BYTES = 3  # of a uniform number: float32's precision


def _meta(shape: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(tuple(shape), dtype=dtype, device="meta")


def _mask(b: Builder, shape: Any, probability: float) -> Value:
    """A bit for each element, which is 1 with this probability, and padding."""
    mask = b.op(
        "DropoutGenMask",
        shape=list(shape),
        prob=1 - probability,
        seed=0,
        meta=_meta((math.ceil(math.prod(shape) / 128) * 16,), torch.uint8),
    )
    b.seeds.append(b.last)
    return mask


@lowers(aten.bernoulli.p)
def _bernoulli(b: Builder, x: Value, p: float = 0.5, generator: Any = None) -> Value:
    if p == 0 or not math.prod(x.shape):
        return b.full(0)
    meta = _meta(x.shape)
    mask, ones = _mask(b, x.shape, p), b.full(1, meta)
    drawn = b.op("DropoutDoMask", self=ones, mask=mask, prob=1 - p, meta=meta)  # 1 / p or 0
    is_one = _meta(x.shape, torch.bool)
    return b.cast(
        b.op("NeTensor", self=drawn, other=b.full(0, _meta(())), meta=is_one), b.result.dtype
    )


def _uniform_numbers(b: Builder) -> Value:
    """In [0, 1), float32, of the result's shape."""
    shape = tuple(b.result.shape)
    count = math.prod(shape)
    if not count:
        return b.full(0, _meta(shape))
    bits = _mask(b, (8 * _BYTES * count,), 0.5)
    numbers = b.view(torch.narrow, bits, 0, 0, _BYTES * count)  # each byte is one of 0..255
    numbers = b.view(torch.reshape, b.cast(numbers, torch.float32), (_BYTES, count))
    weights = b.literal(256.0 ** -torch.arange(1.0, _BYTES + 1)[None])
    # The sums are exact: they have no more bits than float32.
    sums = b.op("Mm", self=weights, mat2=numbers, meta=_meta((1, count)))
    return b.view(torch.reshape, sums, shape)


def _scaled(b: Builder, x: Value, factor: float, offset: float) -> Value:
    meta = _meta(x.shape)
    if factor != 1:
        x = b.op("Muls", self=x, other=factor, meta=meta)
    if offset != 0:
        x = b.op("Adds", self=x, other=offset, meta=meta)
    return b.cast(x, b.result.dtype)


def _normal_numbers(b: Builder) -> Value:
    """Of mean 0 and variance 1, float32, of the result's shape (Box and Muller's way)."""
    meta = _meta(b.result.shape)
    radius = b.op("Sqrt", self=_exponential_numbers(b, 0.5), meta=meta)
    angle = b.op("Muls", self=_uniform_numbers(b), other=2 * math.pi, meta=meta)
    return b.op(
        "Mul", self=radius, other=b.op("Cos", input=angle, meta=meta), meta=meta
    )


def _exponential_numbers(b: Builder, rate: float) -> Value:
    meta = _meta(b.result.shape)
    step = 0.5 ** (8 * _BYTES)
    # In (0, 1), since programs take the logarithm of these numbers again.
    inner = b.op("Muls", self=_uniform_numbers(b), other=1 - step, meta=meta)
    inner = b.op("Adds", self=inner, other=step / 2, meta=meta)
    return b.op(
        "Muls", self=b.op("Log", self=inner, meta=meta), other=-1 / rate, meta=meta
    )


@lowers(aten.bernoulli.default)
def _bernoulli_each(b: Builder, probabilities: Value, generator: Any = None) -> Value:
    wide = b.cast(probabilities, torch.float32)
    is_one = _meta(b.result.shape, torch.bool)
    drawn = b.op("LtTensor", self=_uniform_numbers(b), other=wide, meta=is_one)
    return b.cast(drawn, b.result.dtype)


def _check_floating(b: Builder) -> None:
    if not b.result.dtype.is_floating_point:
        raise Unsupported(f"random numbers of {b.result.dtype}")


@lowers(aten.rand.default, aten.rand_like.default)
def _rand(b: Builder, *arguments: Any, **options: Any) -> Value:
    _check_floating(b)
    return _scaled(b, _uniform_numbers(b), 1, 0)


@lowers(aten.randn.default, aten.randn_like.default)
def _randn(b: Builder, *arguments: Any, **options: Any) -> Value:
    _check_floating(b)
    return _scaled(b, _normal_numbers(b), 1, 0)


@lowers(aten.uniform.default)
def _uniform(
    b: Builder, x: Value, low: float = 0, high: float = 1, generator: Any = None
) -> Value:
    return _scaled(b, _uniform_numbers(b), high - low, low)


@lowers(aten.normal_functional.default)
def _normal(
    b: Builder, x: Value, mean: float = 0, std: float = 1, generator: Any = None
) -> Value:
    return _scaled(b, _normal_numbers(b), std, mean)


@lowers(aten.exponential.default)
def _exponential(
    b: Builder, x: Value, rate: float = 1, generator: Optional[Any] = None
) -> Value:
    return _scaled(b, _exponential_numbers(b, rate), 1, 0)


@lowers(aten.randint.default)
def _randint_below(b: Builder, high: int, size: Any, **options: Any) -> Value:
    return _randint(b, 0, high, size)


@lowers(aten.randint.low)
def _randint(b: Builder, low: int, high: int, size: Any, **options: Any) -> Value:
    span = high - low
    if span > 2 ** (8 * _BYTES):
        raise Unsupported(f"random integers of a range of {span} numbers")
    numbers = _uniform_numbers(b)
    scaled = b.op("Muls", self=numbers, other=span, meta=_meta(b.result.shape))
    whole = b.cast(scaled, b.result.dtype)
    return b.op("Adds", self=whole, other=low) if low else whole


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
