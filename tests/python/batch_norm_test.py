"""Buffers that a graph changes, as batch norm's running statistics, stay on the pool."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
import opserve
import opserve.torch
import pytest
import torch
from optim_helpers import Traffic, backend, fresh, traffic  # noqa: F401
from torch import nn
from torch.nn import functional as F
from torch_helpers import is_torch_2_4
from torch_models import CASES, Cnn

optim = opserve.torch.optim


class Pair:
    """A network with batch norm on the pool and in eager torch."""

    def __init__(self, backend: opserve.torch.Backend) -> None:
        self.model: Any = Cnn()
        self.eager: Any = copy.deepcopy(self.model)
        self.run = torch.compile(self.model, backend=backend)
        self.optimizers = [
            optim.SGD(self.model.parameters(), lr=0.05, backend=backend),
            torch.optim.SGD(self.eager.parameters(), lr=0.05),
        ]

    @property
    def norms(self) -> list[Any]:
        return [self.model.features[1], self.eager.features[1]]

    def step(self, number: int) -> None:
        """A step of both; their losses are equal."""
        x, classes = CASES["cnn"].batch(number)
        losses = []
        for run, optimizer in zip((self.run, self.eager), self.optimizers):
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), classes)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)

    def evaluate(self, number: int) -> None:
        x, _ = CASES["cnn"].batch(number)
        for one in (self.model, self.eager):
            one.eval()
        with torch.no_grad():
            torch.testing.assert_close(self.run(x), self.eager(x), rtol=1e-4, atol=1e-5)
        for one in (self.model, self.eager):
            one.train()

    def check(self) -> None:
        theirs = dict(self.eager.named_buffers())
        for name, one in self.model.named_buffers():
            torch.testing.assert_close(
                one.clone(), theirs[name], rtol=1e-4, atol=1e-6, msg=name
            )


def test_trainings_and_evaluations_take_turns(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    pair = Pair(backend)
    for number in range(3):
        pair.step(2 * number)
        pair.step(2 * number + 1)
        pair.evaluate(50 + number)
        if number == 0:
            traffic.clear()
    assert (traffic.uploads, traffic.downloads) == (0, 0)
    assert len(backend.plans) == 3  # of the training's two graphs, and of the evaluation
    pair.check()
    assert int(pair.model.features[1].num_batches_tracked) == 6
    assert traffic.downloads == 6
    pair.check()
    assert traffic.downloads == 6  # the elements are here now
    pair.step(10)
    pair.evaluate(60)
    assert traffic.uploads == 0


def test_a_second_step_sends_its_batch_and_labels_alone(
    backend: opserve.torch.Backend, traffic: Traffic
) -> None:
    model = nn.Sequential(
        nn.Conv2d(64, 4096, 1), nn.BatchNorm2d(4096), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    run = torch.compile(lambda x, c: F.cross_entropy(model(x), c), backend=backend)
    optimizer = optim.SGD(model.parameters(), lr=0.1, backend=backend)
    x, classes = torch.randn(8, 64, 4, 4), torch.randint(4096, (8,))
    statistics = sum(one.nbytes for one in model.buffers())

    def step() -> float:
        traffic.clear()
        optimizer.zero_grad()
        loss = run(x, classes)
        loss.backward()
        optimizer.step()
        seen: float = loss.item()
        return seen

    # Prepares the programs of the steps after them, in which the forward pass goes ahead of the rest.
    seen = [step() for _ in range(5)]
    for _ in range(2):
        seen.append(step())
        # The batch and the labels; what is beyond them is a few handles of 16 bytes.
        assert 0 < traffic.sent - x.nbytes - classes.nbytes < 2048 < statistics / 10
        assert traffic.received < 2048
        assert (traffic.uploads, traffic.downloads) == (0, 0)
    assert seen == sorted(seen, reverse=True)
    assert model[1].num_batches_tracked.item() == 7


def _saved(tensor: torch.Tensor) -> torch.Tensor:
    file = io.BytesIO()
    torch.save({"one": tensor}, file)
    file.seek(0)
    loaded: torch.Tensor = torch.load(file)["one"]
    return loaded


READS: dict[str, Callable[[Any], Any]] = {
    "state_dict": lambda m: m.state_dict()["running_mean"].clone(),
    "kept variables": lambda m: m.state_dict(keep_vars=True)["running_mean"] + 0,
    "numpy": lambda m: torch.from_numpy(m.running_mean.numpy().copy()),
    "array": lambda m: torch.from_numpy(np.array(m.running_mean)),
    "print": lambda m: repr(m.running_mean)[:30],
    "tolist": lambda m: m.running_mean.tolist(),
    "item": lambda m: m.running_mean[3].item(),
    "function": lambda m: torch.sqrt(m.running_var) + m.running_mean,
    "list": lambda m: torch.stack([m.running_mean, m.running_var]),
    "deepcopy": lambda m: copy.deepcopy(m.running_mean),
    "copy of the model": lambda m: copy.deepcopy(m).running_mean,
    "pickle": lambda m: pickle.loads(pickle.dumps(m.running_mean)),
    "save": lambda m: _saved(m.running_mean),
    "count": lambda m: int(m.num_batches_tracked),
    "evaluation": lambda m: F.batch_norm(torch.ones(2, 8), m.running_mean, m.running_var),
}


@pytest.mark.parametrize("how", READS)
def test_a_read_sees_the_newest_statistics(backend: opserve.torch.Backend, how: str) -> None:
    pair = Pair(backend)
    for number in range(2):
        pair.step(number)
        seen, expected = (READS[how](norm) for norm in pair.norms)
        if isinstance(seen, str):
            assert seen == expected
        elif not isinstance(seen, torch.Tensor):
            assert seen == pytest.approx(expected, rel=1e-4, abs=1e-6)
        else:
            assert type(seen) is torch.Tensor
            torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-6)


def _load(norm: Any) -> None:
    state = {name: one.clone() for name, one in norm.state_dict().items()}
    state["running_mean"] += 1
    norm.load_state_dict(state)


def _train_here(norm: Any) -> None:
    norm(torch.linspace(-1, 2, 2 * 8 * 4).view(2, 8, 2, 2))


WRITES: dict[str, Callable[[Any], Any]] = {
    "fill": lambda m: m.running_mean.fill_(0.5),
    "reset": lambda m: m.reset_running_stats(),
    "index": lambda m: m.running_var.__setitem__(slice(2, 4), 3.0),
    "data": lambda m: m.running_mean.data.add_(1),
    "numpy": lambda m: m.running_mean.numpy().__setitem__(1, 7.0),
    "load": _load,
    "training here": _train_here,
    "another tensor": lambda m: setattr(m, "running_mean", m.running_mean * 2),
}


@pytest.mark.parametrize("how", WRITES)
def test_what_is_written_here_is_sent(backend: opserve.torch.Backend, how: str) -> None:
    if how == "another tensor" and is_torch_2_4:
        pytest.skip("graphs of torch 2.4 go on with the buffers that they were compiled for")
    pair = Pair(backend)
    pair.step(0)
    for number in range(1, 3):
        for norm in pair.norms:
            WRITES[how](norm)
        pair.evaluate(50 + number)
        pair.step(number)
        pair.check()


def test_training_here_is_seen_by_an_evaluation_on_the_pool(
    backend: opserve.torch.Backend,
) -> None:
    norm = nn.BatchNorm2d(8).eval()
    run = torch.compile(norm, backend=backend)
    x = torch.randn(2, 8, 3, 3)
    with torch.no_grad():
        run(x)
        norm.train()
        _train_here(norm)  # torch counts no new version
        norm.eval()
        torch.testing.assert_close(run(x), norm(x), rtol=1e-4, atol=1e-5)


def test_a_deleted_model_leaves_nothing_behind(start_daemon: Callable[..., Any]) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True)
        pair: Optional[Pair] = Pair(backend)
        assert pair is not None
        for number in range(2):
            pair.step(number)
        pair.evaluate(50)
        pair.optimizers[0].zero_grad()

        def held() -> int:
            backend.residents().sweep()
            return sum(one.resident_tensors for one in client.server_status().devices)

        assert held() == len([*pair.model.parameters(), *pair.model.buffers()])
        pair = None
        torch._dynamo.reset()
        gc.collect()
        assert held() == 0


def test_several_forward_passes_before_their_backward_passes(
    backend: opserve.torch.Backend,
) -> None:
    pair = Pair(backend)
    batches = [CASES["cnn"].batch(number) for number in range(3)]
    for run in (pair.run, pair.eager):
        losses = [F.cross_entropy(run(x), classes) for x, classes in batches]
        for loss in reversed(losses):
            loss.backward()
    theirs = dict(pair.eager.named_parameters())
    for name, one in pair.model.named_parameters():
        torch.testing.assert_close(
            one.grad + 0, theirs[name].grad, rtol=1e-3, atol=1e-4, msg=name
        )
    pair.check()


def test_steps_on_the_pool_and_here_take_turns(backend: opserve.torch.Backend) -> None:
    pair = Pair(backend)
    on_the_pool = pair.run
    for number in range(6):
        pair.run = pair.model if number % 3 == 1 else on_the_pool
        pair.step(number)
    pair.check()


def test_statistics_that_an_evaluations_gradient_needs_may_not_change(
    backend: opserve.torch.Backend,
) -> None:
    norm = nn.BatchNorm1d(4)
    eager = copy.deepcopy(norm)
    run = torch.compile(norm, backend=backend)
    x = torch.randn(6, 4, requires_grad=True)

    def loss(model: Any, evaluates: bool) -> torch.Tensor:
        norm.train(not evaluates)
        eager.train(not evaluates)
        total: torch.Tensor = model(x).square().sum()
        return total

    for _ in range(2):
        loss(run, False), loss(eager, False)
        [gradient] = torch.autograd.grad(loss(run, True), x)
        [expected] = torch.autograd.grad(loss(eager, True), x)
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-5)
    before = loss(run, True)
    loss(run, False)
    with pytest.raises(RuntimeError, match=r"buffer \[4\] .* changed on the pool"):
        before.backward()


class Around(nn.Module):
    """Batch norm between nodes that the pool lacks, and a buffer of which old values are used."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.special.bessel_j0(x)
        y = self.norm(x)
        y = torch.special.bessel_j0(y) + self.last
        self.last.copy_(x.detach().mean(0))
        return y


def test_graphs_in_several_programs_change_buffers_once(
    client: opserve.Client, traffic: Traffic
) -> None:
    model = Around()
    eager = copy.deepcopy(model)
    with pytest.warns(opserve.torch.LocalNodesWarning):
        run = torch.compile(model, backend=opserve.torch.backend(client))
        for number in range(4):
            x = torch.randn(6, 4)
            seen, expected = run(x), eager(x)
            torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-5)
            if number == 0:
                traffic.clear()
    assert traffic.uploads == 0
    theirs = dict(eager.named_buffers())
    for name, one in model.named_buffers():
        torch.testing.assert_close(one.clone(), theirs[name], rtol=1e-4, atol=1e-6)


class Cache(nn.Module):
    """Changes a part of one buffer and swaps two others."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(5, 3))
        self.register_buffer("one", torch.ones(3))
        self.register_buffer("other", torch.full((3,), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows[1:3] = x
        before = self.one.clone()
        self.one.copy_(self.other)
        self.other.copy_(before)
        return self.rows.sum(0) + self.one * x.sum()


@pytest.mark.parametrize("gradients", [False, True])
def test_any_buffer_may_change(
    backend: opserve.torch.Backend, traffic: Traffic, gradients: bool
) -> None:
    model = Cache()
    eager = copy.deepcopy(model)
    run = torch.compile(model, backend=backend)
    with torch.set_grad_enabled(gradients):
        for number in range(3):
            x = torch.randn(2, 3)
            torch.testing.assert_close(run(x), eager(x))
            if number == 0:
                traffic.clear()
    assert traffic.uploads == 0
    theirs = dict(eager.named_buffers())
    for name, one in model.named_buffers():
        torch.testing.assert_close(one.clone(), theirs[name], msg=name)


def test_an_input_that_is_changed_is_changed_here(backend: opserve.torch.Backend) -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2).add_(y)
        return x.sum() + y

    x, y = torch.randn(4, 5).T, torch.randn(5, 4)
    given, expected = x.clone(), x.clone()
    for _ in range(2):
        torch.testing.assert_close(torch.compile(f, backend=backend)(given, y), f(expected, y))
        torch.testing.assert_close(given, expected)


def test_a_batch_in_shared_memory_changes_statistics(daemon: Any) -> None:
    with opserve.Client(daemon.target) as client:
        norm = nn.BatchNorm1d(4)
        eager = copy.deepcopy(norm)
        run = torch.compile(norm, backend=opserve.torch.backend(client, strict=True))
        with client.create_region(1 << 16) as region:
            x = torch.from_numpy(region.empty((6, 4), np.float32))
            for _ in range(2):
                x.copy_(torch.randn(6, 4))
                torch.testing.assert_close(run(x), eager(x), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(norm.running_var.clone(), eager.running_var)


def test_lost_statistics_are_an_error_that_says_so(start_daemon: Callable[..., Any]) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        norm = nn.BatchNorm1d(4)
        run = torch.compile(norm, backend=opserve.torch.backend(client, strict=True))
        run(torch.randn(6, 4))
        daemon.stop()
        daemon.start()
        with pytest.raises(opserve.TensorLostError, match="3 parameters and buffers"):
            run(torch.randn(6, 4))


@pytest.mark.parametrize("tool", ["explain", "compare"])
def test_tools_change_no_statistics(client: opserve.Client, tool: str) -> None:
    model = Cnn()
    before = copy.deepcopy(model.state_dict())
    x, _ = CASES["cnn"].batch(0)
    if tool == "explain":
        told = opserve.torch.explain(model, x)
        assert told.graphs[0].bytes_down == 4 * 10 * len(x)
    else:
        assert opserve.torch.compare(model, x, client=client).differences == ()
    for name, one in model.state_dict().items():
        assert torch.equal(one, before[name]), name
