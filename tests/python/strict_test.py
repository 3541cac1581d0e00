"""What runs here is named: at once and wholly in strict mode, else once. Current torch from PyPI."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import Traffic, backend, fresh, traffic  # noqa: F401

Tensor = torch.Tensor
special = torch.special


def two_and_one(x: Tensor) -> Tensor:
    """Backward passes of bessel_j0 have a bessel_j1."""
    x = special.bessel_j0(x)
    x = torch.special.airy_ai(x).detach() + special.bessel_j0(x * 2)
    return x * 3


def names_of(message: str) -> dict[str, int]:
    """Operators that a message names, with their counts."""
    return {name: int(count) for name, count in re.findall(r"aten\.(\w+)\.\w+ \((\d+)", message)}


def test_strict_lists_all_nodes_of_both_passes_before_anything_runs(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    x = torch.rand(5, requires_grad=True)
    line = two_and_one.__code__.co_firstlineno + 2
    with pytest.raises(opserve.torch.UnsupportedError) as raised:
        torch.compile(two_and_one, backend=backend)(x)

    message = str(raised.value)
    lines = message.splitlines()
    backward = "\n".join(one for one in lines if "backward pass" in one)
    forward = "\n".join(one for one in lines if "backward pass" not in one)
    assert names_of(forward) == {"special_bessel_j0": 2, "special_airy_ai": 1}
    assert names_of(backward) == {"special_bessel_j1": 2}
    for number in (line, line + 1):
        places = f"strict_test.py, line {number}, in two_and_one"
        assert forward.count(places) >= 1 and backward.count(places) >= 1
    assert traffic.sent == traffic.uploads == 0


def test_strict_lists_the_nodes_of_an_inference(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    with pytest.raises(opserve.torch.UnsupportedError) as raised:
        torch.compile(two_and_one, backend=backend)(torch.rand(5))

    assert names_of(str(raised.value)) == {"special_bessel_j0": 2, "special_airy_ai": 1}
    assert traffic.sent == 0


def test_strict_lists_the_nodes_of_a_graph_of_any_shape(backend: opserve.torch.Backend) -> None:
    run = torch.compile(two_and_one, backend=backend, dynamic=True)
    for rows in (5, 7):
        with pytest.raises(opserve.torch.UnsupportedError, match="bessel_j1"):
            run(torch.rand(rows, 3, requires_grad=True))


def test_nodes_of_a_graph_of_any_shape_run_here(client: opserve.Client) -> None:
    run = torch.compile(two_and_one, backend=opserve.torch.backend(client), dynamic=True)
    for rows in (5, 7):
        x = torch.rand(rows, 3, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", opserve.torch.LocalNodesWarning)
            (gradient,) = torch.autograd.grad(run(x).sum(), x)
        (expected,) = torch.autograd.grad(two_and_one(x).sum(), x)
        torch.testing.assert_close(gradient, expected)


def test_strict_keeps_graphs_of_any_shape(backend: opserve.torch.Backend) -> None:
    compiled = []
    real = backend._runner
    backend._runner = lambda *given: compiled.append(1) or real(*given)  # type: ignore
    run = torch.compile(lambda x: torch.tanh(x) * x.shape[0], backend=backend, dynamic=True)
    for rows in (3, 5, 9):
        x = torch.rand(rows, 4, requires_grad=True)
        seen = run(x)
        torch.testing.assert_close(seen, torch.tanh(x) * rows)
        seen.sum().backward()

    assert len(compiled) == 2  # a forward and a backward graph


def test_a_warning_names_each_operator_once(client: opserve.Client) -> None:
    def more(x: Tensor) -> Tensor:
        return two_and_one(x) + special.bessel_y0(x)

    lenient = opserve.torch.backend(client)
    x = torch.rand(5, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.compile(two_and_one, backend=lenient)(x).sum().backward()
        torch._dynamo.reset()
        torch.compile(more, backend=lenient)(x)

    texts = [
        str(one.message) for one in seen if one.category is opserve.torch.LocalNodesWarning
    ]
    assert [names_of(text) for text in texts] == [
        {"special_bessel_j0": 2, "special_airy_ai": 1},
        {"special_bessel_j1": 2},
        {"special_bessel_y0": 1},
    ]


def with_break(x: Tensor) -> Tensor:
    y = torch.tanh(x)
    torch._dynamo.graph_break()
    return y * 2


def with_break_at_first(x: Tensor) -> Tensor:
    torch._dynamo.graph_break()
    return x * 2


def with_loop(x: Tensor) -> Tensor:
    for _ in range(3):
        if x.sum() > 0:
            x = x * 2
    return x


def test_a_warning_names_a_graph_break_once(backend: opserve.torch.Backend) -> None:
    line = with_break.__code__.co_firstlineno + 2
    place = rf"strict_test.py, line {line}, in with_break: torch._dynamo.graph_break\(\)"
    x = torch.rand(3)
    run = torch.compile(with_break, backend=backend)
    with pytest.warns(opserve.torch.LocalNodesWarning, match=place):
        seen = run(x)
    torch.testing.assert_close(seen, with_break(x))
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", opserve.torch.LocalNodesWarning)
        torch.compile(with_break, backend=backend)(x)


def test_a_warning_names_the_last_graph_that_torch_makes(backend: opserve.torch.Backend) -> None:
    @torch.compile(backend=backend, dynamic=False)
    def run(x: Tensor) -> Tensor:
        return x * 2

    limit = torch._dynamo.config.recompile_limit
    with warnings.catch_warnings():
        warnings.simplefilter("error", opserve.torch.LocalNodesWarning)
        for rows in range(2, limit + 1):
            run(torch.rand(rows))
    with pytest.warns(
        opserve.torch.LocalNodesWarning, match=r"recompile_limit; .*strict_test.py, line \d+, in run"
    ):
        run(torch.rand(limit + 1))
    sent = len(backend.plans)
    torch.testing.assert_close(run(torch.ones(limit + 2)), torch.full((limit + 2,), 2.0))
    assert len(backend.plans) == sent == limit  # that call ran here


@pytest.mark.parametrize("f", [with_break, with_break_at_first, with_loop])
def test_fullgraph_refuses_what_torch_leaves_out_of_graphs(
    backend: opserve.torch.Backend, traffic: Traffic, f: Callable[[Tensor], Tensor]
) -> None:
    with pytest.raises(torch._dynamo.exc.Unsupported, match=f.__name__):
        torch.compile(f, backend=backend, fullgraph=True)(torch.rand(3))
    assert traffic.sent == 0


def test_fullgraph_refuses_more_graphs_than_torch_makes(backend: opserve.torch.Backend) -> None:
    @torch.compile(backend=backend, dynamic=False, fullgraph=True)
    def run(x: Tensor) -> Tensor:
        return x * 2

    limit = torch._dynamo.config.recompile_limit
    with pytest.warns(opserve.torch.LocalNodesWarning):
        for rows in range(2, limit + 2):
            run(torch.rand(rows))
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        run(torch.rand(limit + 2))
