"""checkpoint_every: a training whose daemon is lost goes on, with the same losses."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import grpc
import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from integration.await_true import await_true
from opserve import errors
from opserve._retry import Attempts, Repeat, RetryPolicy
from opserve.torch import _checkpoints
from optim_helpers import fresh, take_calls  # noqa: F401
from torch.nn import functional as F
from torch_models import CASES, Mlp

STEPS = 7


def train(backend: opserve.torch.Backend, parts: int = 1) -> list[float]:
    """Losses and parameters of a training with dropout, clipping, a schedule and `parts` batches
    a step."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Mlp(dropout=0.2)
    run = torch.compile(model, backend=backend)
    optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-2, backend=backend)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        for part in range(parts):
            x, classes = CASES["mlp"].batch(parts * step + part)
            loss = F.cross_entropy(run(x), classes)
            loss.backward()
            losses.append(loss.item())
        opserve.torch.optim.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    for one in model.parameters():
        losses += one.flatten().tolist()
    return losses


class Losing:
    """Restarts the daemon before or after chosen calls of a client."""

    def __init__(self, client: opserve.Client, daemon: Any, chosen: set[int], when: str) -> None:
        self.calls = 0
        self._daemon = daemon
        self._chosen = chosen
        self._when = when
        self._real = take_calls(client, self._call)

    def _call(self, method: str, *args: Any) -> bytes:
        if not method.endswith("/Execute"):
            return self._real(method, *args)
        self.calls += 1
        is_chosen = self.calls in self._chosen
        if is_chosen and self._when == "before":
            self._restart()
        answer = self._real(method, *args)
        if is_chosen and self._when == "after":
            self._restart()
        return answer

    def _restart(self) -> None:
        self._daemon.stop()
        self._daemon.start()


@pytest.fixture(scope="module")
def undisturbed(daemon: Any) -> dict[int, list[float]]:
    with opserve.Client(daemon.target) as client:
        return {
            parts: train(opserve.torch.backend(client, strict=True), parts)
            for parts in (1, 3)
        }


# Forward, backward, clipping and step are four calls; snapshots come after steps 3 and 6. Of two calls
# in a row, the second belongs to the restoration after the first.
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "chosen",
    [{1}, {9}, {10}, {11}, {12}, {13}, {27, 28}, {3, 8, 21}],
    ids=lambda one: "-".join(map(str, sorted(one))),
)
def test_a_lost_daemon_changes_no_loss(
    start_daemon: Callable[..., Any],
    undisturbed: dict[int, list[float]],
    chosen: set[int],
    when: str,
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        losing = Losing(client, daemon, chosen, when)
        backend = opserve.torch.backend(client, strict=True, checkpoint_every=3)

        assert train(backend) == undisturbed[1]

        assert losing.calls > 28
        checkpoints = backend.residents().checkpoints
        assert checkpoints is not None and checkpoints.restored >= 1


@pytest.mark.parametrize("chosen", [{4}, {9}, {15}], ids=str)
def test_gradients_of_several_batches_come_back(
    start_daemon: Callable[..., Any], undisturbed: dict[int, list[float]], chosen: set[int]
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        Losing(client, daemon, chosen, "before")
        backend = opserve.torch.backend(client, strict=True, checkpoint_every=3)
        assert train(backend, 3) == undisturbed[3]


def test_a_full_memory_is_a_reason_for_a_snapshot(
    start_daemon: Callable[..., Any], undisturbed: dict[int, list[float]]
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        Losing(client, daemon, {20}, "before")
        backend = opserve.torch.backend(
            client, strict=True, checkpoint_every=1000, checkpoint_bytes=40_000
        )
        assert train(backend) == undisturbed[1]
        checkpoints = backend.residents().checkpoints
        assert checkpoints is not None and checkpoints._bytes <= 40_000 + 30_000


def test_the_steps_of_an_optimizer_fill_the_memory_too(
    client: opserve.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 1 << 19
    snapshots: list[int] = []
    take = client.snapshot

    def snapshot(tensors: Sequence[Any], **options: Any) -> list[Any]:
        if len(tensors) > 1:
            snapshots.append(len(tensors))
        return take(tensors, **options)

    monkeypatch.setattr(client, "snapshot", snapshot)
    backend = opserve.torch.backend(
        client, strict=True, checkpoint_every=10**6, checkpoint_bytes=most
    )
    # Of many small parameters: the names of a step take more memory than its batch.
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(20)])
    run = torch.compile(model, backend=backend)
    optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-3, backend=backend)

    def step() -> None:
        optimizer.zero_grad()
        run(torch.ones(1, 2)).sum().backward()
        optimizer.step()

    for _ in range(3):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        grown = []
        for _ in range(30):
            step()
            grown.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()

    assert len(snapshots) >= 2
    assert max(grown) < 1.5 * most


@pytest.mark.parametrize("kernel", ["aclnnAddmm", "aclnnApplyAdamWV2"])
def test_a_failed_device_changes_no_loss(
    start_daemon: Callable[..., Any], undisturbed: dict[int, list[float]], kernel: str
) -> None:
    daemon = start_daemon(faults=f"kernel={kernel},nth=9,code=507015")
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True, checkpoint_every=3)
        assert train(backend) == undisturbed[1]
        checkpoints = backend.residents().checkpoints
        assert checkpoints is not None and checkpoints.restored == 1


def lost_device(kernel: str) -> str:
    """The fault of a device that is lost for good at the 9th launch of a kernel."""
    reset = "call=aclrtResetDeviceForce,code=507033,count=all"
    return f"kernel={kernel},nth=9,code=507015,sticky;{reset}"


@pytest.mark.parametrize("kernel", ["aclnnAddmm", "aclnnApplyAdamWV2"])
def test_a_training_goes_on_with_another_device_than_the_lost_one(
    start_daemon: Callable[..., Any], undisturbed: dict[int, list[float]], kernel: str
) -> None:
    daemon = start_daemon(faults=lost_device(kernel))
    with opserve.Client(daemon.target) as client:
        devices: list[int] = []
        upload = client.upload

        def note(*args: Any, **options: Any) -> opserve.ResidentTensor:
            tensor = upload(*args, **options)
            devices.append(tensor.device)
            return tensor

        client.upload = note  # type: ignore[method-assign]
        backend = opserve.torch.backend(client, strict=True, checkpoint_every=3)

        assert train(backend) == undisturbed[1]

        first, last = devices[0], devices[-1]
        assert first != last
        assert {one.device for one in backend.residents().living()} == {last}


def names_of(model: torch.nn.Module) -> str:
    """As errors name its parameters, more than five, when they are lost."""
    named = [f"{name} {list(one.shape)}" for name, one in model.named_parameters()]
    return f"{len(named)} parameters and buffers ({', '.join(named[:5])}, ...)"


def state_of(model: torch.nn.Module) -> str:
    """As errors name the state of its AdamW."""
    count = len(list(model.parameters()))
    return f"optimizer state of {count} parameters (exp_avg, exp_avg_sq)"


ACTIVATIONS = "saved activations of {} that {} not had {}"
ONE_FORWARD = ACTIVATIONS.format("1 forward pass", "has", "its backward pass")
TWO_FORWARDS = ACTIVATIONS.format("2 forward passes", "have", "their backward passes")


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_daemon_that_is_gone_names_what_only_it_had(
    start_daemon: Callable[..., Any], ahead: int
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target, timeout=2) as client:
        backend = opserve.torch.backend(client, strict=True, ahead=ahead)
        model = Mlp()
        run = torch.compile(model, backend=backend)
        optimizer = opserve.torch.optim.AdamW(model.parameters(), backend=backend)
        x, classes = CASES["mlp"].batch(0)

        def step() -> None:
            F.cross_entropy(run(x), classes).backward()
            optimizer.step()
            backend.synchronize()

        step()
        daemon.stop()
        with pytest.raises(opserve.OpserveError) as raised:
            step()
        names = f"; {names_of(model)} and {state_of(model)} have their newest values only there"
        assert raised.value.message.count(names) == 1
        with pytest.raises(opserve.OpserveError) as raised:
            model.layers[0].weight.tolist()
        assert raised.value.message.count(names) == 1


@pytest.mark.parametrize("ahead", [0, 2])
@pytest.mark.parametrize("forwards", [1, 2])
def test_a_daemon_that_is_gone_names_saved_activations(
    start_daemon: Callable[..., Any], ahead: int, forwards: int
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target, timeout=2) as client:
        backend = opserve.torch.backend(client, strict=True, ahead=ahead)
        run = torch.compile(Mlp(), backend=backend)
        x, classes = CASES["mlp"].batch(0)
        losses = [F.cross_entropy(run(x), classes) for _ in range(forwards)]
        backend.synchronize()
        daemon.stop()
        expected = {1: ONE_FORWARD, 2: TWO_FORWARDS}[forwards]
        with pytest.raises(opserve.OpserveError) as raised:
            losses[0].backward()
        assert raised.value.message.endswith(f"; {expected} have their newest values only there")


def test_a_deadline_that_passed_while_the_daemon_was_away_names_saved_activations(
    client: opserve.Client, fresh: None  # noqa: F811
) -> None:
    backend = opserve.torch.backend(client, strict=True)
    run = torch.compile(Mlp(), backend=backend)
    x, classes = CASES["mlp"].batch(0)
    loss = F.cross_entropy(run(x), classes)
    backend.synchronize()

    def call(*_: Any) -> bytes:
        attempts = Attempts(RetryPolicy(opserve.Retry()), 60, Repeat(), lambda error: None)
        away = errors.make_error(grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses")
        late = errors.make_error(grpc.StatusCode.DEADLINE_EXCEEDED, "late")
        assert attempts.wait_after(away) is not None and attempts.wait_after(late) is None
        raise late

    real = take_calls(client, call)
    with pytest.raises(opserve.DeadlineExceededError) as raised:
        loss.backward()
    take_calls(client, real)
    assert raised.value.message.endswith(f"; {ONE_FORWARD} have their newest values only there")


def test_a_lost_device_names_saved_activations(start_daemon: Callable[..., Any]) -> None:
    daemon = start_daemon(faults="kernel=aclnnGeluBackwardV2,nth=2,count=all,code=507015,sticky")
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True)
        run = torch.compile(Mlp(), backend=backend)
        x, classes = CASES["mlp"].batch(0)
        first, second = (F.cross_entropy(run(x), classes) for _ in range(2))
        with pytest.raises(opserve.InternalError) as raised:
            first.backward()
        remedy = "are lost with {} device: run the forward pass again"
        lost = "were made or changed on the pool and " + remedy
        assert raised.value.message.endswith(f"; {TWO_FORWARDS} {lost.format('the')}")
        [saved, *_] = backend.residents().living()

        def is_reset() -> bool:
            try:
                client.renew([saved], 600)
            except opserve.TensorLostError:
                return True
            return False

        await_true(is_reset, "the device is reset")
        with pytest.raises(opserve.TensorLostError) as caught:
            second.backward()
        # The first pass may be tried again, too.
        assert caught.value.message == f"{TWO_FORWARDS} {lost.format('their')}"


@pytest.mark.parametrize("kernel", ["aclnnAddmm", "aclnnGeluBackwardV2"])
def test_a_fault_that_loses_nothing_names_nothing(
    start_daemon: Callable[..., Any], kernel: str
) -> None:
    daemon = start_daemon(faults=f"kernel={kernel},nth=9,code=507015")
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True, ahead=0)
        model = Mlp()
        run = torch.compile(model, backend=backend)
        optimizer = opserve.torch.optim.AdamW(model.parameters(), backend=backend)
        x, classes = CASES["mlp"].batch(0)
        raised = []
        for _ in range(12):
            try:
                F.cross_entropy(run(x), classes).backward()
                optimizer.step()
            except opserve.InternalError as error:
                raised.append(error.message)
        assert len(raised) == 1 and "parameters" not in raised[0]


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_lost_device_names_what_is_lost_without_checkpoints(
    start_daemon: Callable[..., Any], ahead: int
) -> None:
    daemon = start_daemon(faults="kernel=aclnnApplyAdamWV2,nth=40,code=507015,sticky")
    with opserve.Client(daemon.target) as client:
        backend = opserve.torch.backend(client, strict=True, ahead=ahead)
        model = Mlp()
        saved = copy.deepcopy(model.state_dict())
        run = torch.compile(model, backend=backend)

        def step(optimizer: torch.optim.Optimizer) -> float:
            x, classes = CASES["mlp"].batch(0)
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), classes)
            loss.backward()
            optimizer.step()
            return loss.item()

        optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-2, backend=backend)
        losses, raised = [], []
        for _ in range(30):
            try:
                losses.append(step(optimizer))
            except opserve.OpserveError as error:
                raised.append(error)
        assert len(losses) >= 3 and len(raised) >= 10
        first, last = raised[0], raised[-1]
        assert isinstance(first, opserve.InternalError) and first.acl_error == 507015
        assert isinstance(last, opserve.TensorLostError) and last.reason == "tensor_lost"
        names = f"{names_of(model)} and {state_of(model)}"
        assert first.message.endswith(
            f"; {names} were made or changed on the pool and are lost with the device: load a checkpoint "
            "of the model and the optimizer"
        )
        assert last.message.startswith(names)

        # From a checkpoint of the start, on the other device.
        model.load_state_dict(saved)
        optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-2, backend=backend)
        again = [step(optimizer) for _ in range(3)]
        assert again == losses[:3]


def test_replays_leave_nothing_behind(start_daemon: Callable[..., Any]) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        Losing(client, daemon, {11}, "before")
        backend = opserve.torch.backend(client, strict=True, checkpoint_every=3)
        train(backend)
        torch._dynamo.reset()
        residents = backend.residents()
        residents.sweep()
        handles = residents.living()
        status = client.server_status()
        held = sum(one.resident_tensors for one in status.devices)
        assert held == len(handles)


def test_a_wrong_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="checkpoint_every=0; expected 1 or more"):
        opserve.torch.backend(checkpoint_every=0)


def test_a_connection_that_breaks_again_and_again_is_given_time(
    client: opserve.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = opserve.torch.backend(client, strict=True, checkpoint_every=1)
    error = opserve.errors.UnavailableError(
        "lost the connection to the daemon", code=grpc.StatusCode.UNAVAILABLE
    )
    broken = 4
    real = client.upload

    def upload(*args: Any, **options: Any) -> Any:
        nonlocal broken
        broken -= 1
        if broken >= 0:
            raise error
        return real(*args, **options)

    waits: list[float] = []
    monkeypatch.setattr(client, "upload", upload)
    monkeypatch.setattr(_checkpoints.time, "sleep", waits.append)
    x = torch.arange(3.0)
    resident = backend.residents().send(x)

    assert client.download(resident).tolist() == x.tolist()
    assert waits == [0.05, 0.1, 0.2]
