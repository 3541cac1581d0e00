"""Copies, and tensors put together or laid out anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Unsupported, Value
from opserve.torch._lowerings._registry import lowers

aten = torch.ops.aten
prims = torch.ops.prims


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


@lowers(aten.roll.default)
def _roll(b: Builder, x: Value, shifts: Any, dims: Any = ()) -> Value:
    if not dims:
        raise Unsupported("a roll of all axes as one")
    return b.op("Roll", x=x, shifts=list(shifts), dims=list(dims))
