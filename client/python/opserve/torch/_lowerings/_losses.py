"""Softmax and losses, with their gradients."""

from __future__ import annotations

from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import lowers
from opserve.torch._lowerings._values import ones

aten = torch.ops.aten


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


@lowers(aten.nll_loss_forward.default)
def _nll_loss(
    b: Builder, x: Value, target: Value, weight: Optional[Value], reduction: int, ignore: int
) -> Any:
    weight = weight or ones(b, x.shape[-1], x.dtype)
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
    weight = weight or ones(b, x.shape[-1], x.dtype)
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


@lowers(aten.soft_margin_loss.default)
def _soft_margin_loss(b: Builder, x: Value, target: Value, reduction: int = 1) -> Value:
    return b.op("SoftMarginLoss", self=x, target=target, reduction=reduction)


@lowers(aten.soft_margin_loss_backward.default)
def _soft_margin_loss_backward(
    b: Builder, grad: Value, x: Value, target: Value, reduction: int
) -> Value:
    return b.op(
        "SoftMarginLossBackward", grad_output=grad, self=x, target=target, reduction=reduction
    )
