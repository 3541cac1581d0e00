"""Elements of images and volumes at places between them (grid_sample), from a gather.

A place is a coordinate for each axis, the last axis first, from -1 to 1. Linear sampling weighs the
elements at the corners around it, a row of which is gathered at once.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor
aten = torch.ops.aten

_LINEAR, _NEAREST = 0, 1
_ZEROS, _BORDER = 0, 1  # beyond the edges, beside 2, the elements in reverse


def _reflected(places: Tensor, size: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    """Inside, and the derivative of that."""
    low = 0.0 if align_corners else -0.5
    span = size - 1.0 if align_corners else float(size)
    if span == 0:
        return torch.zeros_like(places), torch.zeros_like(places)
    distances = (places - low).abs()
    flips = torch.floor(distances / span)
    rest = distances - flips * span
    is_even = torch.remainder(flips, 2) == 0
    inside = torch.where(is_even, rest, span - rest) + low
    sign = torch.where(places < low, -1.0, 1.0)
    return inside, torch.where(is_even, sign, -sign)


def _places(
    coordinates: Tensor, size: int, padding: int, align_corners: bool
) -> tuple[Tensor, Tensor]:
    """Of coordinates along an axis, in elements, and the derivatives."""
    factor = (size - 1) / 2 if align_corners else size / 2
    places = coordinates * factor + (size - 1) / 2
    slopes = torch.full_like(places, factor)
    if padding == _ZEROS:
        # Where no corner is inside all give zero. Integers hold these.
        return places.clamp(-2, size + 1), slopes
    if padding != _BORDER:
        places, of_reflection = _reflected(places, size, align_corners)
        slopes = slopes * of_reflection
    is_inside = (places > 0) & (places < size - 1)
    return places.clamp(0, size - 1), torch.where(is_inside, slopes, 0.0)


@dataclasses.dataclass(frozen=True)
class _Corners:
    """Of all places of a grid, n in a row, along axes of x from the first on.

    Attributes:
        indices: of the corners in a flat image, [batch, corners, n].
        are_inside: which are in the image.
        weights: [batch, corners, n].
        by_axis: derivatives of the weights by the coordinate of each axis.
    """

    indices: Tensor
    are_inside: Tensor
    weights: Tensor
    by_axis: list[Tensor]


def _corners(
    sizes: list[int], grid: Tensor, mode: int, padding: int, align_corners: bool
) -> _Corners:
    batch = grid.shape[0]
    coordinates = grid.to(torch.float32).reshape(batch, -1, len(sizes)).unbind(-1)[::-1]
    ends: list[list[Tensor]] = []  # along each axis, two or the nearest one
    shares: list[list[Tensor]] = []
    slopes: list[Tensor] = []
    for along, size in zip(coordinates, sizes):
        places, slope = _places(along, size, padding, align_corners)
        slopes.append(slope)
        if mode == _NEAREST:
            ends.append([torch.round(places)])
            shares.append([torch.ones_like(places)])
            continue
        first = torch.floor(places)
        ends.append([first, first + 1])
        shares.append([first + 1 - places, places - first])
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    indices, inside, weights = [], [], []
    by_axis: list[list[Tensor]] = [[] for _ in sizes]
    for corner in itertools.product(range(len(ends[0])), repeat=len(sizes)):
        at = [ends[axis][end] for axis, end in enumerate(corner)]
        is_inside = torch.ones_like(at[0], dtype=torch.bool)
        index = torch.zeros_like(at[0], dtype=torch.int64)
        for place, size, stride in zip(at, sizes, strides):
            is_inside = is_inside & (place >= 0) & (place <= size - 1)
            index = index + place.clamp(0, size - 1).to(torch.int64) * stride
        factors = [shares[axis][end] for axis, end in enumerate(corner)]
        indices.append(index)
        inside.append(is_inside)
        weights.append(functools.reduce(torch.mul, factors))
        for axis, end in enumerate(corner):
            others = functools.reduce(torch.mul, [*factors[:axis], *factors[axis + 1 :]])
            by_axis[axis].append((others if end else -others) * slopes[axis])
    return _Corners(
        torch.stack(indices, 1),
        torch.stack(inside, 1),
        torch.stack(weights, 1),
        [torch.stack(of_axis, 1) for of_axis in by_axis],
    )


def _at_corners(x: Tensor, corners: _Corners) -> Tensor:
    """[batch, channels, corners, n], zeros outside."""
    flat = x.reshape(*x.shape[:2], -1)
    indices = corners.indices.reshape(x.shape[0], 1, -1).expand(-1, x.shape[1], -1)
    values = flat.gather(2, indices).to(torch.float32)
    values = values.reshape(*x.shape[:2], *corners.indices.shape[1:])
    return torch.where(corners.are_inside.unsqueeze(1), values, 0.0)


def _sample(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Any:
    if mode not in (_LINEAR, _NEAREST) or x.dtype == torch.float64:
        return NotImplemented
    corners = _corners(list(x.shape[2:]), grid, mode, padding, align_corners)
    samples = (_at_corners(x, corners) * corners.weights.unsqueeze(1)).sum(2)
    return samples.reshape(*x.shape[:2], *grid.shape[1:-1]).to(x.dtype)


def _sample_backward(
    gradient: Tensor,
    x: Tensor,
    grid: Tensor,
    mode: int,
    padding: int,
    align_corners: bool,
    output_mask: list[bool],
) -> Any:
    if mode not in (_LINEAR, _NEAREST) or x.dtype == torch.float64:
        return NotImplemented
    corners = _corners(list(x.shape[2:]), grid, mode, padding, align_corners)
    # Of the samples at each corner, [batch, channels, 1, n].
    samples = gradient.to(torch.float32).reshape(*x.shape[:2], 1, -1)
    of_x = of_grid = None
    if output_mask[0]:
        weights = torch.where(corners.are_inside, corners.weights, 0.0)
        parts = (samples * weights.unsqueeze(1)).reshape(*x.shape[:2], -1)
        indices = corners.indices.reshape(x.shape[0], 1, -1).expand(parts.shape)
        zeros = parts.new_zeros((*x.shape[:2], math.prod(x.shape[2:])))
        of_x = zeros.scatter_add(2, indices, parts).reshape(x.shape).to(x.dtype)
    if output_mask[1] and mode == _NEAREST:
        of_grid = torch.zeros_like(grid)
    elif output_mask[1]:
        of_weights = (samples * _at_corners(x, corners)).sum(1)
        along = [(of_weights * slopes).sum(1) for slopes in corners.by_axis]
        of_grid = torch.stack(along[::-1], -1).reshape(grid.shape).to(grid.dtype)
    return of_x, of_grid


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.grid_sampler_2d.default: _sample,
    aten.grid_sampler_2d_backward.default: _sample_backward,
    aten.grid_sampler_3d.default: _sample,
    aten.grid_sampler_3d_backward.default: _sample_backward,
}
