"""Functions that torch's tracing takes apart before a backend sees them, though the pool has them.

While torch traces a graph with its gradients, it has functions of its own for these, made of simple
nodes; no table of decompositions decides about that. Here they are nodes of the pool's operators.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import torch
from torch._decomp.decompositions import upsample_compute_output_size

Tensor = torch.Tensor
aten = torch.ops.aten
_Key = torch._C.DispatchKey

# Of trainings: those that the pool's gradients have. In other ones functions are taken apart.
DTYPES = (torch.float32, torch.float16, torch.bfloat16)

_lock = threading.RLock()  # guards the functions that torch has for these

_library = torch.library.Library("opserve", "DEF")
_library.define("prelu_backward(Tensor grad, Tensor self, Tensor weight) -> (Tensor, Tensor)")


def _prelu_backward(gradient: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of prelu with respect to `x` and `weight`."""
    slopes = _broadcast(weight, x)
    of_x, of_slopes = aten._prelu_kernel_backward(gradient, x, slopes)
    return of_x, of_slopes.sum_to_size(slopes.shape).reshape(weight.shape)


_library.impl("prelu_backward", _prelu_backward, "CompositeExplicitAutograd")


def _broadcast(weight: Tensor, x: Tensor) -> Tensor:
    """Slopes of prelu, one or one for each channel, in a shape that broadcasts to that of `x`."""
    if weight.numel() == 1 or x.dim() < 2:
        return weight.reshape([1] * x.dim())
    return weight.reshape([1, weight.shape[0], *[1] * (x.dim() - 2)])


class _Prelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        with torch._C._AutoDispatchBelowAutograd():
            result: Tensor = aten._prelu_kernel(x, _broadcast(weight, x))
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return torch.ops.opserve.prelu_backward(gradient, *ctx.saved_tensors)


def _prelu(torchs: Callable[..., Tensor], x: Tensor, weight: Tensor) -> Tensor:
    if x.dtype not in DTYPES or weight.dtype != x.dtype:
        return torchs(x, weight)
    result: Tensor = _Prelu.apply(x, weight)
    return result


def _nearest(
    torchs: Callable[..., Tensor],
    x: Tensor,
    size: Optional[Sequence[int]],
    factors: Optional[Sequence[float]],
) -> Tensor:
    if x.dtype not in DTYPES:
        return torchs(x, size, factors)
    size = upsample_compute_output_size(x.shape, size, factors)
    result: Tensor = aten.upsample_nearest2d.default(x, size, *(factors or ()))
    return result


def _bilinear(
    torchs: Callable[..., Tensor],
    x: Tensor,
    size: Optional[Sequence[int]],
    align_corners: bool,
    factors: Optional[Sequence[float]],
) -> Tensor:
    if x.dtype not in DTYPES:
        return torchs(x, size, align_corners, factors)
    size = upsample_compute_output_size(x.shape, size, factors)
    result: Tensor = aten.upsample_bilinear2d.default(x, size, align_corners, *(factors or ()))
    return result


def _made_of_others(op: Any) -> Callable[..., Tensor]:
    """The function as torch has it outside of tracing, too."""
    return functools.partial(op._op_dk, _Key.CompositeImplicitAutograd)


# What is traced in place of functions; `torchs` is what torch traces.
_RULES: dict[Any, Callable[..., Tensor]] = {
    aten.prelu.default: _prelu,
    aten.upsample_nearest2d.vec: _nearest,
    aten.upsample_bilinear2d.vec: _bilinear,
}

# That are to be nodes. Of the last two, tables of decompositions decide.
_NODES = (
    aten.upsample_nearest2d.default,
    aten.upsample_bilinear2d.default,
    aten.hardshrink.default,
    aten.softshrink.default,
)


@contextlib.contextmanager
def kept_whole() -> Iterator[None]:
    """While graphs are traced: these functions are nodes of the pool's operators, or made of such."""
    with _lock:
        saved = {op: dict(op.py_kernels) for op in (*_RULES, *_NODES)}
        try:
            for op in _NODES:
                for key in (_Key.Autograd, _Key.CompositeImplicitAutograd):
                    op.py_kernels.pop(key, None)
                op._dispatch_cache.clear()
            for op, rule in _RULES.items():
                here = functools.partial(rule, saved[op].get(_Key.Autograd) or _made_of_others(op))
                op.py_kernels.update({_Key.Autograd: here, _Key.CompositeImplicitAutograd: here})
                op._dispatch_cache.clear()
            yield
        finally:
            for op, kernels in saved.items():
                op.py_kernels.clear()
                op.py_kernels.update(kernels)
                op._dispatch_cache.clear()
