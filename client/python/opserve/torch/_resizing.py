"""Images resized by filters that are as wide as the scale asks for (antialias), as products with a
matrix for each axis: each row has the filter's weights for one result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from opserve.torch._whole_functions import DTYPES

Tensor = torch.Tensor
aten = torch.ops.aten


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance).clamp_min(0)


def _cubic(distance: Tensor) -> Tensor:
    """Keys' kernel with a = -1/2."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))


def _scale(extent: int, result: int, align_corners: bool, factor: Optional[float]) -> float:
    """Elements of the image for each of the result's."""
    if align_corners:
        return (extent - 1) / (result - 1) if result > 1 else 0.0
    return 1 / factor if factor else extent / result


def _weights(like: Tensor, extent: int, result: int, scale: float, kernel: Any) -> Tensor:
    """[result, extent]"""
    places = torch.arange(extent, dtype=torch.float32, device=like.device) + 0.5
    centers = (torch.arange(result, dtype=torch.float32, device=like.device) + 0.5) * scale
    weights = kernel((places - centers.unsqueeze(1)).abs() / max(scale, 1.0))
    return (weights / weights.sum(1, keepdim=True)).to(like.dtype)


def _matrices(
    like: Tensor,
    shape: Sequence[int],
    results: Sequence[int],
    align_corners: bool,
    factors: Sequence[Optional[float]],
    kernel: Callable[[Tensor], Tensor],
) -> list[Tensor]:
    extents = zip(shape[-2:], results, factors)
    return [
        _weights(like, extent, result, _scale(extent, result, align_corners, factor), kernel)
        for extent, result, factor in extents
    ]


def _resized(
    kernel: Callable[[Tensor], Tensor],
    x: Tensor,
    size: Sequence[int],
    align_corners: bool,
    factor_y: Optional[float] = None,
    factor_x: Optional[float] = None,
) -> Any:
    if x.dtype not in DTYPES:
        return NotImplemented
    factors = (factor_y, factor_x)
    of_y, of_x = _matrices(x, x.shape, size, align_corners, factors, kernel)
    return torch.matmul(of_y, torch.matmul(x, of_x.t()))


def _resized_backward(
    kernel: Callable[[Tensor], Tensor],
    gradient: Tensor,
    size: Sequence[int],
    shape: Sequence[int],
    align_corners: bool,
    factor_y: Optional[float] = None,
    factor_x: Optional[float] = None,
) -> Any:
    if gradient.dtype not in DTYPES:
        return NotImplemented
    factors = (factor_y, factor_x)
    of_y, of_x = _matrices(gradient, shape, size, align_corners, factors, kernel)
    return torch.matmul(of_y.t(), torch.matmul(gradient, of_x))


DECOMPOSITIONS = {
    aten._upsample_bilinear2d_aa.default: functools.partial(_resized, _triangle),
    aten._upsample_bilinear2d_aa_backward.default: functools.partial(_resized_backward, _triangle),
    aten._upsample_bicubic2d_aa.default: functools.partial(_resized, _cubic),
    aten._upsample_bicubic2d_aa_backward.default: functools.partial(_resized_backward, _cubic),
}
