"""softmax and log_softmax, and their gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Union

import torch

from opserve.program import OutputOf
from opserve.torch._autograd import wide
from opserve.torch._gradients import Call, Differentiable, Gradient, Place, Plan

Tensor = torch.Tensor


@dataclasses.dataclass(frozen=True)
class Softmax(Differentiable):
    """Of one input."""

    dim: int
    is_log: bool
    makes_softmax = True

    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        return ["LogSoftmaxBackward" if self.is_log else "SoftmaxBackward"]

    def value(self, *inputs: Tensor) -> Tensor:
        [input] = inputs
        compute = torch.log_softmax if self.is_log else torch.softmax
        return compute(input, self.dim)

    def value_near(self, place: Place, *inputs: Tensor) -> Tensor:
        [input] = inputs
        out = place(input.shape, input.dtype)
        if out is None:
            return self.value(input)
        compute = torch.log_softmax if self.is_log else torch.softmax
        return compute(input, self.dim, out=out)

    def saved(self, inputs: Sequence[Tensor], output: Tensor) -> Sequence[Tensor]:
        return [output]

    def gradient(self, wanted: Sequence[bool]) -> Gradient:
        return SoftmaxGradient(self.dim, self.is_log)


@dataclasses.dataclass(frozen=True)
class SoftmaxGradient(Gradient):
    """Inputs: the gradient that arrives, and the softmax."""

    dim: int
    is_log: bool

    def plan(self, call: Call, *inputs: Tensor) -> Plan:
        grad_output, output = inputs
        last = self.invoke(call, grad_output, output)
        return Plan([last], of_input=last)

    def invoke(
        self, call: Call, grad_output: Union[Tensor, OutputOf], output: Tensor
    ) -> OutputOf:
        program = call.program
        invoke = (
            program.log_softmax_backward if self.is_log else program.softmax_backward
        )
        out = call.place(output.shape, output.dtype)
        invoked: OutputOf = invoke(grad_output, output, dim=self.dim, out=out)
        return invoked

    def formula(self, *inputs: Tensor) -> Sequence[Tensor]:
        grad_output, output = inputs
        gradient, y = wide(grad_output), wide(output)
        if self.is_log:
            found = gradient - y.exp() * _sum(gradient, self.dim)
        else:
            found = y * (gradient - _sum(gradient * y, self.dim))
        return [found.to(output.dtype)]


def _sum(tensor: Tensor, dim: int) -> Tensor:
    return tensor.sum(dim, keepdim=True) if tensor.dim() else tensor
