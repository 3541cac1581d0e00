"""Averages and maxima over windows of volumes: first those of planes, then those across planes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def _triple(numbers: Any) -> list[int]:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * 3 if len(numbers) == 1 else numbers


def _windows(
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    include_pad: bool = True,
    divisor: Optional[int] = None,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Of avg_pool2d, by those of avg_pool3d: of planes, and across planes, which are columns there.

    A window divides by the product of its counts along the axes, so two in a row do, too.
    """
    kernel, stride, padding = _triple(kernel), _triple(stride or kernel), _triple(padding)
    return (
        (kernel[1:], stride[1:], padding[1:], ceil_mode, include_pad, divisor),
        (
            [kernel[0], 1],
            [stride[0], 1],
            [padding[0], 0],
            ceil_mode,
            include_pad,
            divisor and 1,  # the planes' windows have divided by it
        ),
    )


def _average(x: Tensor, *windows: Any) -> Tensor:
    in_planes, across = _windows(*windows)
    planes = aten.avg_pool2d.default(x.reshape(-1, *x.shape[-3:]), *in_planes)
    columns = planes.reshape(planes.shape[0], 1, planes.shape[1], -1)
    averages = aten.avg_pool2d.default(columns, *across)
    return averages.reshape(*x.shape[:-3], -1, *planes.shape[-2:])


def _average_backward(gradient: Tensor, x: Tensor, *windows: Any) -> Tensor:
    in_planes, across = _windows(*windows)
    volumes = x.reshape(-1, *x.shape[-3:])
    count, depth = volumes.shape[:2]
    height, width = gradient.shape[-2:]
    columns = aten.avg_pool2d_backward.default(
        gradient.reshape(count, 1, -1, height * width),
        x.new_zeros((count, 1, depth, height * width)),
        *across,
    )
    planes = aten.avg_pool2d_backward.default(
        columns.reshape(count, depth, height, width), volumes, *in_planes
    )
    return planes.reshape(x.shape)


def _greatest(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """With the place of each greatest element in its volume, counted from the beginning."""
    kernel, stride = _triple(kernel), _triple(stride or kernel)
    padding, dilation = _triple(padding), _triple(dilation)
    volumes = x.reshape(-1, *x.shape[-3:])
    planes, in_planes = aten.max_pool2d_with_indices.default(
        volumes, kernel[1:], stride[1:], padding[1:], dilation[1:], ceil_mode
    )
    size = planes.shape[-2] * planes.shape[-1]
    greatest, at = aten.max_pool2d_with_indices.default(
        planes.reshape(-1, 1, planes.shape[1], size),
        [kernel[0], 1],
        [stride[0], 1],
        [padding[0], 0],
        [dilation[0], 1],
        ceil_mode,
    )
    shape = (*x.shape[:-3], -1, *planes.shape[-2:])
    at = at.reshape(at.shape[0], -1)
    of_planes = in_planes.reshape(in_planes.shape[0], -1).gather(1, at)
    places = at // size * (x.shape[-2] * x.shape[-1]) + of_planes
    return greatest.reshape(shape), places.reshape(shape)


def scattered(gradient: Tensor, x: Tensor, places: Tensor, axes: int) -> Tensor:
    """The gradient of maxima over windows of the last axes of `x`, whose places were told."""
    shape = (math.prod(x.shape[:-axes]), -1)
    zeros = gradient.new_zeros((shape[0], math.prod(x.shape[-axes:])))
    return zeros.scatter_add(1, places.reshape(shape), gradient.reshape(shape)).reshape(x.shape)


def _greatest_backward(
    gradient: Tensor,
    x: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    places: Tensor,
) -> Tensor:
    return scattered(gradient, x, places, 3)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.avg_pool3d.default: _average,
    aten.avg_pool3d_backward.default: _average_backward,
    aten.max_pool3d_with_indices.default: _greatest,
    aten.max_pool3d_with_indices_backward.default: _greatest_backward,
}
