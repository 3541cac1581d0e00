"""Fourier transforms of pairs (_complex.py), as matrix products.

A transform of N = A * B elements is one of A elements for each of B places, and then one of B for
each of A (Cooley and Tukey), so both are products with small matrices, which stay on the pool.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch

from opserve.torch._pairs import Pairs, Unknown

Node = torch.fx.Node
aten = torch.ops.aten

# Of elements, in one product. Above, the matrices would be large.
_MOST_IN_ONE = 512
# An axis that is split costs three copies more, about as much as so many products an element.
_COST_OF_SPLIT = 64
_MOST = 16384  # the matrices of both steps then have 32 MiB


def c2c(pairs: Pairs, x: Node, axes: Sequence[int], normalization: int, forward: bool) -> Node:
    pair: Node = pairs.of(x)
    for axis, scale in _scales(x, axes, normalization):
        pair = _along(pairs, pair, axis, lambda one: _transform(pairs, one, scale, forward))
    return pair


def r2c(pairs: Pairs, x: Node, axes: Sequence[int], normalization: int, onesided: bool) -> Node:
    rank = x.meta["val"].dim()
    (last, scale), *others = _scales(x, axes[::-1], normalization)

    def of_real(one: Node) -> Node:
        pair = _transform(pairs, pairs.call(aten.unsqueeze.default, one, -1), scale, True)
        count = one.meta["val"].shape[-1] // 2 + 1
        return pairs.call(aten.slice.Tensor, pair, -2, 0, count) if onesided else pair

    order = _order(rank, last)
    moved = of_real(pairs.call(aten.permute.default, x, order))
    pair = pairs.call(aten.permute.default, moved, [*_inverse(order), rank])
    for axis, factor in others:
        pair = _along(pairs, pair, axis, lambda one: _transform(pairs, one, factor, True))
    return pair


def c2r(pairs: Pairs, x: Node, axes: Sequence[int], normalization: int, size: int) -> Node:
    shape = list(x.meta["val"].shape)
    shape[axes[-1]] = size
    pair = pairs.of(x)
    *others, (last, scale) = _scales(x, axes, normalization, shape)
    for axis, factor in others:
        pair = _along(pairs, pair, axis, lambda one: _transform(pairs, one, factor, False))
    order = _order(len(shape), last)
    moved = pairs.call(aten.permute.default, pair, [*order, len(shape)])
    real = _to_real(pairs, moved, size, scale)
    return pairs.call(aten.permute.default, real, _inverse(order))


def _scales(
    x: Node, axes: Sequence[int], normalization: int, shape: Sequence[int] = ()
) -> list[tuple[int, float]]:
    """The axes, none negative, with the factor that each transform has."""
    meta = x.meta["val"]
    shape = shape or meta.shape
    known = [extent for extent in shape if isinstance(extent, int)]
    if meta.dtype not in (torch.float32, torch.complex64) or 0 in known:
        raise Unknown
    # Views below can have one extent that is not known, as that of the batch.
    is_known = all(isinstance(shape[axis], int) for axis in axes)
    if not is_known or len(known) < len(shape) - 1:
        raise Unknown
    power = {0: 0.0, 1: -0.5, 2: -1.0}[normalization]
    return [(axis % len(shape), float(shape[axis]) ** power) for axis in axes]


def _outer(x: Node, inner: int) -> list[int]:
    """Extents before the last ones; -1: it is not known."""
    shape = x.meta["val"].shape[:-inner]
    return [extent if isinstance(extent, int) else -1 for extent in shape]


def _order(rank: int, last: int) -> list[int]:
    """Of axes: that one comes last."""
    return [*(axis for axis in range(rank) if axis != last), last]


def _inverse(order: Sequence[int]) -> list[int]:
    return [order.index(axis) for axis in range(len(order))]


def _along(pairs: Pairs, pair: Node, axis: int, transform: Callable[[Node], Node]) -> Node:
    rank = pair.meta["val"].dim() - 1
    order = [*_order(rank, axis), rank]
    moved = transform(pairs.call(aten.permute.default, pair, order))
    return pairs.call(aten.permute.default, moved, _inverse(order))


def _transform(pairs: Pairs, x: Node, scale: float, forward: bool) -> Node:
    """Of the last but one axis; the last has the parts, one of real numbers.

    A pair of the same extents.
    """
    outer = _outer(x, 2)
    size, parts = x.meta["val"].shape[-2:]
    first = _split(size)
    if first == 1:
        rows = pairs.view(x, [-1, size * parts])
        matrix = pairs.constant(lambda: _whole(size, parts, scale, forward))
        product = pairs.call(aten.mm.default, rows, matrix)
        return pairs.call(aten.view.default, product, [*outer, size, 2])
    second = size // first
    # Element second * i + j of the input is at (i, j), first * l + k of the output at (k, l).
    split = pairs.view(x, [-1, first, second, parts])
    by_place = pairs.call(aten.permute.default, split, [2, 0, 1, 3])
    columns = pairs.view(by_place, [second, -1, first * parts])
    matrices = pairs.constant(lambda: _with_twiddles(first, second, parts, forward))
    inner = pairs.call(aten.bmm.default, columns, matrices)
    inner = pairs.call(aten.view.default, inner, [second, -1, first, 2])
    rows = pairs.view(
        pairs.call(aten.permute.default, inner, [1, 2, 0, 3]), [-1, second * 2]
    )
    matrix = pairs.constant(lambda: _whole(second, 2, scale, forward))
    product = pairs.call(aten.mm.default, rows, matrix)
    product = pairs.call(aten.view.default, product, [-1, first, second, 2])
    turned = pairs.call(aten.transpose.int, product, 1, 2)
    return pairs.view(turned, [*outer, size, 2])


def _to_real(pairs: Pairs, x: Node, size: int, scale: float) -> Node:
    """Inverse transform of half a spectrum; the other half has the conjugates."""
    outer = _outer(x, 2)
    count = x.meta["val"].shape[-2]
    if _split(size) == 1:
        rows = pairs.view(x, [-1, count * 2])
        product = pairs.call(aten.mm.default, rows, pairs.constant(lambda: _from_half(size, scale)))
        return pairs.call(aten.view.default, product, [*outer, size])
    other = pairs.call(aten.slice.Tensor, x, -2, 1, size - count + 1)
    other = pairs.call(aten.flip.default, other, [len(outer)])
    real, imaginary = (pairs.call(aten.select.int, other, -1, part) for part in (0, 1))
    conjugate = pairs.joined(real, pairs.call(aten.neg.default, imaginary))
    whole = _transform(pairs, pairs.call(aten.cat.default, [x, conjugate], -2), scale, False)
    return pairs.call(aten.select.int, whole, -1, 0)


def _split(size: int) -> int:
    """A, the smaller factor; 1: all in one product."""
    first = next(one for one in range(math.isqrt(size), 0, -1) if size % one == 0)
    if size > _MOST or size // first > _MOST_IN_ONE:
        raise Unknown
    return first if first + size // first + _COST_OF_SPLIT < size else 1


def _angles(rows: int, columns: int, size: int, forward: bool) -> torch.Tensor:
    """Of the powers of the size-th root of one, by row and column."""
    steps = torch.arange(rows).unsqueeze(1) * torch.arange(columns) % size
    angles: torch.Tensor = steps.double() * (2 * math.pi / size)
    return -angles if forward else angles


def _as_matrix(angles: torch.Tensor, parts: int, scale: float) -> torch.Tensor:
    """The factor of pairs, or real numbers, in rows: by row and column, each with its parts."""
    cos, sin = angles.cos() * scale, angles.sin() * scale
    by_real = torch.stack([cos, sin], -1)
    by_parts = [by_real, torch.stack([-sin, cos], -1)][:parts]
    matrix = torch.stack(by_parts, -3)
    return matrix.flatten(-2).flatten(-3, -2).float().contiguous()


@functools.lru_cache(maxsize=32)
def _whole(size: int, parts: int, scale: float, forward: bool) -> torch.Tensor:
    return _as_matrix(_angles(size, size, size, forward), parts, scale)


@functools.lru_cache(maxsize=16)
def _with_twiddles(first: int, second: int, parts: int, forward: bool) -> torch.Tensor:
    """The transforms of `first` elements, one for each of `second` places."""
    inner = _angles(first, first, first, forward)
    twiddles = _angles(second, first, first * second, forward).unsqueeze(1)
    return _as_matrix(inner + twiddles, parts, 1.0)


@functools.lru_cache(maxsize=32)
def _from_half(size: int, scale: float) -> torch.Tensor:
    count = size // 2 + 1
    matrix = _as_matrix(_angles(count, size, size, False), 2, scale)
    real = matrix.view(2 * count, size, 2)[..., 0].clone()
    # The conjugates of the other half double all but the first, and the middle one.
    real[2 : 2 * (size - count + 1)] *= 2
    return real
