"""Distances of each row to each other row, with exponents from 1 on."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def _differences(x: Tensor, y: Tensor) -> Tensor:
    return x.unsqueeze(-2) - y.unsqueeze(-3)


def _distances(x: Tensor, y: Tensor, p: float, mode: Optional[int]) -> Any:
    if p == 1:
        return _differences(x, y).abs().sum(-1)
    if p == 2:
        return _differences(x, y).square().sum(-1).sqrt()
    if p == math.inf:
        return _differences(x, y).abs().amax(-1)
    if p < 1:
        return NotImplemented
    return _differences(x, y).abs().pow(p).sum(-1).pow(1 / p)


def _distances_backward(gradient: Tensor, x: Tensor, y: Tensor, p: float, distances: Tensor) -> Any:
    """Of x. Equal rows have no direction; torch takes zero for it."""
    differences = _differences(x, y)
    if p == 1:
        return (gradient.unsqueeze(-1) * differences.sign()).sum(-2)
    if p == 2:
        factors = torch.where(distances == 0, 0.0, gradient / distances)
        return (factors.unsqueeze(-1) * differences).sum(-2)
    if p < 1:
        return NotImplemented
    sizes, distances = differences.abs(), distances.unsqueeze(-1)
    if p == math.inf:
        shares = (sizes == distances).to(x.dtype)
    else:
        shares = torch.where(distances == 0, 0.0, (sizes / distances).pow(p - 1))
    return (gradient.unsqueeze(-1) * differences.sign() * shares).sum(-2)


DECOMPOSITIONS = {
    aten._cdist_forward.default: _distances,
    aten._cdist_backward.default: _distances_backward,
}
