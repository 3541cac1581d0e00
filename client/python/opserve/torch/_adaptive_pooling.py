"""Pooling to a size: as windows where they are all equal.

Else averages are products of matrices, and maxima those of elements that are gathered.

Cell i of n over m elements has the elements from floor(i m / n) to ceil((i + 1) m / n), as torch
documents.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from opserve.torch._volume_pooling import scattered

Tensor = torch.Tensor
aten = torch.ops.aten


def _window(x: Tensor, sizes: Sequence[int]) -> Optional[list[int]]:
    """The window that all cells have, and the distance of two; None: they differ."""
    lengths = list(x.shape[-len(sizes) :])
    if any(length % size for length, size in zip(lengths, sizes)):
        return None
    return [length // size for length, size in zip(lengths, sizes)]


def _cells(length: int, count: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Where each begins and ends, as columns."""
    cells = torch.arange(count, device=like.device).unsqueeze(1)
    return cells * length // count, ((cells + 1) * length + count - 1) // count


def _averages(length: int, count: int, like: Tensor) -> Tensor:
    """A matrix: a row for each cell, of the weights that its elements have in its average."""
    begins, ends = _cells(length, count, like)
    elements = torch.arange(length, device=like.device)
    is_inside = (elements >= begins) & (elements < ends)
    # Halves are summed as float32, and rounded once.
    dtype = torch.promote_types(like.dtype, torch.float32)
    return is_inside.to(dtype) / (ends - begins).to(dtype)


def _multiplied(x: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """The last axes of `x`, each by its matrix."""
    result = x.to(matrices[0].dtype)
    for axis, matrix in enumerate(matrices, -len(matrices)):
        result = (result.movedim(axis, -1) @ matrix.t()).movedim(-1, axis)
    return result.to(x.dtype)


def _matrices(x: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    return [_averages(length, size, x) for length, size in zip(x.shape[-len(sizes) :], sizes)]


def _average(x: Tensor, sizes: Sequence[int]) -> Tensor:
    window = _window(x, sizes)
    if window is None:
        return _multiplied(x, _matrices(x, sizes))
    pool = aten.avg_pool2d.default if len(sizes) == 2 else aten.avg_pool3d.default
    return pool(x, window, window)


def _average_backward(gradient: Tensor, x: Tensor, axes: int) -> Tensor:
    sizes = gradient.shape[-axes:]
    window = _window(x, sizes)
    if window is None:
        return _multiplied(gradient, [one.t() for one in _matrices(x, sizes)])
    pool = aten.avg_pool2d_backward if axes == 2 else aten.avg_pool3d_backward
    return pool.default(gradient, x, window, window, [0] * axes, False, True, None)


def _greatest(x: Tensor, sizes: Sequence[int]) -> Any:
    window = _window(x, sizes)
    if window is None:
        return _greatest_of_members(x, sizes)
    two, three = aten.max_pool2d_with_indices, aten.max_pool3d_with_indices
    return (two if len(sizes) == 2 else three).default(x, window, window)


def _members(length: int, count: int, like: Tensor) -> Tensor:
    """A row for each cell, of its elements; shorter ones have their last element again."""
    begins, ends = _cells(length, count, like)
    longest = max(-(-(i + 1) * length // count) - i * length // count for i in range(count))
    return torch.minimum(begins + torch.arange(longest, device=like.device), ends - 1)


def _greatest_of_members(x: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    axes = len(sizes)
    lead, lengths = x.dim() - axes, x.shape[-axes:]
    values = x
    places = torch.zeros((), dtype=torch.int64, device=x.device)
    for i, (length, size) in enumerate(zip(lengths, sizes)):
        members = _members(length, size, x)
        # Cells and members of each axis, one after the other.
        axis = lead + 2 * i
        values = values.index_select(axis, members.reshape(-1)).unflatten(axis, members.shape)
        stride = math.prod(lengths[i + 1 :])
        places = places.unsqueeze(-1).unsqueeze(-1) + members * stride
    members_last = [*range(0, 2 * axes, 2), *range(1, 2 * axes, 2)]
    places = places.permute(members_last).flatten(axes)
    values = values.permute([*range(lead), *(lead + axis for axis in members_last)])
    greatest, at = values.flatten(lead + axes).max(-1)
    places = places.expand(*greatest.shape, -1).gather(-1, at.unsqueeze(-1)).squeeze(-1)
    return greatest, places


def _greatest_backward(gradient: Tensor, x: Tensor, places: Tensor, axes: int) -> Tensor:
    window = _window(x, gradient.shape[-axes:])
    if window is None or axes == 3:
        return scattered(gradient, x, places, axes)
    pool = aten.max_pool2d_with_indices_backward
    return pool.default(gradient, x, window, window, [0, 0], [1, 1], False, places)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten._adaptive_avg_pool2d.default: _average,
    aten._adaptive_avg_pool2d_backward.default: functools.partial(_average_backward, axes=2),
    aten._adaptive_avg_pool3d.default: _average,
    aten._adaptive_avg_pool3d_backward.default: functools.partial(_average_backward, axes=3),
    aten.adaptive_max_pool2d.default: _greatest,
    aten.adaptive_max_pool2d_backward.default: functools.partial(_greatest_backward, axes=2),
    aten.adaptive_max_pool3d.default: _greatest,
    aten.adaptive_max_pool3d_backward.default: functools.partial(_greatest_backward, axes=3),
}
