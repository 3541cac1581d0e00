"""Cross entropy of logits and classes, and its gradient."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Optional

import torch
import torch.nn.functional as functional

from opserve.torch._autograd import wide
from opserve.torch._gradients import Call, Differentiable, Gradient, Plan

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class CrossEntropy(Differentiable):
    """Of logits and classes, and a weight of each class, which may be left out."""

    reduction: str
    ignore_index: int
    label_smoothing: float

    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        return ["LogSoftmax", "NllLossBackward", "LogSoftmaxBackward"]

    def value(self, *inputs: Tensor) -> Tensor:
        input, target, *weight = inputs
        return functional.cross_entropy(
            input,
            target,
            weight[0] if weight else None,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    def gradient(self, wanted: Sequence[bool]) -> Gradient:
        return _CrossEntropyGradient(self)


@dataclasses.dataclass(frozen=True)
class _CrossEntropyGradient(Gradient):
    """With respect to the logits. Inputs: the gradient that arrives, then the function's.

    With p the logarithms of the probabilities, the loss of a sample of class t is the sum of
    -share[c] * p[c] over classes c, where share[c] = weight[c] * (label_smoothing / C, and
    1 - label_smoothing more for t).
    """

    loss: CrossEntropy

    def plan(self, call: Call, *inputs: Tensor) -> Plan:
        grad_output, input, target, *weight = inputs
        rows, classes, factors = self._rows(grad_output, input, target, *weight)
        factors = factors.to(input.dtype)
        smoothing = self.loss.label_smoothing
        of_class = weight[0] if weight else input.new_ones(rows.shape[1])
        program = call.program
        log_p = program.log_softmax(rows, dim=1)
        arriving = program.nll_loss_backward(
            factors,
            log_p,
            classes,
            of_class * (1 - smoothing),
            input.new_ones(1),  # divided already
            reduction="none",
            ignore_index=self.loss.ignore_index,
        )
        if smoothing:
            spread = of_class * (-smoothing / rows.shape[1])
            shares = program.mul(factors[:, None], spread[None])
            arriving = program.add(arriving, shares)
        out = call.place(rows.shape, rows.dtype)
        last = program.log_softmax_backward(arriving, log_p, dim=1, out=out)

        def finish(results: Sequence[Tensor]) -> Sequence[Tensor]:
            return [_from_rows(results[0], input.shape)]

        return Plan([last], finish)

    def formula(self, *inputs: Tensor) -> Sequence[Tensor]:
        grad_output, input, target, *weight = inputs
        rows, classes, factors = self._rows(grad_output, input, target, *weight)
        count = rows.shape[1]
        smoothing = self.loss.label_smoothing
        is_class = torch.arange(count)[None] == classes[:, None]
        shares = is_class * (1 - smoothing) + smoothing / count
        if weight:
            shares = shares * wide(weight[0])
        p = wide(rows).softmax(1)
        found = factors[:, None] * (p * shares.sum(1, keepdim=True) - shares)
        return [_from_rows(found.to(input.dtype), input.shape)]

    def _rows(
        self, grad_output: Tensor, input: Tensor, target: Tensor, *weight: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits [N, C], classes [N], and the gradient of the loss of each of the N."""
        rows = input.movedim(_class_axis(input.shape), -1).reshape(
            -1, input.shape[_class_axis(input.shape)]
        )
        classes = target.reshape(-1).to(torch.int64)
        is_ignored = classes == self.loss.ignore_index
        gradient = wide(grad_output)
        if self.loss.reduction == "mean":
            counted = (~is_ignored).to(gradient.dtype)
            if weight:
                # An ignored class may lie outside of the weights.
                known = classes.masked_fill(is_ignored, 0)
                counted = counted * wide(weight[0])[known]
            gradient = gradient / counted.sum()
        factors = gradient.reshape(-1).expand(classes.shape).masked_fill(is_ignored, 0)
        return rows, classes, factors


def _class_axis(shape: Sequence[int]) -> int:
    return 1 if len(shape) > 1 else 0


def _from_rows(rows: Tensor, shape: Sequence[int]) -> Tensor:
    """Of rows of classes: in the shape of the logits."""
    axis = _class_axis(shape)
    others = [size for place, size in enumerate(shape) if place != axis]
    return rows.reshape(*others, shape[axis]).movedim(-1, axis)


def of_probabilities(
    log_p: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """The cross entropy of probabilities of classes, from logarithms of those of the input."""
    axis = _class_axis(log_p.shape)
    count = log_p.shape[axis]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / count
    terms = log_p * target
    if weight is not None:
        terms = terms * weight.reshape([-1] + [1] * (log_p.dim() - axis - 1))
    if reduction == "none":
        return -terms.sum(axis)
    loss = -terms.sum()
    return loss / (log_p.numel() / count) if reduction == "mean" else loss
