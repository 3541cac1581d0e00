"""Pooling, and its gradients."""

from __future__ import annotations

from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import lowers

aten = torch.ops.aten


def _pair(numbers: Any) -> list[int]:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * 2 if len(numbers) == 1 else numbers


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
