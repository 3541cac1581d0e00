"""Averages over windows of volumes: first those of their planes, then those across planes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def _triple(numbers: Any) -> list[int]:
    numbers = [numbers] if isinstance(numbers, int) else list(numbers)
    return numbers * 3 if len(numbers) == 1 else numbers


def _are_products(
    padding: Sequence[int], ceil_mode: bool, include_pad: bool, divisor: Optional[int]
) -> bool:
    """Whether each window divides by the product of its two parts' divisors."""
    return not ceil_mode and not divisor and (include_pad or not any(padding))


def _average(
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    include_pad: bool = True,
    divisor: Optional[int] = None,
) -> Any:
    kernel, stride, padding = _triple(kernel), _triple(stride or kernel), _triple(padding)
    if not _are_products(padding, ceil_mode, include_pad, divisor):
        return NotImplemented
    planes = aten.avg_pool2d.default(
        x.reshape(-1, *x.shape[-3:]), kernel[1:], stride[1:], padding[1:]
    )
    columns = planes.reshape(planes.shape[0], 1, planes.shape[1], -1)
    averages = aten.avg_pool2d.default(columns, [kernel[0], 1], [stride[0], 1], [padding[0], 0])
    return averages.reshape(*x.shape[:-3], -1, *planes.shape[-2:])


def _average_backward(
    gradient: Tensor,
    x: Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    include_pad: bool,
    divisor: Optional[int],
) -> Any:
    kernel, stride, padding = _triple(kernel), _triple(stride or kernel), _triple(padding)
    if not _are_products(padding, ceil_mode, include_pad, divisor):
        return NotImplemented
    volumes = x.reshape(-1, *x.shape[-3:])
    count, depth = volumes.shape[:2]
    height, width = gradient.shape[-2:]
    columns = aten.avg_pool2d_backward.default(
        gradient.reshape(count, 1, -1, height * width),
        x.new_zeros((count, 1, depth, height * width)),
        [kernel[0], 1],
        [stride[0], 1],
        [padding[0], 0],
        False,
        True,
        None,
    )
    planes = aten.avg_pool2d_backward.default(
        columns.reshape(count, depth, height, width),
        volumes,
        kernel[1:],
        stride[1:],
        padding[1:],
        False,
        True,
        None,
    )
    return planes.reshape(x.shape)


DECOMPOSITIONS = {
    aten.avg_pool3d.default: _average,
    aten.avg_pool3d_backward.default: _average_backward,
}
