"""Activations and their gradients."""

from __future__ import annotations

from typing import Any, Optional

import torch

from opserve.torch import _whole_functions  # noqa: F401  # defines torch.ops.opserve
from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import Lowering, lowers
from opserve.torch._lowerings._values import tensor

aten = torch.ops.aten


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


lowers(aten.silu_backward.default)(_backward("SiluBackward"))
lowers(aten.sigmoid_backward.default)(_backward("SigmoidBackward", "output"))
lowers(aten.tanh_backward.default)(_backward("TanhBackward", "output"))
lowers(aten.hardswish_backward.default)(_backward("HardswishBackward"))
lowers(aten.hardsigmoid_backward.default)(_backward("HardsigmoidBackward"))
lowers(aten.mish_backward.default)(_backward("MishBackward"))


@lowers(aten.threshold_backward.default)
def _threshold_backward(b: Builder, grad: Value, x: Value, threshold: Any) -> Value:
    return b.op("ThresholdBackward", grad_output=grad, self=x, threshold=threshold)


@lowers(aten.threshold.default)
def _threshold(b: Builder, x: Value, threshold: Any, value: Any) -> Value:
    return b.op("Threshold", self=x, threshold=threshold, value=value)


@lowers(aten.celu.default)
def _celu(b: Builder, x: Value, alpha: Any = 1) -> Value:
    return b.op("Celu", self=x, alpha=alpha)


@lowers(aten.hardshrink.default)
def _hardshrink(b: Builder, x: Value, width: Any = 0.5) -> Value:
    return b.op("Hardshrink", self=x, lambd=width)


@lowers(aten.softshrink.default)
def _softshrink(b: Builder, x: Value, width: Any = 0.5) -> Value:
    return b.op("Softshrink", self=x, lambd=width)


def _shrink_backward(name: str) -> Lowering:
    def lowering(b: Builder, grad: Value, x: Value, width: Any) -> Value:
        return b.op(name, grad_output=grad, self=x, lambd=width)

    return lowering


lowers(aten.hardshrink_backward.default)(_shrink_backward("HardshrinkBackward"))
lowers(aten.softshrink_backward.default)(_shrink_backward("SoftshrinkBackward"))


@lowers(aten.logit.default)
def _logit(b: Builder, x: Value, eps: Optional[float] = None) -> Value:
    return b.op("Logit", input=x, eps=-1.0 if eps is None else eps)


@lowers(aten.logit_backward.default)
def _logit_backward(b: Builder, grad: Value, x: Value, eps: Optional[float] = None) -> Value:
    return b.op("LogitGrad", x=x, dy=grad, eps=-1.0 if eps is None else eps)


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


@lowers(torch.ops.opserve.prelu_backward.default)
def _prelu_backward(b: Builder, grad: Value, x: Value, weight: Value) -> tuple[Value, Value]:
    return b.op("PreluBackward", grad_output=grad, self=x, weight=weight)


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
