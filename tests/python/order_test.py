"""Searches, medians and k-th elements in strict mode, beside eager torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import fresh  # noqa: F401

Tensor = torch.Tensor
NAN = math.nan


@pytest.fixture
def backend(client: opserve.Client) -> opserve.torch.Backend:
    return opserve.torch.backend(client, strict=True)


def _sorted(*shape: int) -> Tensor:
    return torch.randint(0, 9, shape).float().sort(-1)[0]


# No two elements are equal where places are given: torch does not say which one of them it takes.
CASES: dict[str, tuple[Callable[..., Any], Callable[[], list[Tensor]]]] = {
    "bucketize": (torch.bucketize, lambda: [torch.randn(4, 5), _sorted(7) - 4]),
    "bucketize on the edges": (torch.bucketize, lambda: [_sorted(3, 8), _sorted(5)]),
    "bucketize to the right": (
        lambda x, y: torch.bucketize(x, y, right=True, out_int32=True),
        lambda: [_sorted(3, 8), _sorted(5)],
    ),
    "bucketize NaN": (
        torch.bucketize,
        lambda: [torch.tensor([NAN, math.inf, -math.inf, 1.0]), torch.tensor([0.0, 1.0])],
    ),
    "bucketize in nothing": (torch.bucketize, lambda: [torch.randn(3), torch.empty(0)]),
    "bucketize integers": (
        torch.bucketize,
        lambda: [torch.randint(0, 9, (6,)), torch.tensor([2, 5, 5, 7])],
    ),
    "searchsorted": (torch.searchsorted, lambda: [_sorted(3, 6), _sorted(3, 4)]),
    "searchsorted in one": (torch.searchsorted, lambda: [_sorted(6), _sorted(3, 4)]),
    "searchsorted to the right": (
        lambda x, y: torch.searchsorted(x, y, side="right"),
        lambda: [_sorted(3, 6), _sorted(3, 4)],
    ),
    "median": (torch.median, lambda: [torch.randn(4, 7)]),
    "median of an even number": (torch.median, lambda: [torch.randn(4, 6)]),
    "median with NaN": (torch.median, lambda: [torch.tensor([1.0, NAN, 0.0])]),
    "median of integers": (torch.median, lambda: [torch.randint(0, 9, (8,))]),
    "medians": (lambda x: torch.median(x, 1), lambda: [torch.randn(3, 8, 2)]),
    "medians that stay": (
        lambda x: torch.median(x, 0, keepdim=True),
        lambda: [torch.randperm(12).reshape(3, 4)],
    ),
    "medians with NaN": (
        lambda x: torch.median(x, 1),
        lambda: [torch.tensor([[3.0, NAN, 1.0, 2.0], [4.0, 1.0, 3.0, 2.0]])],
    ),
    "median of a number": (lambda x: torch.median(x, 0), lambda: [torch.tensor(3.0)]),
    "the second": (lambda x: torch.kthvalue(x, 2), lambda: [torch.randn(4, 5)]),
    "the last that stays": (
        lambda x: torch.kthvalue(x, 3, 0, keepdim=True),
        lambda: [torch.tensor([[3.0, 1.0], [NAN, 2.0], [1.0, 0.0]])],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_eager_torch(backend: opserve.torch.Backend, name: str) -> None:
    function, make = CASES[name]
    given = make()
    leaves = torch.utils._pytree.tree_leaves
    seen, right = leaves(torch.compile(function, backend=backend)(*given)), leaves(function(*given))
    assert len(seen) == len(right)
    for one, other in zip(seen, right):
        torch.testing.assert_close(torch.as_tensor(one), other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["medians", "the second"])
def test_gradients_reach_the_elements(backend: opserve.torch.Backend, name: str) -> None:
    function, make = CASES[name]
    [given] = make()
    gradients = []
    for one in (torch.compile(function, backend=backend), function):
        x = given.clone().requires_grad_()
        (one(x)[0] * 3).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
