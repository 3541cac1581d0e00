"""Constants of graphs, and values that no program takes: current torch from PyPI."""

from __future__ import annotations

import warnings
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import Traffic, backend, fresh, traffic  # noqa: F401

NUMBERS = [one / 7 for one in range(2000)]


def add_large(x: torch.Tensor) -> torch.Tensor:
    return x + torch.tensor(NUMBERS)


def add_small(x: torch.Tensor) -> torch.Tensor:
    return x + torch.tensor(NUMBERS[:20]).repeat(100)


def multiply_by_integers(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor(list(range(2000)))


def look_up(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor(NUMBERS)[torch.tensor(list(range(1999, -1, -1)))] * x


@pytest.mark.parametrize("f", [add_large, add_small, multiply_by_integers, look_up])
def test_constants_of_any_size_run_on_the_pool(backend: opserve.torch.Backend, f: Any) -> None:
    x = torch.randn(2000, requires_grad=True)
    run = torch.compile(f, backend=backend)

    for _ in range(2):
        seen, expected = run(x), f(x)
        torch.testing.assert_close(seen, expected)
        (gradient,) = torch.autograd.grad((seen * seen).sum(), x)
        (other,) = torch.autograd.grad((expected * expected).sum(), x)
        torch.testing.assert_close(gradient, other)


PARTS: dict[str, Any] = {
    "beginning": lambda x: x[:8] + torch.arange(10.0)[:8],
    "end": lambda x: x[:8] + torch.arange(10.0)[2:],
    "element": lambda x: x + torch.arange(10)[3],
    "each second one": lambda x: x[:4] + torch.arange(10.0)[2::2],
    "columns": lambda x: x[:6].reshape(3, 2) + torch.arange(12.0).reshape(3, 4)[:, 1:3],
    "column of a tensor": lambda x: x[:2] + torch.tensor([[1.0, 2.0], [3.0, 4.0]])[:, 1],
    "repeated row": lambda x: x[:4].reshape(2, 2) + torch.tensor([[1.0, 2.0], [3.0, 4.0]])[1],
    "halves": lambda x: x[:3].bfloat16() + torch.arange(9, dtype=torch.bfloat16)[6:],
    "nothing": lambda x: x[:0] + torch.arange(10.0)[10:],
    "equal elements": lambda x: x[:6].reshape(2, 3) + torch.ones(3, 4).t()[2:, 1:2],
    "floats from integers": lambda x: x[:1] + torch.arange(5000, dtype=torch.float32)[4000:],
    "halves from integers": lambda x: x[:1].half() * torch.arange(3000, dtype=torch.float16)[9:],
    "the part alone": lambda x: (x, torch.arange(10.0)[4:7]),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_small_constants_are_their_own(
    backend: opserve.torch.Backend, name: str
) -> None:
    x = torch.randn(10)

    seen, expected = torch.compile(PARTS[name], backend=backend)(x), PARTS[name](x)

    torch.testing.assert_close(seen, expected)


def test_a_large_constant_is_sent_once(backend: opserve.torch.Backend, traffic: Traffic) -> None:
    run = torch.compile(add_large, backend=backend)
    run(torch.randn(2000))
    assert traffic.uploads == 1

    traffic.clear()
    run(torch.randn(2000))
    assert traffic.uploads == 0
    assert traffic.sent < 2000 * 4 + 1024


def test_a_large_constant_is_there_again_after_the_daemon(start_daemon: Any) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        run = torch.compile(add_large, backend=opserve.torch.backend(client, strict=True))
        x = torch.randn(2000)
        run(x)
        daemon.stop()
        daemon.start()

        torch.testing.assert_close(run(x), add_large(x))


def test_a_large_constant_in_a_training_that_nothing_waits_for(
    client: opserve.Client,
) -> None:
    import opserve.torch.optim

    backend = opserve.torch.backend(client, strict=True)
    model = torch.nn.Linear(2000, 1)
    eager = torch.nn.Linear(2000, 1)
    eager.load_state_dict(model.state_dict())
    optimizer = opserve.torch.optim.SGD(model.parameters(), lr=0.01, backend=backend)
    other = torch.optim.SGD(eager.parameters(), lr=0.01)

    def loss_of(layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return layer(x * torch.tensor(NUMBERS) / 1000).square().mean()

    step = torch.compile(loss_of, backend=backend)
    for number in range(3):
        x = torch.randn(4, 2000, generator=torch.Generator().manual_seed(number))
        optimizer.zero_grad(), other.zero_grad()
        seen, expected = step(model, x), loss_of(eager, x)
        seen.backward(), expected.backward()
        optimizer.step(), other.step()
        assert seen.item() == pytest.approx(expected.item(), rel=1e-4)


def add_complex(x: torch.Tensor) -> torch.Tensor:
    return (x * torch.tensor([1j, 2j, 3j])).abs() + 1


def square_complex(x: torch.Tensor) -> torch.Tensor:
    return (x * x).abs()


def choose(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)) * 2


@pytest.mark.parametrize(
    ("f", "dtype"),
    [(add_complex, torch.float32), (square_complex, torch.complex64), (choose, torch.float32)],
    ids=["constant", "saved input", "branches"],
)
def test_what_the_pool_cannot_hold_runs_here(
    client: opserve.Client, f: Any, dtype: torch.dtype
) -> None:
    run = torch.compile(f, backend=opserve.torch.backend(client))
    x = torch.randn(3, dtype=dtype, requires_grad=f is not choose)
    with pytest.warns(opserve.torch.LocalNodesWarning):
        seen = run(x)
    expected = f(x)
    torch.testing.assert_close(seen, expected)
    if not x.requires_grad:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", opserve.torch.LocalNodesWarning)
        (gradient,) = torch.autograd.grad(seen.sum(), x)
    (other,) = torch.autograd.grad(expected.sum(), x)
    torch.testing.assert_close(gradient, other)
