"""Losses of an input and a target of floating point, and their gradients."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, Optional

import torch
import torch.nn.functional as functional

from opserve.program import OutputOf
from opserve.torch._autograd import wide
from opserve.torch._gradients import Call, Differentiable, Gradient, Plan

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class KlDiv(Differentiable):
    """Of input and target."""

    reduction: Any  # a str, which the methods of operators annotate more narrowly
    log_target: bool

    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        both = zip(("KlDivBackward", "KlDivTargetBackward"), wanted)
        return [name for name, is_wanted in both if is_wanted]

    def value(self, *inputs: Tensor) -> Tensor:
        input, target = inputs
        return functional.kl_div(
            input, target, reduction=self.reduction, log_target=self.log_target
        )

    def gradient(self, wanted: Sequence[bool]) -> Gradient:
        return _KlDivGradient(tuple(wanted), self.reduction, self.log_target)


@dataclasses.dataclass(frozen=True)
class _KlDivGradient(Gradient):
    """Inputs: the gradient that arrives, input and target."""

    wanted: tuple[bool, ...]
    reduction: Any  # a str, which the methods of operators annotate more narrowly
    log_target: bool

    def plan(self, call: Call, *inputs: Tensor) -> Plan:
        factor, input, target = inputs
        wants_input, wants_target = self.wanted
        reduction = self.reduction
        if reduction == "batchmean":
            # torch divides by input's first extent, the operator by that of the broadcast.
            batch = torch.broadcast_shapes(input.shape, target.shape)[0]
            if input.shape[0] != batch:
                reduction = "sum"
                factor = factor / input.shape[0]
        attributes: dict[str, Any] = {
            "reduction": reduction,
            "log_target": self.log_target,
        }
        results = []
        if wants_input:
            # Its values do not matter: one element stands for all, unless they are sent anyway.
            is_sent = call.sends_input or target.numel() < input.numel()
            stand_in = input if is_sent else input.new_zeros(()).expand(input.shape)
            out = call.place(input.shape, input.dtype)
            results.append(
                call.program.kl_div_backward(
                    factor, stand_in, target, **attributes, out=out
                )
            )
        if wants_target:
            out = call.place(target.shape, target.dtype)
            results.append(
                call.program.kl_div_target_backward(
                    factor, input, target, **attributes, out=out
                )
            )
        return Plan(results, of_input=results[0] if wants_input else None)

    def formula(self, *inputs: Tensor) -> Sequence[Tensor]:
        grad_output, input, target = inputs
        shape = torch.broadcast_shapes(input.shape, target.shape)
        part = _part_of_each(grad_output, shape, input, self.reduction)
        x, t = wide(input), wide(target)
        gradients = []
        if self.wanted[0]:
            slope = -t.exp() if self.log_target else -t
            gradients.append((part * slope).sum_to_size(input.shape).to(input.dtype))
        if self.wanted[1]:
            if self.log_target:
                slope = t.exp() * (t - x + 1)
            else:
                # The logarithm of 0 is not even computed: its derivative would be 0 * inf, a NaN.
                is_zero = t == 0
                slope = t.masked_fill(is_zero, 1).log() - x + 1
                slope = slope.masked_fill(is_zero, 0)
            gradients.append((part * slope).sum_to_size(target.shape).to(target.dtype))
        return gradients


@dataclasses.dataclass(frozen=True)
class Distance(Differentiable):
    """A loss of the difference of input and target, which have one shape and dtype.

    The gradient with respect to target is that of input, negated.
    """

    reduction: Any  # a str, which the methods of operators annotate more narrowly

    def gradient(self, wanted: Sequence[bool]) -> Gradient:
        return _DistanceGradient(self, tuple(wanted))

    @abc.abstractmethod
    def invoke(self, call: Call, out: Optional[Tensor], *inputs: Tensor) -> OutputOf:
        """The gradient with respect to input, of the arriving gradient, input and target."""

    @abc.abstractmethod
    def slope(self, difference: Tensor) -> Tensor:
        """The derivative of one element's loss."""


@dataclasses.dataclass(frozen=True)
class L1Loss(Distance):
    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        return ["L1LossBackward"]

    def value(self, *inputs: Tensor) -> Tensor:
        input, target = inputs
        return functional.l1_loss(input, target, reduction=self.reduction)

    def invoke(self, call: Call, out: Optional[Tensor], *inputs: Tensor) -> OutputOf:
        found: OutputOf = call.program.l1_loss_backward(
            *inputs, reduction=self.reduction, out=out
        )
        return found

    def slope(self, difference: Tensor) -> Tensor:
        return _sign(difference)


@dataclasses.dataclass(frozen=True)
class MseLoss(Distance):
    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        return ["MseLossBackward"]

    def value(self, *inputs: Tensor) -> Tensor:
        input, target = inputs
        return functional.mse_loss(input, target, reduction=self.reduction)

    def invoke(self, call: Call, out: Optional[Tensor], *inputs: Tensor) -> OutputOf:
        found: OutputOf = call.program.mse_loss_backward(
            *inputs, reduction=self.reduction, out=out
        )
        return found

    def slope(self, difference: Tensor) -> Tensor:
        return 2 * difference


@dataclasses.dataclass(frozen=True)
class SmoothL1Loss(Distance):
    beta: float

    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        return ["SmoothL1LossBackward"]

    def value(self, *inputs: Tensor) -> Tensor:
        input, target = inputs
        return functional.smooth_l1_loss(
            input, target, reduction=self.reduction, beta=self.beta
        )

    def invoke(self, call: Call, out: Optional[Tensor], *inputs: Tensor) -> OutputOf:
        found: OutputOf = call.program.smooth_l1_loss_backward(
            *inputs, reduction=self.reduction, beta=self.beta, out=out
        )
        return found

    def slope(self, difference: Tensor) -> Tensor:
        if self.beta == 0:
            return _sign(difference)
        is_near = difference.abs() < self.beta
        return torch.where(is_near, difference / self.beta, _sign(difference))


@dataclasses.dataclass(frozen=True)
class _DistanceGradient(Gradient):
    """Inputs: the gradient that arrives, input and target."""

    loss: Distance
    wanted: tuple[bool, ...]

    def plan(self, call: Call, *inputs: Tensor) -> Plan:
        input = inputs[1]
        out = call.place(input.shape, input.dtype)
        whole = self.loss.invoke(call, out, *inputs)
        return Plan(
            [whole],
            lambda results: self._wanted(results[0]),
            of_input=whole if self.wanted[0] else None,
        )

    def formula(self, *inputs: Tensor) -> Sequence[Tensor]:
        grad_output, input, target = inputs
        part = _part_of_each(grad_output, input.shape, input, self.loss.reduction)
        slope = self.loss.slope(wide(input) - wide(target))
        return self._wanted((part * slope).to(input.dtype))

    def _wanted(self, whole: Tensor) -> Sequence[Tensor]:
        wants_input, wants_target = self.wanted
        found = [whole] if wants_input else []
        if wants_target:
            found.append(-whole)
        return found


def _sign(difference: Tensor) -> Tensor:
    """Unlike torch.sign, 0 for NaN."""
    return (difference > 0).to(difference.dtype) - (difference < 0).to(difference.dtype)


def _part_of_each(
    grad_output: Tensor, shape: Sequence[int], input: Tensor, reduction: str
) -> Tensor:
    """The gradient that each element of a loss of this shape has before its reduction."""
    shape = torch.Size(shape)
    gradient: Tensor = wide(grad_output)
    if reduction == "mean":
        gradient = gradient / shape.numel()
    elif reduction == "batchmean":
        gradient = gradient / input.shape[0]
    return gradient.expand(shape)
