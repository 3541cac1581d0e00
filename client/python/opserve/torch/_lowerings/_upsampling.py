"""Images of another size, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch

from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import lowers

aten = torch.ops.aten

Factor = Optional[float]


@lowers(aten.upsample_nearest2d.default)
def _nearest(
    b: Builder, x: Value, size: Sequence[int], height: Factor = None, width: Factor = None
) -> Value:
    return b.op(
        "UpsampleNearest2dV2",
        self=x,
        output_size=list(size),
        scales_h=height or 0.0,
        scales_w=width or 0.0,
    )


@lowers(aten.upsample_nearest2d_backward.default)
def _nearest_backward(
    b: Builder,
    grad: Value,
    size: Sequence[int],
    shape: Sequence[int],
    height: Factor = None,
    width: Factor = None,
) -> Value:
    return b.op(
        "UpsampleNearest2dBackward",
        grad_out=grad,
        output_size=list(size),
        input_size=list(shape),
        scales_h=height or 0.0,
        scales_w=width or 0.0,
    )


@lowers(aten.upsample_bilinear2d.default)
def _bilinear(
    b: Builder,
    x: Value,
    size: Sequence[int],
    align_corners: bool,
    height: Factor = None,
    width: Factor = None,
) -> Value:
    return b.op(
        "UpsampleBilinear2d",
        self=x,
        output_size=list(size),
        align_corners=align_corners,
        scales_h=height or 0.0,
        scales_w=width or 0.0,
    )


@lowers(aten.upsample_bilinear2d_backward.default)
def _bilinear_backward(
    b: Builder,
    grad: Value,
    size: Sequence[int],
    shape: Sequence[int],
    align_corners: bool,
    height: Factor = None,
    width: Factor = None,
) -> Value:
    return b.op(
        "UpsampleBilinear2dBackward",
        grad_out=grad,
        output_size=list(size),
        input_size=list(shape),
        align_corners=align_corners,
        scales_h=height or 0.0,
        scales_w=width or 0.0,
    )
