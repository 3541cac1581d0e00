"""Functions whose gradients a pool computes, for autograd and the transforms of torch.func.

A `Differentiable` says how torch computes the function and which `Gradient` it has; a `Gradient`
says how the pool computes it, and by which formula torch does: where the pool cannot compute it,
and for the derivatives of the pool's results. So gradients of gradients are right whatever has
asked for them.

Under vmap a gradient is one program with the operators of each sample.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Optional

import torch

from opserve.program import OutputOf, Program
from opserve.torch import _autograd

if TYPE_CHECKING:
    from opserve.torch._functions import Functions

Tensor = torch.Tensor
# Gives a tensor in which a result of this shape and dtype is wanted, or None: anywhere.
Place = Callable[["Sequence[int]", torch.dtype], Optional[Tensor]]


def anywhere(shape: Sequence[int], dtype: torch.dtype) -> None:
    """The Place of results that the client makes itself."""
    return None


# Samples of a batch in one program. A program has at most 10,000 invocations.
_MOST_SAMPLES = 1024


@dataclasses.dataclass(frozen=True)
class Call:
    """The call that a plan is made for.

    Attributes:
        sends_input: whether the function's first input is sent whether or not it is used.
    """

    program: Program
    place: Place = anywhere
    sends_input: bool = False


@dataclasses.dataclass(frozen=True)
class Plan:
    """Invocations that compute gradients.

    Attributes:
        results: to ask the pool for.
        finish: makes the gradients of them.
        of_input: the first gradient, if an output is just that.
    """

    results: Sequence[OutputOf]
    finish: Callable[[Sequence[Tensor]], Sequence[Tensor]] = lambda results: results
    of_input: Optional[OutputOf] = None


class Gradient(abc.ABC):
    """Gradients of a function, as a function of the arriving gradient and saved tensors."""

    @abc.abstractmethod
    def plan(self, call: Call, *inputs: Tensor) -> Plan:
        """Adds to the program. `inputs`: the gradient that arrives, then the saved tensors."""

    @abc.abstractmethod
    def formula(self, *inputs: Tensor) -> Sequence[Tensor]:
        """The same by differentiable functions of torch."""


class Differentiable(abc.ABC):
    """A function of tensors with gradients that the pool computes."""

    makes_softmax = False  # whether its gradient may be computed with that of a loss

    @abc.abstractmethod
    def operators(self, wanted: Sequence[bool]) -> Sequence[str]:
        """That compute its gradients, with respect to the inputs that are wanted."""

    @abc.abstractmethod
    def value(self, *inputs: Tensor) -> Tensor:
        """The function, by torch."""

    def value_near(self, place: Place, *inputs: Tensor) -> Tensor:
        """As `value`; a result that the gradient needs may go to a `place`."""
        return self.value(*inputs)

    def saved(self, inputs: Sequence[Tensor], output: Tensor) -> Sequence[Tensor]:
        """The tensors that its gradient needs beside the gradient that arrives."""
        return inputs

    @abc.abstractmethod
    def gradient(self, wanted: Sequence[bool]) -> Gradient:
        """Its gradients with respect to the inputs that are wanted, in their order."""


@dataclasses.dataclass(frozen=True)
class Ready:
    """The gradient of a softmax that was computed together with that of its loss.

    It is right if the gradient that arrives at the softmax is the very one that left the loss,
    neither added to another nor changed by a hook.
    """

    arriving: Tensor
    version: int
    gradient: Tensor

    @classmethod
    def of(cls, arriving: Tensor, gradient: Tensor) -> Ready:
        # Without its history, which may lead to the node that keeps this.
        return cls(arriving.detach(), arriving._version, gradient)

    def is_for(self, arriving: Tensor) -> bool:
        return (
            arriving.data_ptr() == self.arriving.data_ptr()
            and arriving.shape == self.arriving.shape
            and arriving.stride() == self.arriving.stride()
            and arriving._version == self.version
        )


class PoolFunction(_autograd.Function):
    """A Differentiable: apply(function, functions, *inputs)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        function: Differentiable, functions: Functions, *inputs: Tensor
    ) -> Tensor:
        return function.value_near(functions._place_near(inputs), *inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.function, ctx.functions, *tensors = inputs
        ctx.save_for_backward(*ctx.function.saved(tensors, output))
        ctx.save_for_forward(*tensors)
        ctx.ready = None

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Optional[Tensor], ...]:
        ready, ctx.ready = ctx.ready, None
        wanted = ctx.needs_input_grad[2:]
        gradient = ctx.function.gradient(wanted)
        inputs = (grad_output, *ctx.saved_tensors)
        if not ctx.functions._can_send(grad_output):
            found = gradient.formula(*inputs)
        else:
            further = Further(_softmax_before(ctx), ready)
            found = PoolGradient.apply(gradient, ctx.functions, further, *inputs)
        each = iter(found)
        return (
            None,
            None,
            *(next(each) if is_wanted else None for is_wanted in wanted),
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        return _autograd.jvp(ctx.function.value, ctx.saved_tensors, tangents[2:])


def _softmax_before(ctx: Any) -> Optional[Any]:
    """The autograd node of the softmax that made the input of a loss `ctx`, or None."""
    if ctx.function.makes_softmax or _autograd.is_transformed():
        return None
    node = ctx.saved_tensors[0].grad_fn
    is_ours = isinstance(node, PoolFunction._backward_cls)
    if is_ours and node.functions is ctx.functions and node.function.makes_softmax:
        return node
    return None


@dataclasses.dataclass(frozen=True)
class Further:
    """Facts for a gradient beyond its inputs.

    Attributes:
        softmax: the node whose gradient is asked for next, so that it is computed ahead.
        ready: the gradient that was computed ahead for this one.
    """

    softmax: Optional[Any] = None
    ready: Optional[Ready] = None


class PoolGradient(_autograd.Function):
    """A Gradient by way of the pool: apply(gradient, functions, further, *inputs)."""

    @staticmethod
    def forward(
        gradient: Gradient, functions: Functions, further: Further, *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        if further.ready is not None and further.ready.is_for(inputs[0]):
            return (further.ready.gradient,)
        return tuple(functions._compute(gradient, further.softmax, inputs))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.gradient, _, _, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *arriving: Tensor) -> tuple[Optional[Tensor], ...]:
        formula, wanted = ctx.gradient.formula, ctx.needs_input_grad[3:]
        found = _autograd.vjp(formula, ctx.saved_tensors, wanted, arriving)
        return (None, None, None, *found)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        formula = ctx.gradient.formula
        return _autograd.jvp(formula, ctx.saved_tensors, tangents[3:])

    @staticmethod
    def vmap(
        info: Any,
        in_dims: Sequence[Optional[int]],
        gradient: Gradient,
        functions: Functions,
        further: Further,
        *inputs: Tensor,
    ) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        samples = gradient.samples if isinstance(gradient, _Batch) else 1
        most = max(1, _MOST_SAMPLES // samples)
        chunks = []
        for start in range(0, info.batch_size, most):
            size = min(most, info.batch_size - start)
            batch = _Batch(gradient, tuple(in_dims[3:]), size, size * samples)
            parts = (
                tensor if dim is None else tensor.narrow(dim, start, size)
                for tensor, dim in zip(inputs, batch.dims)
            )
            chunks.append(PoolGradient.apply(batch, functions, Further(), *parts))
        found = tuple(torch.cat(parts) for parts in zip(*chunks))
        return found, (0,) * len(found)


@dataclasses.dataclass(frozen=True)
class _Batch(Gradient):
    """A gradient of each sample of a batch.

    Attributes:
        dims: along which axis of each input the samples are; None: they have it in common.
        size: of the batch.
        samples: of the innermost gradient, if batches are of batches.
    """

    each: Gradient
    dims: tuple[Optional[int], ...]
    size: int
    samples: int

    def plan(self, call: Call, *inputs: Tensor) -> Plan:
        call = Call(call.program)  # samples are put together here
        plans = []
        for number in range(self.size):
            sample = (
                tensor if dim is None else tensor.select(dim, number)
                for tensor, dim in zip(inputs, self.dims)
            )
            plans.append(self.each.plan(call, *sample))

        def finish(results: Sequence[Tensor]) -> Sequence[Tensor]:
            each = iter(results)
            found = [plan.finish([next(each) for _ in plan.results]) for plan in plans]
            return [torch.stack(samples) for samples in zip(*found)]

        return Plan([result for plan in plans for result in plan.results], finish)

    def formula(self, *inputs: Tensor) -> Sequence[Tensor]:
        def of_sample(*sample: Tensor) -> tuple[Tensor, ...]:
            return tuple(self.each.formula(*sample))

        found: Sequence[Tensor] = torch.func.vmap(of_sample, self.dims)(*inputs)
        return found
