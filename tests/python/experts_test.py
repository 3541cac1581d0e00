"""Mixtures of experts in strict mode: grouped products and histograms, beside eager torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import fresh  # noqa: F401
from torch_helpers import is_torch_2_4

Tensor = torch.Tensor


@pytest.fixture
def backend(client: opserve.Client) -> opserve.torch.Backend:
    return opserve.torch.backend(client, strict=True)


def _products(x: Tensor, matrices: Tensor, ends: Tensor) -> Tensor:
    """As the functions with which it is compared, of each group alone."""
    starts = [0, *ends.tolist()]
    parts = [
        x[start:end] @ matrix for start, end, matrix in zip(starts, starts[1:], matrices)
    ]
    return torch.cat([*parts, x.new_zeros(len(x) - starts[-1], matrices.shape[-1])])


ENDS = {
    "even": [2, 4, 6],
    "a group without rows": [0, 5, 6],
    "the last one without rows": [3, 6, 6],
    "rows behind the last": [1, 1, 4],
    "no rows": [0, 0, 0],
}


@pytest.mark.parametrize("name", ENDS)
def test_rows_are_multiplied_with_their_groups_matrix(
    backend: opserve.torch.Backend, name: str
) -> None:
    pytest.importorskip("transformers.integrations.moe")
    grouped = torch.ops.transformers.grouped_mm_fallback
    ends = torch.tensor(ENDS[name], dtype=torch.int32)
    x, matrices, gradient = torch.randn(6, 4), torch.randn(3, 4, 5), torch.randn(6, 5)
    results = []
    for function in (torch.compile(grouped, backend=backend), _products):
        one, other = x.clone().requires_grad_(), matrices.clone().requires_grad_()
        y = function(one, other, ends)
        y.backward(gradient)
        results.append((y.detach(), one.grad, other.grad))
    for seen, right in zip(*results):
        torch.testing.assert_close(torch.as_tensor(seen), right)


def test_a_groups_infinities_stay_with_it(backend: opserve.torch.Backend) -> None:
    pytest.importorskip("transformers.integrations.moe")
    grouped = torch.ops.transformers.grouped_mm_fallback
    x, matrices = torch.randn(6, 4), torch.randn(3, 4, 5)
    matrices[1, 0, 0], x[2, 1] = math.inf, math.nan
    ends = torch.tensor([2, 4, 6])
    seen = torch.compile(grouped, backend=backend)(x, matrices, ends)
    right = _products(x, matrices, ends)
    torch.testing.assert_close(torch.as_tensor(seen), right, equal_nan=True)
    assert right.isfinite().all(1).tolist() == [True, True, False, False, True, True]
    matrices = torch.randn(3, 4, 5, requires_grad=True)
    gradient = torch.randn(6, 5)
    gradient[3, 2] = math.inf
    torch.compile(grouped, backend=backend)(torch.randn(6, 4), matrices, ends).backward(gradient)
    assert matrices.grad is not None
    assert matrices.grad.isfinite().all(2).all(1).tolist() == [True, False, True]


@pytest.mark.skipif(is_torch_2_4, reason="torch 2.4 has no such function for these")
@pytest.mark.parametrize("form", ["rows", "batches", "columns"])
def test_torchs_own_grouped_products(backend: opserve.torch.Backend, form: str) -> None:
    ends = torch.tensor([16, 16, 48], dtype=torch.int32)
    x, matrices, given = {
        "rows": (torch.randn(48, 32), torch.randn(3, 32, 16), ends),
        "batches": (torch.randn(3, 16, 32), torch.randn(3, 32, 16), None),
        "columns": (torch.randn(16, 48), torch.randn(48, 32), ends),
    }[form]
    a, b = x.bfloat16(), matrices.bfloat16()

    def products(a: Tensor, b: Tensor) -> Tensor:
        return torch.nn.functional.grouped_mm(a, b, offs=given)

    right = products(a, b)
    seen = torch.as_tensor(torch.compile(products, backend=backend)(a, b))
    assert seen.dtype == right.dtype and seen.shape == right.shape
    torch.testing.assert_close(seen, right, rtol=2**-6, atol=2**-6)


HISTOGRAMS: dict[str, tuple[Callable[[], Tensor], dict[str, Any]]] = {
    "numbers of experts": (
        lambda: torch.randint(0, 8, (20, 2)).float(),
        {"bins": 8, "min": 0, "max": 7},
    ),
    "between and outside": (lambda: torch.randn(200), {"bins": 10, "min": -1.0, "max": 1.0}),
    "edges": (lambda: torch.linspace(-1, 2, 13), {"bins": 6, "min": -1, "max": 2}),
    "what is no number": (
        lambda: torch.tensor([math.nan, math.inf, -math.inf, 0.5]),
        {"bins": 4, "min": 0, "max": 1},
    ),
    "float64": (lambda: torch.randn(50).double(), {"bins": 7, "min": -2, "max": 2}),
    "of nothing": (lambda: torch.randn(0), {"bins": 3, "min": 0, "max": 1}),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(backend: opserve.torch.Backend, name: str) -> None:
    make, options = HISTOGRAMS[name]
    x = make()
    seen = torch.compile(lambda x: torch.histc(x, **options), backend=backend)(x)
    torch.testing.assert_close(torch.as_tensor(seen), torch.histc(x, **options), rtol=0, atol=0)
