"""Functions that are made of several operators of the pool, in strict mode, beside eager torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import backend, fresh  # noqa: F401
from torch.nn import functional as F

Tensor = torch.Tensor
NAN, INF = math.nan, math.inf

INDEX = torch.tensor([[0, 2, 1, 2], [2, 2, 0, 0], [1, 1, 1, 0]])
ROWS = torch.tensor([True, False, False, True])
UNUSUAL = torch.tensor([[1.0, NAN, 3.0, 2.0], [-INF, -INF, INF, INF], [2.0, 2.0, NAN, NAN]])


def normal(*shape: int) -> Callable[[], list[Tensor]]:
    return lambda: [torch.randn(shape)]


def half(*shape: int) -> Callable[[], list[Tensor]]:
    return lambda: [torch.randn(shape, dtype=torch.bfloat16)]


def whole(*shape: int) -> Callable[[], list[Tensor]]:
    return lambda: [torch.randint(-9, 9, shape)]


def images(*sizes: int, wide: float = 1.2) -> Callable[[], list[Tensor]]:
    """Images or volumes of these sizes, and places of which some are outside."""
    shape = [3] * len(sizes)

    def make() -> list[Tensor]:
        places = (torch.rand(2, *shape, len(sizes)) * 2 - 1) * wide
        return [torch.randn(2, 3, *sizes), places]

    return make


def sampled(mode: str, padding: str = "zeros", align: bool = False) -> Callable[..., Tensor]:
    return lambda x, grid: F.grid_sample(x, grid, mode, padding, align)


def reduced(reduce: str, dim: int = 0, include_self: bool = True) -> Callable[..., Tensor]:
    return lambda x, source: x.scatter_reduce(
        dim, INDEX, source, reduce, include_self=include_self
    )


def scattered(dtype: torch.dtype = torch.float32) -> Callable[[], list[Tensor]]:
    return lambda: [(torch.randn(3, 4) * 4).to(dtype), (torch.randn(3, 4) * 4).to(dtype)]


def greatest3d(*args: Any, **options: Any) -> Callable[[Tensor], Any]:
    return lambda x: F.max_pool3d(x, *args, return_indices=True, **options)


CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[Tensor]]]] = {
    "cummax": (lambda x: torch.cummax(x, 1), normal(3, 7, 2)),
    "cummax of one": (lambda x: torch.cummax(x, 0), normal(1, 3)),
    "cummax of nothing": (lambda x: torch.cummax(x, 1), normal(3, 0)),
    "cummax of a scalar": (lambda x: torch.cummax(x, 0), normal()),
    "cummax of equal and unusual ones": (lambda x: torch.cummax(x, -1), lambda: [UNUSUAL]),
    "cummax of integers": (lambda x: torch.cummax(x, 0), whole(64, 3)),
    "cummin": (lambda x: torch.cummin(x, 0), normal(100)),
    "cummin of equal and unusual ones": (lambda x: torch.cummin(x, -1), lambda: [UNUSUAL]),
    "cummin of halves": (lambda x: torch.cummin(x, 1), half(4, 5)),
    "logcumsumexp": (lambda x: torch.logcumsumexp(x, 1), normal(3, 9)),
    "logcumsumexp over a wide range": (
        # Its derivative, differences of such numbers, has no more than four right digits.
        lambda x: torch.logcumsumexp(x.detach(), 0), lambda: [torch.randn(33, 2) * 200]
    ),
    "logcumsumexp of unusual ones": (lambda x: torch.logcumsumexp(x, 1), lambda: [UNUSUAL]),
    "logcumsumexp of a scalar": (lambda x: torch.logcumsumexp(x, 0), normal()),
    "logcumsumexp of halves": (lambda x: torch.logcumsumexp(x, 1), half(3, 20)),
    "maxima of volumes": (greatest3d(2), normal(2, 3, 4, 6, 4)),
    "maxima of padded volumes": (greatest3d(3, 2, 1), normal(2, 2, 5, 7, 4)),
    "maxima of volumes with a rest": (
        greatest3d((2, 3, 2), ceil_mode=True), normal(2, 5, 7, 3)
    ),
    "maxima of overlapping halves": (greatest3d((3, 1, 2), 1), half(1, 2, 5, 4, 4)),
    "adaptive maxima of volumes": (
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 2), True), normal(2, 3, 4, 6, 4)
    ),
    "adaptive maxima of volumes in other cells": (
        lambda x: F.adaptive_max_pool3d(x, (2, 3, 5), True), normal(2, 3, 5, 4, 4)
    ),
    "adaptive maxima of other cells": (
        lambda x: F.adaptive_max_pool2d(x, (3, 7), True), normal(2, 3, 5, 4)
    ),
    "adaptive maxima of rows": (lambda x: F.adaptive_max_pool1d(x, 4, True), normal(2, 3, 7)),
    "adaptive maxima of halves": (lambda x: F.adaptive_max_pool2d(x, 3, True), half(3, 5, 4)),
    "adaptive averages of volumes": (
        lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), normal(2, 3, 4, 6, 5)
    ),
    "adaptive averages of volumes in other cells": (
        lambda x: F.adaptive_avg_pool3d(x, (3, 4, 2)), normal(3, 5, 6, 3)
    ),
    **{
        f"samples, {mode}, {padding}, {'aligned' if align else 'not aligned'}": (
            sampled(mode, padding, align), images(4, 5)
        )
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
        for align in (False, True)
    },
    "samples far outside": (sampled("bilinear"), images(4, 5, wide=1e9)),
    "samples far outside that are reflected": (
        sampled("bilinear", "reflection"), images(4, 5, wide=9.0)
    ),
    "samples of one pixel": (sampled("bilinear", "reflection", True), images(1, 1)),
    "samples of volumes": (sampled("bilinear"), images(3, 4, 5)),
    "samples of volumes that are reflected": (
        sampled("bilinear", "reflection", True), images(3, 4, 5)
    ),
    "nearest samples of volumes": (sampled("nearest", "border"), images(3, 4, 5)),
    **{
        f"scatter_reduce, {reduce}, {'with' if include else 'without'} itself": (
            reduced(reduce, include_self=include), scattered()
        )
        for reduce in ("sum", "mean", "amax", "amin", "prod")
        for include in (True, False)
    },
    "masked_scatter": (
        lambda x, source: x.masked_scatter(x > 0, source),
        lambda: [torch.randn(3, 5), torch.randn(4, 4)],
    ),
    "masked_scatter of rows": (
        lambda x, source: x.masked_scatter(ROWS.unsqueeze(1), source),
        lambda: [torch.randn(4, 3), torch.randn(2, 3)],
    ),
    "masked_scatter of nothing": (
        lambda x, source: x.masked_scatter(x > 99, source), lambda: [torch.randn(3), torch.randn(2)]
    ),
    "take": (lambda x: torch.take(x, INDEX), normal(3, 2)),
    "take from the end": (lambda x: torch.take(x, -1 - INDEX), normal(3, 2)),
    "put": (
        lambda x, source: torch.put(x, INDEX[0, :2] - 3, source),
        lambda: [torch.randn(2, 3), torch.randn(2)],
    ),
    "put that adds": (
        lambda x, source: torch.put(x, INDEX, source, accumulate=True),
        lambda: [torch.randn(2, 3), torch.randn(3, 4)],
    ),
    "hypot": (torch.hypot, lambda: [torch.randn(4, 3), torch.randn(3)]),
    "hypot of large and unusual ones": (
        torch.hypot,
        lambda: [torch.tensor([1e30, INF, NAN, 3e-30]), torch.tensor([1e30, INF, 1.0, 4e-30])],
    ),
    "copysign": (torch.copysign, lambda: [torch.randn(4, 3), torch.randn(3)]),
    "copysign of zeros and infinities": (
        lambda x, y: torch.copysign(x.detach(), y.detach()),
        lambda: [torch.ones(4), torch.tensor([0.0, -0.0, INF, -INF])],
    ),
    "rows of an embedding with a greatest norm": (
        lambda table: F.embedding(INDEX, table * 1, max_norm=1.0), normal(5, 3)
    ),
    "an embedding with a greatest sum": (
        lambda table: F.embedding(INDEX[0], table * 1, max_norm=0.5, norm_type=1.0), normal(5, 3)
    ),
    "distances with exponent 3": (
        lambda x, y: torch.cdist(x, y, 3.0), lambda: [torch.randn(4, 3), torch.randn(5, 3)]
    ),
    "distances with exponent 1.5": (
        lambda x, y: torch.cdist(x, y, 1.5), lambda: [torch.randn(2, 4, 3), torch.randn(2, 5, 3)]
    ),
    "greatest distances along an axis": (
        lambda x, y: torch.cdist(x, y, INF), lambda: [torch.randn(4, 3), torch.randn(5, 3)]
    ),
    **{
        f"indices of a triangle, {rows} by {columns}, {offset}": (
            lambda x, rows=rows, columns=columns, offset=offset: (
                x * 2,
                torch.tril_indices(rows, columns, offset),
                torch.triu_indices(rows, columns, offset),
            ),
            normal(2),
        )
        for rows, columns, offset in ((27, 27, 0), (4, 6, -1), (5, 3, 2), (3, 4, -9), (3, 4, 9))
    },
    "scatter_reduce along rows": (
        lambda x, source: x.scatter_reduce(-1, INDEX[:, :3], source, "amax"),
        lambda: [torch.randn(3, 4), torch.randn(3, 3)],
    ),
    "scatter_reduce of integers": (reduced("amin"), scattered(torch.int32)),
    "scatter_reduce of sums of integers": (
        reduced("sum", include_self=False), scattered(torch.int64)
    ),
    "scatter_reduce of halves": (reduced("mean"), scattered(torch.float16)),
}  # fmt: skip


def results(function: Callable[..., Any], given: list[Tensor]) -> list[Tensor]:
    """What the function gives, and gradients of it by what is given."""
    inputs = [one.clone().requires_grad_(one.is_floating_point()) for one in given]
    torch.manual_seed(1)
    found = [*torch.utils._pytree.tree_leaves(function(*inputs))]
    dependent = [one for one in found if one.requires_grad]
    if dependent:
        total = sum((one.float() * torch.randn(one.shape)).sum() for one in dependent)
        found += torch.autograd.grad(total, inputs)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_torchs(backend: opserve.torch.Backend, name: str) -> None:
    function, make = CASES[name]
    given = make()

    seen = results(torch.compile(function, backend=backend), given)

    expected = results(function, given)
    assert len(seen) == len(expected)
    for one, other in zip(seen, expected):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_what_is_read_out_of_range_is_zero(backend: opserve.torch.Backend) -> None:
    def read(x: Tensor, y: Tensor, index: Tensor) -> Any:
        return x.masked_scatter(x > 0, y), y[index]

    seen = torch.compile(read, backend=backend)(torch.ones(5), torch.ones(4), torch.tensor([9, 1]))

    assert [one.tolist() for one in seen] == [[1, 1, 1, 1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("node", "function", "given"),
    [
        (
            "grid_sampler_2d",
            sampled("bicubic"),
            [torch.randn(1, 2, 4, 4), torch.rand(1, 2, 2, 2)],
        ),
        (
            "scatter_reduce",
            lambda x, source: x.scatter_reduce(
                0, torch.zeros(2, 4, dtype=torch.int64), source[:, :4], "amax"
            ),
            [torch.randn(3, 5), torch.randn(2, 5)],
        ),
        ("logcumsumexp", lambda x: torch.logcumsumexp(x, 0), [torch.randn(3).double()]),
    ],
)
def test_others_are_computed_here(
    client: opserve.Client, node: str, function: Callable[..., Tensor], given: list[Tensor]
) -> None:
    run = torch.compile(function, backend=opserve.torch.backend(client))

    with pytest.warns(opserve.torch.LocalNodesWarning, match=node):
        seen = run(*given)

    torch.testing.assert_close(seen, function(*given))
