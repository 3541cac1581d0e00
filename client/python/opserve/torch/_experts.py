"""Mixtures of experts: products of groups of rows with a matrix for each group, and histograms.

The pool's products have fixed shapes, and where groups end is known only when the program runs. So
all rows are multiplied with all matrices, and each row keeps the product of its own group: that takes
as many times the work as there are groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch

Tensor = torch.Tensor
aten = torch.ops.aten


def _groups_of(rows: int, ends: Tensor) -> Tensor:
    """For each group and row, with an axis behind them, whether the row is in the group.

    Args:
        ends: of the groups, ascending: the row behind the last one of each.
    """
    row = torch.arange(rows, device=ends.device)
    ended = row >= ends.unsqueeze(1)
    begun = torch.cat([torch.ones_like(ended[:1]), ended[:-1]])
    return (begun & ~ended).unsqueeze(-1)


def _products(x: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """[S, K] and [groups, K, N]: [S, N]; rows behind the last group are 0."""
    of_all = torch.matmul(x, matrices)
    # Not by factors of 0, which make NaN of another group's infinities.
    return torch.where(_groups_of(x.shape[0], ends), of_all, 0).sum(0, dtype=x.dtype)


def _products_backward(
    x: Tensor, matrices: Tensor, ends: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor]:
    groups = _groups_of(x.shape[0], ends)
    of_matrices = torch.matmul(
        torch.where(groups, x, 0).transpose(1, 2), torch.where(groups, gradient, 0)
    )
    return _products(gradient, matrices.transpose(1, 2), ends), of_matrices


def _grouped_mm(
    x: Tensor,
    matrices: Tensor,
    offs: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    out_dtype: Optional[torch.dtype] = None,
) -> Any:
    if x.dim() == 3 and matrices.dim() == 3 and offs is None:
        product = torch.bmm(x, matrices)
    elif x.dim() == 2 and matrices.dim() == 3 and offs is not None:
        product = _products(x, matrices, offs)
    elif x.dim() == 2 and matrices.dim() == 2 and offs is not None:
        # The groups are of the axis that is summed.
        groups = _groups_of(x.shape[1], offs)
        columns, rows = torch.where(groups, x.t(), 0), torch.where(groups, matrices, 0)
        product = torch.matmul(columns.transpose(1, 2), rows)
    else:
        return NotImplemented
    product = product if bias is None else product + bias
    return product if out_dtype is None else product.to(out_dtype)


def _histc(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
    if not min < max:  # the extremes of x are meant
        return NotImplemented
    x = x.reshape(-1)
    place = ((x - min) * bins / (max - min)).floor()
    # The last bin has its upper edge, and what is rounded to it.
    place = torch.where((place == bins) & (x <= max), bins - 1, place)
    bin_ = torch.arange(bins, dtype=place.dtype, device=x.device).unsqueeze(1)
    return (place == bin_).sum(1).to(x.dtype)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Those of functions that are there: of torch's by version, and of transformers' if it is used."""
    table: dict[Any, Callable[..., Any]] = {aten.histc.default: _histc}
    for library, name, function in (
        ("aten", "_grouped_mm", _grouped_mm),
        ("transformers", "grouped_mm_fallback", _products),
        ("transformers", "grouped_mm_fallback_backward", _products_backward),
    ):
        packet = getattr(getattr(torch.ops, library), name, None)
        if packet is not None:
            table[packet.default] = function
    return table
