"""Places in sequences and triangles, medians and k-th elements, from comparisons and a sort."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten

# Comparisons of a node, as of each element with each one of a sequence. More take longer than a
# search here does with the elements' way to and fro.
MOST_COMPARISONS = 1 << 24


def _places(sequence: Tensor, x: Tensor, right: bool, out_int32: bool) -> Any:
    """How many elements of each sequence come before each element; all of them before a NaN."""
    sequence, x = sequence.unsqueeze(-2), x.unsqueeze(-1)
    if math.prod(torch.broadcast_shapes(sequence.shape, x.shape)) > MOST_COMPARISONS:
        return NotImplemented
    comes_behind = sequence > x if right else sequence >= x
    return (~comes_behind).sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Any:
    return _places(boundaries, x, right, out_int32)


def _searchsorted(
    sequence: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Optional[str] = None,
    sorter: Optional[Tensor] = None,
) -> Any:
    if sorter is not None:
        return NotImplemented
    return _places(sequence, x, right or side == "right", out_int32)


def _kth(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """NaN are the greatest elements."""
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64, device=x.device)
    ordered, places = x.sort(dim)
    kth, place = ordered.narrow(dim, k - 1, 1), places.narrow(dim, k - 1, 1)
    return (kth, place) if keepdim else (kth.squeeze(dim), place.squeeze(dim))


def _median(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower one of two; NaN if any element is."""
    if x.dim() == 0:
        return _kth(x, 1)
    ordered, places = x.sort(dim)
    last = x.shape[dim] - 1
    median, place = ordered.narrow(dim, last // 2, 1), places.narrow(dim, last // 2, 1)
    if x.is_floating_point():
        greatest = ordered.narrow(dim, last, 1)
        is_nan = greatest.isnan()
        median = torch.where(is_nan, greatest, median)
        place = torch.where(is_nan, places.narrow(dim, last, 1), place)
    return (median, place) if keepdim else (median.squeeze(dim), place.squeeze(dim))


def _median_of_all(x: Tensor) -> Any:
    return NotImplemented if x.numel() == 0 else _median(x.reshape(-1), 0)[0]


def _triangle(
    rows: int,
    columns: int,
    offset: int = 0,
    *,
    is_lower: bool,
    dtype: Optional[torch.dtype] = None,
    device: Any = None,
    **_: Any,
) -> Tensor:
    """The places of a matrix that are in the triangle, row by row."""
    places = torch.arange(rows * columns, device=device)
    diagonals = places % max(columns, 1) - places // max(columns, 1)
    is_inside = diagonals <= offset if is_lower else diagonals >= offset
    # The others come behind these.
    ordered = torch.where(is_inside, places, places + rows * columns).sort()[0]
    below = [min(max(row + offset + is_lower, 0), columns) for row in range(rows)]
    count = sum(below) if is_lower else rows * columns - sum(below)
    inside = ordered[:count]
    indices = torch.stack([inside // max(columns, 1), inside % max(columns, 1)])
    return indices.to(torch.int64 if dtype is None else dtype)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.bucketize.Tensor: _bucketize,
    aten.searchsorted.Tensor: _searchsorted,
    aten.kthvalue.default: _kth,
    aten.median.dim: _median,
    aten.median.default: _median_of_all,
    aten.tril_indices.default: functools.partial(_triangle, is_lower=True),
    aten.triu_indices.default: functools.partial(_triangle, is_lower=False),
}
