"""Distances of each row to each other row, with the exponents 1 and 2."""

from __future__ import annotations

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
    return NotImplemented


def _distances_backward(gradient: Tensor, x: Tensor, y: Tensor, p: float, distances: Tensor) -> Any:
    """Of x. Equal rows have no direction; torch takes zero for it."""
    differences = _differences(x, y)
    if p == 1:
        return (gradient.unsqueeze(-1) * differences.sign()).sum(-2)
    if p == 2:
        factors = torch.where(distances == 0, 0.0, gradient / distances)
        return (factors.unsqueeze(-1) * differences).sum(-2)
    return NotImplemented


DECOMPOSITIONS = {
    aten._cdist_forward.default: _distances,
    aten._cdist_backward.default: _distances_backward,
}
