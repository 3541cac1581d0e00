"""Pooling to a size: as windows where they are all equal, averages also as products of matrices.

Cell i of n over m elements averages the elements from floor(i m / n) to ceil((i + 1) m / n), as torch
documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def _window(x: Tensor, sizes: Sequence[int]) -> Optional[list[int]]:
    """The window that all cells have, and the distance of two; None: they differ."""
    lengths = list(x.shape[-2:])
    if any(length % size for length, size in zip(lengths, sizes)):
        return None
    return [length // size for length, size in zip(lengths, sizes)]


def _averages(length: int, count: int, like: Tensor) -> Tensor:
    """A matrix: a row for each cell, of the weights that its elements have in its average."""
    cells = torch.arange(count, device=like.device).unsqueeze(1)
    elements = torch.arange(length, device=like.device)
    begins = cells * length // count
    ends = ((cells + 1) * length + count - 1) // count
    is_inside = (elements >= begins) & (elements < ends)
    # Halves are summed as float32, and rounded once.
    dtype = torch.promote_types(like.dtype, torch.float32)
    return is_inside.to(dtype) / (ends - begins).to(dtype)


def _average(x: Tensor, sizes: Sequence[int]) -> Tensor:
    window = _window(x, sizes)
    if window is not None:
        return aten.avg_pool2d.default(x, window, window)
    rows, columns = (_averages(length, size, x) for length, size in zip(x.shape[-2:], sizes))
    return (rows @ x.to(rows.dtype) @ columns.t()).to(x.dtype)


def _average_backward(gradient: Tensor, x: Tensor) -> Tensor:
    sizes = gradient.shape[-2:]
    window = _window(x, sizes)
    if window is not None:
        return aten.avg_pool2d_backward.default(
            gradient, x, window, window, [0, 0], False, True, None
        )
    rows, columns = (_averages(length, size, x) for length, size in zip(x.shape[-2:], sizes))
    return (rows.t() @ gradient.to(rows.dtype) @ columns).to(x.dtype)


def _greatest(x: Tensor, sizes: Sequence[int]) -> Any:
    window = _window(x, sizes)
    if window is None:
        return NotImplemented
    return aten.max_pool2d_with_indices.default(x, window, window)


def _greatest_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> Any:
    window = _window(x, gradient.shape[-2:])
    if window is None:
        return NotImplemented
    return aten.max_pool2d_with_indices_backward.default(
        gradient, x, window, window, [0, 0], [1, 1], False, indices
    )


DECOMPOSITIONS = {
    aten._adaptive_avg_pool2d.default: _average,
    aten._adaptive_avg_pool2d_backward.default: _average_backward,
    aten.adaptive_max_pool2d.default: _greatest,
    aten.adaptive_max_pool2d_backward.default: _greatest_backward,
}
