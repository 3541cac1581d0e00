"""Products of matrices and vectors, and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import lowers
from opserve.torch._lowerings._values import masked, wanted

aten = torch.ops.aten


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
        outputs=wanted(["grad_input", "grad_weight", "grad_bias"], mask),
        meta=masked(mask, x.meta, weight.meta, per_channel),
    )
