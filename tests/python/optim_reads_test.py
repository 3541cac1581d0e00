"""Reads and changes, in this process, of parameters that an optimizer keeps on the pool."""

from __future__ import annotations

import copy
import ctypes
import gc
import io
import pickle
from collections.abc import Callable
from typing import Any

import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import Pair, Traffic, backend, fresh, traffic  # noqa: F401
from torch import nn
from torch.nn import functional as F


def _through_a_file(parameter: torch.Tensor) -> torch.Tensor:
    file = io.BytesIO()
    torch.save(parameter, file)
    file.seek(0)
    loaded: torch.Tensor = torch.load(file)
    return loaded


READS: dict[str, Callable[[nn.Parameter], Any]] = {
    "tolist": lambda p: p.tolist(),
    "numpy": lambda p: p.detach().numpy(),
    "data": lambda p: p.data,
    "detach": lambda p: p.detach(),
    "print": lambda p: str(p),
    "item": lambda p: p[0, 0].item(),
    "sum": lambda p: p.sum(),
    "function": lambda p: F.linear(torch.ones(2, 20), p),
    "list": lambda p: torch.stack([p, p]),
    "out": lambda p: torch.mul(p.data, 2, out=torch.empty(64, 20)),
    "copy": lambda p: torch.zeros(64, 20).copy_(p.data),
    "clone": lambda p: p.clone(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda p: pickle.loads(pickle.dumps(p)),
    "save": _through_a_file,
    "storage": lambda p: list(p.untyped_storage())[:64],
    "pointer": lambda p: list((ctypes.c_float * 1280).from_address(p.data_ptr())),
    "changed": lambda p: p.data.add_(1),
    "assigned": lambda p: p.data[3].fill_(4) + p.data.sum(),
}


@pytest.mark.parametrize("how", READS)
def test_a_read_sees_the_newest_parameters(
    backend: opserve.torch.Backend, how: str
) -> None:
    pair = Pair(backend, "sgd", lr=1.0)
    read = READS[how]
    for number in range(2):
        pair.step(number)
        seen, expected = (read(side[0].weight) for side in (pair.model, pair.eager))  # type: ignore[index]
        if isinstance(seen, str):
            assert seen[:60] == expected[:60]
        elif how == "storage":
            arrays = [torch.tensor(one, dtype=torch.uint8).view(torch.float32) for one in (seen, expected)]
            torch.testing.assert_close(*arrays, rtol=1e-4, atol=1e-5)
        elif how == "deepcopy" or how == "pickle":
            assert type(seen) is nn.Parameter
            torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-5)
        else:
            torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-5)
        del seen, expected


def test_what_shares_memory_with_a_parameter_sees_each_step(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    pair = Pair(backend, "sgd")
    shared = [pair.model.state_dict(), pair.eager.state_dict()]
    row = pair.model[0].weight.detach()[3], pair.eager[0].weight.detach()[3]
    for number in range(3):
        pair.step(number)
        for name, seen in shared[0].items():
            torch.testing.assert_close(seen, shared[1][name], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(*row, rtol=1e-4, atol=1e-5)
    del shared, row, seen
    traffic.clear()
    pair.step(3)
    assert traffic.downloads == 0


@pytest.mark.parametrize("other", ["eager", "aot_eager"])
def test_graphs_of_other_compilers_see_the_newest_parameters(
    backend: opserve.torch.Backend, other: str
) -> None:
    pair = Pair(backend, "sgd", lr=0.5)
    elsewhere = torch.compile(pair.model.forward, backend=other)
    x = torch.randn(4, 20)
    for number in range(2):
        pair.step(number)
        with torch.no_grad():
            torch.testing.assert_close(elsewhere(x), pair.eager(x), rtol=1e-4, atol=1e-4)


def test_the_graph_of_another_pool_sees_the_newest_parameters(
    client: opserve.Client, backend: opserve.torch.Backend
) -> None:
    pair = Pair(backend, "sgd", lr=0.5)
    x = torch.randn(4, 20)
    other = opserve.torch.backend(client, strict=True)
    elsewhere = torch.compile(lambda x: pair.model(x), backend=other)
    for number in range(2):
        pair.step(number)
        with torch.no_grad():
            torch.testing.assert_close(elsewhere(x), pair.eager(x), rtol=1e-4, atol=1e-4)


def test_writes_through_memory_are_sent(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    pair = Pair(backend, "sgd")
    pair.step(0)
    views = [model[0].weight.data for model in (pair.model, pair.eager)]
    arrays = [model[3].weight.detach().numpy() for model in (pair.model, pair.eager)]
    for number in range(1, 4):
        for view in views:
            view[5] += 0.5
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-4)
    for one, other in zip(*arrays):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)
    del views, view, arrays, one, other
    pair.step(4)
    traffic.clear()
    pair.step(5)
    assert (traffic.uploads, traffic.downloads) == (0, 0)
    pair.check()


def test_parameters_changed_here_are_sent(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    pair.step(0)
    with torch.no_grad():
        for model in (pair.model, pair.eager):
            model[0].weight[2].mul_(0.5)
            nn.init.constant_(model[3].bias, 0.25)
            model[3].weight.data = model[3].weight.data * 2
    for number in range(1, 3):
        seen, expected = pair.step(number)
        assert seen == pytest.approx(expected, rel=1e-4)
    pair.check()


def test_parameters_outlive_their_optimizer_and_backend(client: opserve.Client) -> None:
    pair = Pair(opserve.torch.backend(client, strict=True))
    for number in range(2):
        pair.step(number)
    pair.optimizer = pair.run = None
    torch._dynamo.reset()
    gc.collect()
    pair.check()
