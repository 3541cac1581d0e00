"""New tensors: of equal elements, and ranges."""

from __future__ import annotations

from typing import Any

import torch

from opserve.program import MAX_LITERAL_BYTES
from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import lowers

aten = torch.ops.aten
prims = torch.ops.prims


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
    if values.numel() * values.itemsize <= MAX_LITERAL_BYTES:
        return b.literal(values)
    # The operator's result has the dtype of its numbers.
    number, dtype = (float, torch.float32) if meta.dtype.is_floating_point else (int, torch.int64)
    made = b.op(
        "Arange",
        start=number(start),
        end=number(end),
        step=number(step),
        meta=torch.empty(meta.shape, dtype=dtype, device="meta"),
    )
    return b.cast(made, meta.dtype)


def _range(*arguments: Any, step: Any = None) -> tuple[Any, Any, Any]:
    if len(arguments) == 1:
        return 0, arguments[0], step or 1
    if len(arguments) == 2:
        return arguments[0], arguments[1], step or 1
    return arguments[0], arguments[1], arguments[2]
