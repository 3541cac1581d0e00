"""What keeps tensors and programs on the pool, and what a backend gives back, by itself."""

from __future__ import annotations

import gc
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from opserve import _wire, errors
from optim_helpers import fresh  # noqa: F401
from torch import nn
from watcher import Watcher

optim = opserve.torch.optim

# Seconds after which a wait has failed.
LIMIT = 60

# In seconds; a renewal comes after each third.
LEASE = 6.0


class Renewals:
    """The renewals of a client, of which the first ones fail.

    Attributes:
        done: handles of each call that succeeded.
    """

    def __init__(self, client: opserve.Client, failures: int = 0) -> None:
        self.done: queue.Queue[set[bytes]] = queue.Queue()
        self.failures = failures
        self._real = client.renew
        client.renew = self._renew  # type: ignore[method-assign]

    def _renew(self, tensors: Sequence[opserve.ResidentTensor], lease: float = 0) -> Any:
        if self.failures > 0:
            self.failures -= 1
            raise errors.UnavailableError("no daemon", code=None)
        ends = self._real(tensors, lease)
        self.done.put({one.handle for one in tensors})
        return ends

    def await_all(self, handles: set[bytes]) -> None:
        """Waits until each of the tensors was renewed."""
        while handles:
            handles = handles - self.done.get(timeout=LIMIT)


def train(run: Callable[..., Any], optimizer: torch.optim.Optimizer, steps: range) -> list[float]:
    losses = []
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        loss = run(torch.randn(8, 20)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def one_model(backend: opserve.torch.Backend) -> tuple[nn.Module, Any, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 5))
    run = torch.compile(model, backend=backend)
    return model, run, optim.SGD(model.parameters(), lr=0.1, momentum=0.9, backend=backend)


@pytest.fixture
def own(daemon: Any) -> Iterator[opserve.Client]:
    """A client that no other test's backend renews leases by."""
    with opserve.Client(daemon.target) as client:
        yield client


@pytest.fixture(scope="module")
def undisturbed(client: opserve.Client) -> list[float]:
    _, run, optimizer = one_model(opserve.torch.backend(client, strict=True))
    losses = train(run, optimizer, range(4))
    torch._dynamo.reset()
    return losses


def test_a_released_tensor_leaves_the_leases_of_the_others(
    own: opserve.Client, undisturbed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads: list[opserve.ResidentTensor] = []
    real = own.upload

    def upload(*args: Any, **options: Any) -> opserve.ResidentTensor:
        uploads.append(real(*args, **options))
        return uploads[-1]

    monkeypatch.setattr(own, "upload", upload)
    backend = opserve.torch.backend(own, strict=True, lease=LEASE)
    other = nn.Linear(3, 2)
    torch.compile(other, backend=backend)(torch.randn(4, 3))
    lost = list(uploads)
    model, run, optimizer = one_model(backend)
    losses = train(run, optimizer, range(2))
    needed = {one.handle for one in uploads[len(lost) :]}
    assert len(lost) == 2 and len(needed) >= 4

    assert own.release(lost[:1]) == 1
    renewals = Renewals(own)

    renewals.await_all(needed | {lost[1].handle})
    assert losses + train(run, optimizer, range(2, 4)) == undisturbed


def test_a_renewal_that_fails_is_made_again_before_the_lease_ends(
    start_daemon: Callable[..., Any], undisturbed: list[float]
) -> None:
    daemon = start_daemon("--resident_grace=0s")
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True, lease=LEASE)
        model, run, optimizer = one_model(backend)
        losses = train(run, optimizer, range(2))

        renewals = Renewals(client, failures=4)

        assert renewals.done.get(timeout=LIMIT)
        assert renewals.failures == 0
        assert losses + train(run, optimizer, range(2, 4)) == undisturbed


@pytest.mark.parametrize("ends", ["client", "backend"])
def test_the_thread_of_the_leases_ends_with(daemon: Any, ends: str) -> None:
    before = set(threading.enumerate())
    client = opserve.Client(daemon.target)
    backend = opserve.torch.backend(client, strict=True)
    run = torch.compile(nn.Linear(3, 2), backend=backend)
    run(torch.randn(4, 3))
    [thread] = [
        one
        for one in threading.enumerate()
        if one not in before and one.name == "opserve-leases"
    ]

    if ends == "client":
        client.close()
    else:
        del backend, run
        torch._dynamo.reset()
        gc.collect()

    thread.join(LIMIT)
    assert not thread.is_alive()
    client.close()


# torch may keep graphs without their models.
@pytest.mark.parametrize("is_reset", [True, False], ids=["reset", "kept"])
@pytest.mark.parametrize("ahead", [0, 2])
def test_a_deleted_model_leaves_nothing_with_the_daemon(
    start_daemon: Callable[..., Any], undisturbed: list[float], ahead: int, is_reset: bool
) -> None:
    daemon = start_daemon("--metrics_listen=127.0.0.1:0")
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True, ahead=ahead)
        model, run, optimizer = one_model(backend)
        train(run, optimizer, range(4))
        status = client.server_status()
        watcher = Watcher(daemon)
        memory = 'opserve_tenant_memory_bytes{kind="hbm"}'
        assert watcher.value(memory) > 0
        assert status.resident_tensors > 0 and status.prepared_programs > 0
        assert len(backend.plans) == 2

        del model, run, optimizer
        if is_reset:
            torch._dynamo.reset()
        gc.collect()

        watcher.await_sum([memory, "opserve_prepared_programs"], 0)
        status = client.server_status()
        assert (status.resident_tensors, status.prepared_programs) == (0, 0)
        if is_reset:
            assert len(backend.plans) == 0
        else:  # a model of the same kind finds them
            _, run, optimizer = one_model(backend)
            assert train(run, optimizer, range(4)) == undisturbed
            assert len(backend.plans) == 2


def test_a_model_goes_on_when_another_one_has_gone(
    own: opserve.Client, undisturbed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opserve.torch.backend(own, strict=True)
    model, run, optimizer = one_model(backend)
    losses = train(run, optimizer, range(2))
    other = torch.compile(nn.Linear(20, 5), backend=backend)
    other(torch.randn(4, 20))
    told = threading.Event()
    real = own._call

    def call(method: str, *args: Any) -> bytes:
        answer = real(method, *args)
        if method == _wire.RELEASE_PROGRAMS:
            told.set()
        return answer

    monkeypatch.setattr(own, "_call", call)

    del other
    torch._dynamo.reset()
    gc.collect()

    assert told.wait(LIMIT)
    assert losses + train(run, optimizer, range(2, 4)) == undisturbed


def test_a_graph_keeps_the_plans_of_its_last_shapes(
    own: opserve.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[opserve.Program] = []
    real = own.prepare

    def prepare(program: opserve.Program, *args: Any, **options: Any) -> Any:
        prepared.append(program)
        return real(program, *args, **options)

    monkeypatch.setattr(own, "prepare", prepare)
    backend = opserve.torch.backend(own, strict=True)
    run = torch.compile(lambda x: torch.tanh(x) * 2, backend=backend, dynamic=True)
    inputs = [torch.randn(rows, 3) for rows in range(2, 72)]

    for x in inputs:
        torch.testing.assert_close(run(x), torch.tanh(x) * 2)
    gc.collect()

    assert len(prepared) == 70
    assert len(backend.plans) == 64
    run(inputs[-1])
    assert len(prepared) == 70
    torch.testing.assert_close(run(inputs[0]), torch.tanh(inputs[0]) * 2)
    assert len(prepared) == 71


def test_freed_tensors_are_released_together(
    own: opserve.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[int] = []
    real = own.release

    def release(tensors: Sequence[opserve.ResidentTensor], **options: Any) -> int:
        released.append(len(tensors))
        return real(tensors, **options)

    monkeypatch.setattr(own, "release", release)
    backend = opserve.torch.backend(own, strict=True)
    layers = [one for _ in range(20) for one in (nn.Linear(8, 8), nn.Tanh())]
    run = torch.compile(nn.Sequential(*layers), backend=backend)
    steps = 4
    for _ in range(steps):
        run(torch.randn(4, 8)).sum().backward()
        gc.collect()

    assert max(released) >= 20  # what one backward pass needed
    assert len(released) <= 2 * steps
