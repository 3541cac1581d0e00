"""Nodes that an operator of the pool serves, each with its derivative: current torch from PyPI."""

from __future__ import annotations

import importlib.util
import pathlib
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from opserve._operators import OPERATORS
from optim_helpers import backend, fresh  # noqa: F401
from torch.nn import functional as F

Tensor = torch.Tensor


def positive(*shape: int) -> Tensor:
    return torch.rand(shape) * 0.8 + 0.1


def unusual(*shape: int) -> Tensor:
    x = positive(*shape)
    x[0, 1], x[1, 0], x[1, 2] = float("nan"), float("inf"), -float("inf")
    return x


def with_zeros(*shape: int) -> Tensor:
    x = positive(*shape)
    x[0, 1] = x[1, 0] = x[1, 2] = 0
    return x


# Function, arguments, and operators of the pool that it must use.
CASES: dict[str, tuple[Callable[..., Tensor], Callable[[], Any], set[str]]] = {
    "atanh": (torch.atanh, lambda: [positive(3, 4)], {"Atanh"}),
    "asinh": (torch.asinh, lambda: [torch.randn(3, 4)], {"Asinh"}),
    "acosh": (torch.acosh, lambda: [1.5 + positive(3, 4)], {"Acosh"}),
    "prod": (torch.prod, lambda: [positive(3, 4)], {"ProdDim"}),
    "prod of none": (torch.prod, lambda: [torch.tensor(2.5)], set()),
    "prod with zeros": (torch.prod, lambda: [with_zeros(3, 4)], {"ProdDim"}),
    "prod of a view": (lambda x: torch.prod(x.t()), lambda: [positive(3, 4)], {"ProdDim"}),
    "prod of an axis": (lambda x: x.prod(1), lambda: [with_zeros(3, 4)], {"ProdDim"}),
    "prod that keeps": (lambda x: x.prod(-2, keepdim=True), lambda: [positive(3, 4)], {"ProdDim"}),
    "prod of integers": (lambda x: x.int().prod(1) + x[:, 0], lambda: [3 * positive(3, 4)], {"ProdDim"}),
    "cumprod": (lambda x: x.cumprod(0), lambda: [positive(3, 4)], {"Cumprod"}),
    "cumprod with zeros": (lambda x: x.cumprod(-1), lambda: [with_zeros(3, 4)], {"Cumprod"}),
    "isnan": (torch.nan_to_num, lambda: [unusual(3, 4)], set()),
    "isinf": (lambda x: torch.isinf(x) + x * 0 + 1, lambda: [positive(3, 4)], set()),
    "infinities": (lambda x: torch.where(torch.isinf(x), 1, x), lambda: [unusual(3, 4)], set()),
    "nansum": (torch.nansum, lambda: [unusual(3, 4).clamp(-9, 9)], set()),
    "addmv": (torch.addmv, lambda: [positive(3), positive(3, 4), positive(4)], set()),
    "addmv scaled": (
        lambda x, y, z: torch.addmv(x, y, z, beta=2, alpha=3),
        lambda: [positive(3), positive(3, 4), positive(4)], set()
    ),
    "addbmm": (
        torch.addbmm, lambda: [positive(3, 5), positive(2, 3, 4), positive(2, 4, 5)], set()
    ),
    "clamp by tensors": (
        torch.clamp, lambda: [positive(3, 4), positive(4) / 2, 0.5 + positive(4) / 2], set()
    ),
    "prelu": (F.prelu, lambda: [torch.randn(2, 3, 4), torch.rand(3)], {"Prelu"}),
    "prelu of one slope": (F.prelu, lambda: [torch.randn(2, 3), torch.rand(1)], {"Prelu"}),
    "prelu of a vector": (F.prelu, lambda: [torch.randn(5), torch.rand(1)], {"Prelu"}),
    "prelu in float64": (
        F.prelu, lambda: [torch.randn(2, 3).double(), torch.rand(3).double()], set()
    ),
}  # fmt: skip


def test_each_operator_serves_a_node_or_has_a_reason_not_to() -> None:
    path = pathlib.Path(opserve.__file__).parents[1] / "tools/unused_operators.py"
    spec = importlib.util.spec_from_file_location("unused_operators", path)
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    used, reasons = tool.used(), tool.unused()

    listed = [name for names in reasons.values() for name in names]
    assert sorted(listed) == sorted(OPERATORS.keys() - used)  # each once
    # A name that is used by now, or is no operator, has no place in the list.
    for reason, names in tool.REASONS.items():
        for one in names.split():
            assert "*" in one or one in reasons[reason], one


@pytest.mark.parametrize("name", CASES)
def test_a_function_and_its_gradients_are_torchs(
    backend: opserve.torch.Backend, name: str
) -> None:
    f, make, operators = CASES[name]
    inputs = [one.requires_grad_() for one in make()]

    seen, expected = torch.compile(f, backend=backend)(*inputs), f(*inputs)

    torch.testing.assert_close(seen, expected, equal_nan=True)
    weights = torch.randn(expected.shape, dtype=expected.dtype)
    gradients = torch.autograd.grad((seen * weights).sum(), inputs)
    others = torch.autograd.grad((expected * weights).sum(), inputs)
    torch.testing.assert_close(gradients, others)
    invoked = {
        one.operator
        for plan in backend.plans
        for step in plan.steps
        for one in step.program.invocations  # type: ignore[union-attr]
    }
    assert operators <= invoked
