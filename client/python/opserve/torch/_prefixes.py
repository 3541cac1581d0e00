"""Greatest, least and summed elements of each beginning of an axis.

In as many steps as its length has bits: in each an element stands for twice as many before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
aten = torch.ops.aten

_Tensors = list[Tensor]


def _scan(
    parts: _Tensors, dim: int, combine: Callable[[_Tensors, _Tensors], _Tensors]
) -> _Tensors:
    """Combines each element with all before it. `combine` gets earlier and later ones."""
    length = parts[0].shape[dim]
    distance = 1
    while distance < length:
        rest = length - distance
        earlier = [one.narrow(dim, 0, rest) for one in parts]
        later = [one.narrow(dim, distance, rest) for one in parts]
        first = [one.narrow(dim, 0, distance) for one in parts]
        combined = combine(earlier, later)
        parts = [torch.cat(pair, dim) for pair in zip(first, combined)]
        distance *= 2
    return parts


def _extremes(
    comes_before: Callable[[Tensor, Tensor], Tensor]
) -> Callable[[Tensor, int], tuple[Tensor, Tensor]]:
    """The last of equal elements counts, and a NaN as more extreme than all numbers."""

    def combine(earlier: _Tensors, later: _Tensors) -> _Tensors:
        takes_later = ~comes_before(earlier[0], later[0])
        if earlier[0].is_floating_point():
            takes_later = (takes_later & ~earlier[0].isnan()) | later[0].isnan()
        return [torch.where(takes_later, two, one) for one, two in zip(earlier, later)]

    def extremes(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
        shape = [1] * x.dim()
        shape[dim] = x.shape[dim]
        places = torch.arange(x.shape[dim], device=x.device).reshape(shape).expand(x.shape)
        values, places = _scan([x.clone(), places.clone()], dim, combine)
        return values, places

    return extremes


def _logarithm_of_sum(earlier: _Tensors, later: _Tensors) -> _Tensors:
    x, y = earlier[0], later[0]
    sums = torch.log1p(torch.exp(-(x - y).abs()))
    # Infinities have no difference.
    sums = torch.where(x == y, math.log(2), sums)
    return [torch.maximum(x, y) + sums]


def _logcumsumexp(x: Tensor, dim: int) -> Any:
    if x.dtype == torch.float64:
        return NotImplemented
    if x.dim() == 0:
        return x.clone()
    # Halves are rounded once.
    return _scan([x.to(torch.float32, copy=True)], dim, _logarithm_of_sum)[0].to(x.dtype)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.cummax.default: _extremes(torch.gt),
    aten.cummin.default: _extremes(torch.lt),
    aten.logcumsumexp.default: _logcumsumexp,
}
