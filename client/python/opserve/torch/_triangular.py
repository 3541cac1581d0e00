"""Solutions of triangular systems, as products with the inverse."""

from __future__ import annotations

from typing import Any

import torch

from opserve.torch._whole_functions import DTYPES

Tensor = torch.Tensor
aten = torch.ops.aten


def _inverse(a: Tensor, has_ones: bool) -> Tensor:
    """Of lower triangles; the elements above the diagonal are not used.

    The inverse of ((A, 0), (C, B)) is ((A', 0), (-B' C A', B')), where A' and B' are those of A and
    B. So it is made of blocks that double: as many rounds as the extent has bits.
    """
    extent = a.shape[-1]
    padding = (1 << (extent - 1).bit_length()) - extent
    diagonal = a.diagonal(dim1=-2, dim2=-1)
    diagonal = torch.ones_like(diagonal) if has_ones else diagonal.reciprocal()
    diagonal = torch.constant_pad_nd(diagonal, [0, padding], 1.0)
    inverses = diagonal.unsqueeze(-1).unsqueeze(-1)
    a = torch.constant_pad_nd(a, [0, padding, 0, padding])
    size = 1
    while size < extent + padding:
        tiles = a.unflatten(-1, (-1, 2 * size)).unflatten(-3, (-1, 2 * size))
        below = tiles.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)[..., size:, :size]
        first, second = inverses[..., 0::2, :, :], inverses[..., 1::2, :, :]
        corners = torch.matmul(torch.matmul(second, below), first).neg()
        upper = torch.cat([first, torch.zeros_like(first)], -1)
        inverses = torch.cat([upper, torch.cat([corners, second], -1)], -2)
        size *= 2
    return inverses[..., 0, :extent, :extent]


def _solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    if a.dtype not in DTYPES or a.shape[-1] == 0:
        return NotImplemented
    lower = a.transpose(-2, -1) if upper else a
    inverse = _inverse(lower, unitriangular)
    inverse = inverse.transpose(-2, -1) if upper else inverse
    return torch.matmul(inverse, b) if left else torch.matmul(b, inverse)


DECOMPOSITIONS = {aten.linalg_solve_triangular.default: _solve_triangular}
