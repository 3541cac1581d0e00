"""opserve.torch.explain: what it says before a training against what the training does."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any, Optional

import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from optim_helpers import Traffic, fresh  # noqa: F401
from torch import nn
from torch.nn import functional as F

Tensor = torch.Tensor


def perceptron(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 8)
    )


def test_explain_prints_a_page_that_is_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    told = opserve.torch.explain(perceptron(32), torch.randn(16, 64))

    printed = capsys.readouterr().out
    assert printed == f"{told}\n" == f"{told!r}\n"
    assert "GraphFacts" not in printed and max(map(len, printed.splitlines())) <= 120


def test_explain_prints_nothing_where_the_session_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    opserve.torch.explain(perceptron(32), torch.randn(16, 64))
    assert capsys.readouterr().out == ""


def test_explain_lists_each_program_with_its_nodes_and_inputs() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        x = torch.special.bessel_j0(torch.tanh(x) * y)
        return torch.exp(x + y) - 1

    told = opserve.torch.explain(f, torch.rand(5, 3), torch.rand(3))

    [graph] = told.graphs
    first, second = graph.programs
    assert (first.nodes, second.nodes) == (2, 3)
    assert set(first.sent) == {"float32[5,3]", "float32[3]"}
    assert set(second.sent) == {"float32[5,3]", "float32[3]"}  # the node's result, and y
    assert first.resident == second.resident == ()
    rows = {line[:11]: line for line in str(told).splitlines()}
    assert rows["inference 1"].split()[2:4] == ["2", "2"]
    assert "sent: float32[5,3], float32[3]" in rows["inference 1"]
    assert "inference 2" in rows


def test_explain_tells_inputs_on_the_pool_from_those_that_are_sent() -> None:
    told = opserve.torch.explain(perceptron(32), torch.randn(16, 64))

    forward, backward = told.graphs
    [program] = forward.programs
    assert program.sent == ("float32[16,64]",)
    assert len(program.resident) == 6 and "float32[32,64]" in program.resident
    [program] = backward.programs
    assert program.sent == ("float32[16,8]",)
    assert "6 on the pool; sent: float32[16,64]" in str(told)


def test_explain_counts_constants_of_the_graph() -> None:
    numbers = list(range(3000))
    told = opserve.torch.explain(lambda x: x + torch.tensor(numbers), torch.rand(3000))
    assert told.parameter_bytes == 3000 * 8
    assert told.bytes_up == 3000 * 4


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "none": lambda parameters: None,
    "torch": lambda parameters: torch.optim.Adam(parameters),
    "pool": lambda parameters: opserve.torch.optim.AdamW(parameters),
}


class Step:
    """A step of a training."""

    def __init__(self, client: opserve.Client, model: nn.Module, optimizer: Optional[Any]) -> None:
        self.backend = opserve.torch.backend(client, strict=True)
        self.run = torch.compile(model, backend=self.backend)
        self.model, self.optimizer = model, optimizer

    def __call__(self, x: Tensor, classes: Tensor) -> None:
        self.model.zero_grad()
        F.cross_entropy(self.run(x), classes).backward()
        if self.optimizer is not None:
            self.optimizer.step()
        self.backend.synchronize()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_moves_the_bytes_that_explain_tells(
    client: opserve.Client, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    model = perceptron(128)
    optimizer = OPTIMIZERS[name](model.parameters())
    x, classes = torch.randn(32, 64), torch.randint(8, (32,))
    told = opserve.torch.explain(model, x, optimizer=optimizer)
    step = Step(client, model, optimizer)
    step(x, classes)
    step(x, classes)
    uploaded: list[int] = []
    real = client.upload

    def upload(tensor: Any, **options: Any) -> Any:
        uploaded.append(tensor.nbytes)
        return real(tensor, **options)

    monkeypatch.setattr(client, "upload", upload)
    seen = Traffic(client, monkeypatch)
    step(x, classes)

    # Beside tensors there are handles and programs' numbers, a few for each parameter.
    assert 0 <= seen.sent + sum(uploaded) - told.bytes_up < 4096
    assert 0 <= seen.received - told.bytes_down < 4096
    parameters = sum(one.nbytes for one in model.parameters())
    assert sum(uploaded) == told.changed_bytes == (parameters if name == "torch" else 0)


def peak_of(log: pathlib.Path) -> int:
    """The most bytes that were lent at one time, as a daemon's --allocation_log of a device says."""
    lent: list[int] = []
    now = most = 0
    for line in log.read_text().splitlines():
        kind, *fields = line.split()
        if kind in ("region", "retired", "idle", "merged"):
            lent.append(int(fields[2] if kind == "region" else fields[0]))
            now += lent[-1]
            most = max(most, now)
        elif kind == "return":
            now -= lent[int(fields[0]) - 1]
        assert kind != "full"
    return most


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("rows", [64, 8192], ids=["parameters", "activations"])
def test_the_daemons_peak_of_memory_is_what_explain_tells(
    start_daemon: Any, tmp_path: pathlib.Path, name: str, rows: int
) -> None:
    model = perceptron(2048 if rows == 64 else 512)
    optimizer = OPTIMIZERS[name](model.parameters())
    x, classes = torch.randn(rows, 64), torch.randint(8, (rows,))
    told = opserve.torch.explain(model, x, optimizer=optimizer)
    daemon = start_daemon(f"--allocation_log={tmp_path}/log")
    with opserve.Client(daemon.target) as client:
        step = Step(client, model, optimizer)
        for _ in range(3):
            step(x, classes)
        daemon.stop()
    peak = max(map(peak_of, tmp_path.iterdir()))
    # explain leaves out what operators need to work. What the step before has kept, and its
    # gradients, are released together with the next tensors that are free: before the peak, or
    # after it.
    late = sum(one.nbytes for one in model.parameters())
    late += sum(graph.bytes_kept for graph in told.graphs)
    assert told.peak_bytes <= peak < 1.1 * (told.peak_bytes + late)
