"""Elements that go to given places: scatter_reduce, masked_scatter, put.

Sums are added where they belong. Products and extremes of elements with equal indices are found by
comparing each index with each place, so there must not be too many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from opserve.torch._order import MOST_COMPARISONS

Tensor = torch.Tensor
aten = torch.ops.aten

_SUMS = ("sum", "mean")


def _least(dtype: torch.dtype) -> Any:
    return -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _greatest(dtype: torch.dtype) -> Any:
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


# By name: the element that changes nothing, how an axis becomes one element, and how two do.
_Rule = tuple[
    Callable[[torch.dtype], Any],
    Callable[[Tensor, int], Tensor],
    Callable[[Tensor, Tensor], Tensor],
]
_RULES: dict[str, _Rule] = {
    "prod": (lambda dtype: 1, torch.prod, torch.mul),
    "amax": (_least, torch.amax, torch.maximum),
    "amin": (_greatest, torch.amin, torch.minimum),
}


def _scatter_reduce(
    x: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    if x.dim() == 0 or x.dtype == torch.float64:
        return NotImplemented
    if reduce == "mean" and not x.is_floating_point():
        return NotImplemented
    dim %= x.dim()
    places = [*x.shape]
    places[dim] = index.shape[dim]
    if list(index.shape) != places:
        return NotImplemented  # some rows stay as they are
    if list(source.shape) != places:
        for axis, length in enumerate(places):
            source = source.narrow(axis, 0, length)
    counts = torch.zeros_like(x, dtype=torch.int64).scatter_add(
        dim, index, torch.ones_like(source, dtype=torch.int64)
    )
    if reduce in _SUMS:
        result = x if include_self else torch.where(counts > 0, torch.zeros_like(x), x)
        result = result.scatter_add(dim, index, source)
        if reduce == "sum":
            return result
        divisors = (counts + int(include_self)).clamp(min=1).to(torch.float32)
        return (result / divisors).to(x.dtype)
    if source.numel() * x.shape[dim] > MOST_COMPARISONS:
        return NotImplemented
    nothing, of_axis, of_two = _RULES[reduce]
    there = torch.arange(x.shape[dim], device=x.device)
    there = there.reshape(-1, *[1] * (x.dim() - dim - 1))
    belongs = index.unsqueeze(dim + 1) == there
    result = of_axis(torch.where(belongs, source.unsqueeze(dim + 1), nothing(x.dtype)), dim)
    if include_self:
        return of_two(x, result)
    return torch.where(counts > 0, result, x)


def _ranks(mask: Tensor) -> Tensor:
    """In a row: of each place how many are chosen before it, as far as it is chosen itself."""
    return (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(min=0)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    mask = mask.expand(torch.broadcast_shapes(x.shape, mask.shape))
    # (Beyond the source the pool reads zeros; torch has an error for it.)
    chosen = source.reshape(-1).index_select(0, _ranks(mask)).reshape(mask.shape)
    return torch.where(mask, chosen, x)


def _masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: list[int]) -> Any:
    """Of the source."""
    if gradient.dtype == torch.float64:
        return NotImplemented
    mask = mask.expand(gradient.shape)
    parts = torch.where(mask, gradient, 0).reshape(-1)
    zeros = gradient.new_zeros((math.prod(sizes),))
    return zeros.index_add(0, _ranks(mask), parts).reshape(sizes)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    places = index.reshape(-1)
    places = torch.where(places < 0, places + x.numel(), places)
    flat = aten.index_put(x.reshape(-1), [places], source.reshape(-1), accumulate)
    return flat.reshape(x.shape)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.scatter_reduce.two: _scatter_reduce,
    aten.masked_scatter.default: _masked_scatter,
    aten.masked_scatter_backward.default: _masked_scatter_backward,
    aten.put.default: _put,
}
