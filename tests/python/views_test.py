"""Graphs whose outputs are views, with extents that are symbols and with fixed ones.

The caller gets views of its own tensors, as from eager torch: with the same elements, strides and
memory.
"""

from __future__ import annotations

import copy
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from torch import nn

Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def backend(client: opserve.Client) -> opserve.torch.Backend:
    return opserve.torch.backend(client, strict=True)


def _twice(x: Tensor) -> Any:
    y = x * 2
    return y, y[1:], y.t()


def _twice_transposed(x: Tensor) -> Any:
    y = x.t() * 2
    return y[1:], y.t()[2:]


def _beside(x: Tensor) -> Any:
    rows, columns = x.shape
    return x.reshape(rows, 2, -1).permute(1, 2, 0), x.reshape(-1, columns) + 1


VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "a part": lambda x: x[1:],
    "a part beside": lambda x: (x[1], x.relu()),
    "transposed": lambda x: x.t(),
    "a part, transposed": lambda x: (x.t()[1:], x * 2),
    "in another shape": _beside,
    "expanded": lambda x: x.narrow(0, 1, 2).unsqueeze(0).expand(3, 2, x.shape[1]),
    "in parts": lambda x: torch.split(x, 2),
    "flat": lambda x: x.reshape(-1)[3:],
    "overlapping": lambda x: x.unfold(0, 3, 1),
    "of another output": _twice,
    "of one that is none": _twice_transposed,
    "parts of another output": lambda x: (x.relu().chunk(2), x.relu().unbind(0)[1]),
    "overlapping, of a result": lambda x: (x * 2).unfold(0, 3, 1),
}
INPUTS: dict[str, Callable[[], Tensor]] = {
    "whole": lambda: torch.randn(5, 6),
    "a part": lambda: torch.randn(9, 12)[2:7, 3:9],
    "every other, transposed": lambda: torch.randn(6, 10)[:, 1::2].t(),
}
CASES = [
    *itertools.product(VIEWS, ["whole"], [False, True], [False, True]),
    *itertools.product(VIEWS, list(INPUTS)[1:], [True], [False]),
]


@pytest.mark.parametrize("view, given, has_symbols, trains", CASES)
def test_outputs_are_those_of_eager_torch(
    backend: opserve.torch.Backend, view: str, given: str, has_symbols: bool, trains: bool
) -> None:
    function, x = VIEWS[view], INPUTS[given]().requires_grad_(trains)
    leaves = torch.utils._pytree.tree_leaves
    expected = leaves(function(x))
    seen = leaves(torch.compile(function, backend=backend, dynamic=has_symbols)(x))
    assert len(seen) == len(expected)
    for got, right in zip(seen, expected):
        torch.testing.assert_close(torch.as_tensor(got).detach(), right.detach(), rtol=0, atol=0)
        assert got.requires_grad == right.requires_grad
        assert got.stride() == right.stride()
        # AOTAutograd makes parts that need gradients tensors of their own.
        if right._is_view() and right._base is (x if x._base is None else x._base):
            assert got.data_ptr() == right.data_ptr() or (trains and view == "in parts")
    if trains:
        gradients = [
            torch.autograd.grad(sum((one**2).sum() for one in outputs), x)[0]
            for outputs in (seen, expected)
        ]
        torch.testing.assert_close(*gradients)


RESULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "in another shape": lambda x: (x * 2).reshape(-1),
    "transposed": lambda x: (x * 2).t(),
    "a part": lambda x: (x * 2)[1:],
    "expanded": lambda x: (x * 2).sum(0).expand(3, -1).clone(),
}


@pytest.mark.parametrize("has_symbols", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_may_be_changed_in_place(
    backend: opserve.torch.Backend, name: str, has_symbols: bool
) -> None:
    compiled = torch.compile(RESULTS[name], backend=backend, dynamic=has_symbols)
    x = torch.randn(5, 6, requires_grad=True)
    results = []
    for function in (compiled, RESULTS[name]):
        y = function(x)
        y *= y.detach() + 1
        results.append((y.detach(), *torch.autograd.grad(y.sum(), x)))
    for seen, right in zip(*results):
        torch.testing.assert_close(torch.as_tensor(seen), right)


class Whitened(nn.Module):
    """With a function that raises an error by its elements, an effect that graphs have tokens for."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(6, 6), nn.BatchNorm1d(6)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        h = self.norm(self.linear(x))
        inverse = torch.linalg.inv(h.t() @ h + torch.eye(6))
        return h @ inverse, h, inverse[1:], x[1:]


@pytest.mark.parametrize("has_symbols", [False, True])
@pytest.mark.parametrize("trains", [False, True])
def test_functions_with_effects_have_results_in_their_places(
    client: opserve.Client, trains: bool, has_symbols: bool
) -> None:
    backend = opserve.torch.backend(client)
    model = Whitened()
    eager = copy.deepcopy(model)
    compiled = torch.compile(model, backend=backend, dynamic=has_symbols)
    for _ in range(2):
        x = torch.randn(8, 6)
        with torch.set_grad_enabled(trains), warnings.catch_warnings():
            warnings.simplefilter("ignore", opserve.torch.LocalNodesWarning)
            results = [function(x) for function in (compiled, eager)]
        for seen, right in zip(*results):
            torch.testing.assert_close(torch.as_tensor(seen).detach(), right.detach())
        if trains:
            for one in results:
                (one[0].sum() + one[2].square().sum()).backward()
            for seen, right in zip(model.parameters(), eager.parameters()):
                torch.testing.assert_close(seen.grad, right.grad, rtol=1e-4, atol=1e-4)
                seen.grad = right.grad = None
    for seen, right in zip(model.buffers(), eager.buffers()):
        torch.testing.assert_close(torch.as_tensor(seen), right)


def test_a_module_is_right_in_every_shape(backend: opserve.torch.Backend) -> None:
    """Torch compiles it with symbols for its second shape."""

    def rows_and_columns(x: Tensor, v: Tensor) -> Tensor:
        batch, height, width, _ = x.shape
        v = v.reshape(batch, width, height, -1).permute(0, 2, 1, 3)
        torch._dynamo.graph_break()
        return torch.cat([v, x], dim=-1)

    compiled = torch.compile(rows_and_columns, backend=backend)
    for height, width, channels in ((4, 4, 3), (2, 2, 6), (3, 5, 6), (5, 3, 2)):
        x = torch.randn(2, height, width, channels)
        v = torch.randn(2 * width, height, channels)
        torch.testing.assert_close(compiled(x, v), rows_and_columns(x, v), rtol=0, atol=0)
