"""Normalisation and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

from opserve.torch._builder import Builder, Value
from opserve.torch._lowerings._registry import lowers
from opserve.torch._lowerings._values import masked, ones, wanted

aten = torch.ops.aten


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
        outputs=wanted(["grad_input_out", "grad_weight_out", "grad_bias_out"], mask),
        meta=masked(
            mask,
            x.meta,
            None if weight is None else weight.meta,
            None if bias is None else bias.meta,
        ),
    )


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
        outputs=wanted(["grad_input", "grad_gamma_out", "grad_beta_out"], mask),
        meta=masked(mask, x.meta, per_channel, per_channel),
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
    weight = weight or ones(b, channels, x.dtype)
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


@lowers(aten._native_batch_norm_legit.no_stats)
def _batch_norm_without_statistics(
    b: Builder,
    x: Value,
    weight: Optional[Value],
    bias: Optional[Value],
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Instance norm is made of it, too."""
    return _batch_norm(b, x, weight, bias, None, None, True, momentum, eps)[:3]


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
        outputs=wanted(["grad_input", "grad_weight", "grad_bias"], mask),
        meta=masked(mask, x.meta, per_channel, per_channel),
    )
