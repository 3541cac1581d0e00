"""Autograd and torch.func as this package uses them, alike for all versions of torch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, TypeVar

import torch

C = TypeVar("C", bound=Callable[..., Any])

# Before 2.0 there is no torch.func, and a function's `forward` fills the context itself.
HAS_TRANSFORMS = hasattr(torch.autograd.Function, "setup_context")


class Function(torch.autograd.Function):
    """Base of functions with a `forward` without a context and a `setup_context`.

    The transforms of torch.func follow only such functions.
    """

    if not HAS_TRANSFORMS:

        def __init_subclass__(cls, **options: Any) -> None:
            super().__init_subclass__(**options)
            compute, fill = cls.forward, cls.setup_context

            def forward(ctx: Any, *inputs: Any) -> Any:
                output = compute(*inputs)
                fill(ctx, inputs, output)
                return output

            setattr(cls, "forward", staticmethod(forward))


def is_transformed() -> bool:
    """Whether a transform of torch.func (in older versions functorch) is at work."""
    return bool(torch._C._are_functorch_transforms_active())


def not_compiled(function: C) -> C:
    """Lets torch.compile leave calls of `function` out of its graphs, and all that they call."""
    if not hasattr(torch, "compiler"):
        return function
    disable = torch.compiler.disable
    if "reason" in inspect.signature(disable).parameters:  # not in torch 2.4
        disable = functools.partial(disable, reason="opserve.torch asks a pool for gradients")
    left_out: C = disable(function)
    return left_out


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In float32 at least, so that there is one rounding to a half type."""
    is_half = tensor.dtype in (torch.float16, torch.bfloat16)
    return tensor.float() if is_half else tensor


def requires_grad(tensor: torch.Tensor) -> bool:
    """Whether gradients with respect to `tensor` are wanted, by whichever transform."""
    if HAS_TRANSFORMS and is_transformed():
        functorch = torch._C._functorch
        while functorch.is_functorch_wrapped_tensor(tensor):
            if tensor.requires_grad:
                return True
            tensor = functorch.get_unwrapped(tensor)
    return tensor.requires_grad


def vjp(
    function: Callable[..., Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    wanted: Sequence[bool],
    arriving: Sequence[torch.Tensor],
) -> Iterator[Optional[torch.Tensor]]:
    """Gradients of the results of `function`, by input; None: not wanted.

    They can be differentiated where gradients are recorded.
    """
    places = [place for place, is_wanted in enumerate(wanted) if is_wanted]
    partial = _of_some(function, inputs, places)
    primals = [inputs[place] for place in places]
    if HAS_TRANSFORMS:
        found = torch.func.vjp(partial, *primals)[1](tuple(arriving))
    else:
        found = _vjp_before_transforms(partial, primals, arriving)
    each = iter(found)
    return (next(each) if is_wanted else None for is_wanted in wanted)


def _vjp_before_transforms(
    function: Callable[..., Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    arriving: Sequence[torch.Tensor],
) -> Sequence[torch.Tensor]:
    with torch.enable_grad():
        # Views of their own, since one input may be a function of another: only the direct path
        # to each counts here; autograd goes through the rest by itself.
        views = [tensor.view_as(tensor) for tensor in inputs]
        pairs = [
            (output, gradient)
            for output, gradient in zip(function(*views), arriving)
            if output.requires_grad
        ]
    zeros = [torch.zeros_like(tensor) for tensor in views]
    if not pairs:
        return zeros
    outputs, gradients = zip(*pairs)
    computed = torch.autograd.grad(
        outputs,
        views,
        gradients,
        create_graph=torch.is_grad_enabled(),
        allow_unused=True,
    )
    return [
        zero if gradient is None else gradient
        for zero, gradient in zip(zeros, computed)
    ]


def jvp(
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    tangents: Sequence[Any],
) -> Any:
    """The derivative of `function` in the direction of `tangents` (None: 0)."""
    places = [place for place, tangent in enumerate(tangents) if tangent is not None]
    partial = _of_some(function, inputs, places)
    primals = tuple(inputs[place] for place in places)
    # Zeros without memory are cloned: not every function of torch takes them.
    given = [tangents[place] for place in places]
    directions = tuple(one.clone() if one._is_zerotensor() else one for one in given)
    return torch.func.jvp(partial, primals, directions)[1]


def _of_some(
    function: Callable[..., Any],
    inputs: Sequence[torch.Tensor],
    places: Sequence[int],
) -> Callable[..., Any]:
    """`function` of the inputs at `places` alone, where the others are as they are."""

    def partial(*values: torch.Tensor) -> Any:
        arguments = list(inputs)
        for place, value in zip(places, values):
            arguments[place] = value
        result = function(*arguments)
        return result if isinstance(result, torch.Tensor) else tuple(result)

    return partial
