"""Steps of a training that nothing waits for: opserve.torch with a loss inside the graph."""

from __future__ import annotations

import copy
import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

import grpc
import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from opserve import _wire, errors
from optim_helpers import LosingChannel, LosingSessions, fresh, take_calls  # noqa: F401
from torch import nn
from torch.nn import functional as F
from watcher import Watcher

optim = opserve.torch.optim

# Seconds after which a wait has failed.
LIMIT = 20


class Net(nn.Module):
    """With running statistics, which a graph changes."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(20, 32, bias=False)  # the norm would leave it no gradient
        self.norm = nn.BatchNorm1d(32)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.norm(self.first(x)))
        return F.cross_entropy(self.last(self.dropout(hidden)), classes)


def batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(number)
    x = torch.randn(16, 20, generator=random)
    return x, torch.randint(5, (16,), generator=random)


class Training:
    """The same model on the pool and in eager torch, the loss inside the graph."""

    def __init__(self, client: opserve.Client, **options: Any) -> None:
        torch._dynamo.reset()
        torch.manual_seed(0)
        self.backend = opserve.torch.backend(client, strict=True, **options)
        self.model = Net()
        self.eager = copy.deepcopy(self.model)
        self.run = torch.compile(self.model, backend=self.backend)
        self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-2, backend=self.backend)
        self.other = torch.optim.AdamW(self.eager.parameters(), lr=1e-2)
        self.number = 0
        # Prepares programs, and makes the optimizer's state. A loss that is waited for lets the next
        # step go in two requests, so these are not.
        losses = [(self.step(), self.eager_step()) for _ in range(3)]
        self.backend.synchronize()
        for seen, expected in losses:
            assert seen.item() == pytest.approx(expected.item(), rel=1e-4)

    def step(self, parts: int = 1) -> torch.Tensor:
        """On the pool; the loss of the last batch."""
        self.number += 1
        return one_step(self.run, self.optimizer, self.number, parts)

    def eager_step(self, parts: int = 1, number: Optional[int] = None) -> torch.Tensor:
        return one_step(self.eager, self.other, number or self.number, parts)

    def check(self) -> None:
        """Parameters and statistics are those of eager torch."""
        for one, other in zip(self.model.parameters(), self.eager.parameters()):
            torch.testing.assert_close(one.clone(), other, rtol=1e-3, atol=1e-4)
        for one, other in zip(self.model.buffers(), self.eager.buffers()):
            torch.testing.assert_close(one.clone(), other, rtol=1e-3, atol=1e-4)


def one_step(
    run: Callable[..., torch.Tensor], optimizer: Any, number: int, parts: int
) -> torch.Tensor:
    optimizer.zero_grad()
    for part in range(parts):
        loss = run(*batch(10 * number + part))
        loss.backward()
    optimizer.step()
    return loss


def test_another_tensor_with_a_buffers_memory_sees_each_step(client: opserve.Client) -> None:
    training = Training(client)
    alias = training.model.norm.running_mean.detach()
    for _ in range(2):
        training.step()
        training.eager_step()
        training.backend.synchronize()
        torch.testing.assert_close(alias, training.eager.norm.running_mean)
    training.check()


def test_steps_are_replayed_whether_their_losses_are_read_or_not(start_daemon: Any) -> None:
    daemon = start_daemon("--metrics_listen=127.0.0.1:0")
    watcher = Watcher(daemon)

    def replays(training: Training, steps: int, reads: bool) -> float:
        before = watcher.value("opserve_captured_replays_total")
        for _ in range(steps):
            loss = training.step()
            if reads:
                loss.item()
        training.backend.synchronize()
        return watcher.value("opserve_captured_replays_total") - before

    with opserve.Client(daemon.target) as client:
        training = Training(client)
        for reads, requests in ((False, 1), (True, 2), (False, 1), (True, 2)):
            replays(training, 4, reads)  # so that each program has run and was captured
            assert replays(training, 8, reads) == 8 * requests


class Gate:
    """Stands before a client's Execute calls: counts them, holds them back, lets them fail.

    It makes a call when the answer is asked for.
    """

    def __init__(self, client: opserve.Client) -> None:
        self.count = 0
        self.failures: dict[int, Exception] = {}  # by number of the call, from 1 on
        self.holds = threading.Event()  # set when something waits
        self._open = threading.Event()
        self._open.set()
        self._real = take_calls(client, self._call)

    def _call(self, method: str, *arguments: Any) -> bytes:
        if method != _wire.EXECUTE:
            return self._real(method, *arguments)
        if not self._open.is_set():
            self.holds.set()
        assert self._open.wait(LIMIT), "nothing opened the gate"
        self.count += 1
        if self.count in self.failures:
            raise self.failures.pop(self.count)
        return self._real(method, *arguments)

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def own(daemon: Any) -> Iterator[opserve.Client]:
    """A client that a test changes."""
    with opserve.Client(daemon.target) as made:
        yield made


def test_a_step_is_one_request_that_nothing_waits_for(own: opserve.Client) -> None:
    training = Training(own)
    gate = Gate(own)
    gate.close()

    loss = training.step()

    assert gate.count == 0
    gate.open()
    assert loss.item() == pytest.approx(training.eager_step().item(), rel=1e-4)
    assert gate.count == 1
    training.check()


def test_a_loss_that_is_read_waits_for_the_forward_pass_alone(own: opserve.Client) -> None:
    training = Training(own)
    for _ in range(3):  # finds memory for what passes from one request to the other
        assert training.step().item() == pytest.approx(training.eager_step().item(), rel=1e-3)
    training.backend.synchronize()
    gate = Gate(own)
    for number in range(1, 4):
        loss, expected = training.step(), training.eager_step()
        assert loss.item() == pytest.approx(expected.item(), rel=1e-3)
        assert gate.count == 2 * number - 1  # the rest of the step is on its way
    training.check()
    training.step()  # is not read
    training.eager_step()
    training.backend.synchronize()
    gate.count = 0
    training.step()
    training.eager_step()
    training.backend.synchronize()
    assert gate.count == 1
    training.check()


def test_a_forward_pass_that_fails_by_itself_leaves_all_as_before(own: opserve.Client) -> None:
    training = Training(own)
    for _ in range(3):
        assert training.step().item() == pytest.approx(training.eager_step().item(), rel=1e-3)
    training.backend.synchronize()
    gate = Gate(own)
    gate.failures = {1: failure(0)}
    loss = training.step()
    with pytest.raises(opserve.errors.InternalError, match="it failed"):
        loss.item()
    training.backend.synchronize()  # the rest of the step has not run, and is no other error
    training.number = 90
    for _ in range(3):
        assert training.step().item() == pytest.approx(training.eager_step().item(), rel=1e-3)
    training.check()


def test_steps_run_in_order(own: opserve.Client) -> None:
    training = Training(own)
    losses = [training.step() for _ in range(20)]
    expected = [training.eager_step(number=number) for number in range(4, 24)]
    for seen, wanted in zip(losses, expected):
        assert seen.item() == pytest.approx(wanted.item(), rel=1e-3)
    training.check()


def test_each_of_the_steps_ahead_is_one_request(start_daemon: Any) -> None:
    # Slow, so that all of them are on their way at once.
    daemon = start_daemon("--metrics_listen=127.0.0.1:0", faults="kernel=*,slow=1000,count=all")
    watcher = Watcher(daemon)
    with opserve.Client(daemon.target) as client:
        training = Training(client, ahead=4)
        for _ in range(2):  # requests name versions once an answer has told them
            training.step()
            training.backend.synchronize()
        before = watcher.value("opserve_requests_total")
        for _ in range(6):
            training.step()
        training.backend.synchronize()
        assert watcher.value("opserve_requests_total") - before == 6
        assert watcher.value('opserve_requests_total{code="INVALID_ARGUMENT"}') == 0


@pytest.mark.parametrize("ahead", [1, 3])
def test_the_queue_of_steps_is_bounded(own: opserve.Client, ahead: int) -> None:
    training = Training(own, ahead=ahead)
    gate = Gate(own)
    gate.close()
    losses: list[torch.Tensor] = []

    def run() -> None:
        for _ in range(ahead + 3):
            losses.append(training.step())

    thread = threading.Thread(target=run)
    thread.start()
    assert gate.holds.wait(LIMIT)
    asked = len(losses)
    gate.open()
    thread.join(LIMIT)
    assert asked == ahead
    assert len(losses) == ahead + 3
    for number, loss in enumerate(losses, start=4):
        expected = training.eager_step(number=number)
        assert loss.item() == pytest.approx(expected.item(), rel=1e-3)


def failure(invocation: int) -> errors.OpserveError:
    detail = _wire.ErrorDetail(reason="device", operator="Tanh", invocation=invocation)
    return errors.make_error(grpc.StatusCode.INTERNAL, "it failed", detail)


def test_an_error_comes_once_and_leaves_all_as_the_step_before(own: opserve.Client) -> None:
    training = Training(own, ahead=3)
    gate = Gate(own)
    gate.close()
    gate.failures = {2: failure(0)}
    losses = [training.step() for _ in range(3)]  # the second fails, so the daemon refuses the third
    gate.open()

    with pytest.raises(opserve.errors.InternalError, match="it failed") as raised:
        training.backend.synchronize()

    assert "pipeline_test.py, line" in raised.value.message  # the model's line
    assert gate.count == 3
    training.eager_step(number=4)
    assert losses[0].item() == pytest.approx(losses[0].item())
    for loss in losses[1:]:
        with pytest.raises(opserve.errors.InternalError, match="it failed"):
            loss.item()
    steps = {float(one["step"]) for one in training.optimizer.state.values()}
    assert steps == {4.0}
    for number in (20, 21):
        training.number = number - 1
        seen = training.step()
        expected = training.eager_step(number=number)
        assert seen.item() == pytest.approx(expected.item(), rel=1e-3)
    training.check()


def test_an_error_comes_when_its_loss_is_read(own: opserve.Client) -> None:
    training = Training(own)
    gate = Gate(own)
    gate.failures = {1: failure(0)}
    loss = training.step()
    with pytest.raises(opserve.errors.InternalError, match="it failed"):
        loss.item()
    training.number = 30
    training.step()
    training.eager_step(number=31)
    training.check()


def test_gradients_of_a_failed_step_are_not_those_of_the_one_before(
    own: opserve.Client,
) -> None:
    training = Training(own)
    gate = Gate(own)
    gate.failures = {1: failure(0)}
    training.step()
    with pytest.raises(opserve.errors.InternalError, match="it failed"):
        training.backend.synchronize()
    with pytest.raises(opserve.errors.InternalError, match="it failed"):
        training.model.last.bias.grad.tolist()  # type: ignore[union-attr]


def test_a_gradient_that_the_caller_keeps_is_not_overwritten(own: opserve.Client) -> None:
    training = Training(own)
    kept, expected = [], []
    for _ in range(4):
        training.step()
        kept.append([one.grad for one in training.model.parameters()])
        training.eager_step()
        expected.append([one.grad.clone() for one in training.eager.parameters()])
    for ours, theirs in zip(kept, expected):
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one.clone(), other, rtol=1e-3, atol=1e-5)


@torch._functorch.config.patch(donated_buffer=False)  # else torch refuses it of compiled functions
def test_a_graph_that_the_caller_keeps_can_be_gone_back_again(own: opserve.Client) -> None:
    training = Training(own)
    sides = (
        (training.run, training.model, training.optimizer),
        (training.eager, training.eager, training.other),
    )
    for number in (40, 41, 42):
        for run, model, optimizer in sides:
            optimizer.zero_grad()
            loss = run(*batch(number))
            loss.backward(retain_graph=True)
            loss.backward()
            optimizer.step()
    for one, other in zip(training.model.parameters(), training.eager.parameters()):
        torch.testing.assert_close(one.grad.clone(), other.grad, rtol=1e-3, atol=1e-5)
    training.check()


def test_a_batch_may_be_overwritten_after_the_call(own: opserve.Client) -> None:
    training = Training(own)
    gate = Gate(own)
    gate.close()
    x, classes = batch(50)
    training.optimizer.zero_grad()
    loss = training.run(x, classes)
    x.zero_()
    loss.backward()
    training.optimizer.step()
    gate.open()
    assert loss.item() == pytest.approx(training.eager(*batch(50)).item(), rel=1e-4)


def test_batches_of_one_step_are_one_request(own: opserve.Client) -> None:
    training = Training(own)
    for number in range(2):
        training.step(parts=2)
        training.eager_step(parts=2)
    training.backend.synchronize()
    gate = Gate(own)
    training.step(parts=2)
    training.eager_step(parts=2)
    training.backend.synchronize()
    assert gate.count == 1
    training.check()


READS: dict[str, Callable[[torch.Tensor], float]] = {
    "item": lambda loss: loss.item(),
    "float": lambda loss: float(loss.detach()),
    "tolist": lambda loss: loss.detach().tolist(),
    "numpy": lambda loss: float(loss.detach().numpy()),
    "copy": lambda loss: copy.deepcopy(loss.detach()).item(),
    "product": lambda loss: (loss * 2).item() / 2,
    "sum": lambda loss: (torch.zeros(()) + loss).item(),
    "sum in place": lambda loss: torch.zeros(()).add_(loss.detach()).item(),
    "stack": lambda loss: torch.stack([loss, loss]).mean().item(),
    "format": lambda loss: float(f"{loss:.6f}"),
    "text": lambda loss: float(str(loss.detach())[len("tensor(") : -1]),
}


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_loss_is_read_in_any_way_at_any_time(own: opserve.Client, when: str) -> None:
    training = Training(own)
    for number, (name, read) in enumerate(READS.items(), start=60):
        training.optimizer.zero_grad()
        loss = training.run(*batch(number))
        seen = read(loss) if when == "before" else None
        loss.backward()
        training.optimizer.step()
        seen = read(loss) if seen is None else seen
        training.other.zero_grad()
        expected = training.eager(*batch(number))
        expected.backward()
        training.other.step()
        assert seen == pytest.approx(expected.item(), rel=1e-3), name
    training.check()


def test_a_loss_goes_into_a_graph_that_follows(own: opserve.Client) -> None:
    training = Training(own)

    def function(model: nn.Module) -> Callable[..., torch.Tensor]:
        def two_graphs(x: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
            loss = model(x, classes)
            torch._dynamo.graph_break()
            return loss * 2 + 1

        return two_graphs

    run = torch.compile(function(training.model), backend=training.backend)
    for number in (80, 81):
        seen = one_step(run, training.optimizer, number, 1)
        expected = one_step(function(training.eager), training.other, number, 1)
        assert seen.item() == pytest.approx(expected.item(), rel=1e-3)
    training.check()


def test_a_function_of_the_loss_has_its_gradient(own: opserve.Client) -> None:
    training = Training(own)
    for run, optimizer in (
        (training.run, training.optimizer),
        (training.eager, training.other),
    ):
        optimizer.zero_grad()
        (run(*batch(70)) / 4 + 1).backward()
        optimizer.step()
    training.check()


def test_waiting_for_each_program_gives_the_same_bits(own: opserve.Client) -> None:
    def train(ahead: int, reads: bool = False) -> list[float]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        backend = opserve.torch.backend(own, strict=True, ahead=ahead)
        model = Net(dropout=0.3)
        run = torch.compile(model, backend=backend)
        optimizer = optim.Adam(model.parameters(), lr=1e-2, backend=backend)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        losses = []
        for number in range(6):
            losses.append(one_step(run, optimizer, number, 1 + number % 3))
            if reads:
                losses[-1].item()
            schedule.step()
        values = [loss.item() for loss in losses]
        for one in [*model.parameters(), *model.buffers()]:
            values += one.flatten().tolist()
        return values

    assert train(0) == train(2) == train(2, reads=True)


def test_a_daemon_without_room_for_the_whole_runs_its_parts(own: opserve.Client) -> None:
    training = Training(own, ahead=1)
    residents = training.backend.residents()
    residents.programs._programs.clear()
    refused = []

    def call(method: str, message: bytes, *arguments: Any) -> bytes:
        if method == _wire.PREPARE:
            program = _wire.PrepareRequest.FromString(message).program
            names = {one.operator for one in program.invocations}
            if {"Tanh", "ApplyAdamWV2"} <= names:
                refused.append(1)
                detail = _wire.ErrorDetail(reason="tenant_memory")
                raise errors.make_error(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", detail)
        return real(method, message, *arguments)

    real = take_calls(own, call)
    for _ in range(4):
        for parts in (1, 2):
            seen, expected = training.step(parts), training.eager_step(parts)
            assert seen.item() == pytest.approx(expected.item(), rel=1e-3)
    assert refused
    training.check()
    held = len(residents.living())
    residents.sweep()
    training.optimizer.zero_grad()
    residents.sweep()
    assert len(residents.living()) < held


def test_a_lost_daemon_is_an_error_and_a_checkpoint_mends_it(
    start_daemon: Callable[..., Any],
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        training = Training(client)
        saved = copy.deepcopy((training.model.state_dict(), training.optimizer.state_dict()))
        eager = copy.deepcopy((training.eager.state_dict(), training.other.state_dict()))
        gate = Gate(client)
        gate.close()
        loss = training.step()
        daemon.stop()
        daemon.start()
        gate.open()
        with pytest.raises(opserve.errors.TensorLostError, match=r"parameters and buffers \("):
            training.backend.synchronize()
        with pytest.raises(opserve.OpserveError):
            loss.item()
        training.optimizer.zero_grad()
        training.model.load_state_dict(saved[0])
        training.optimizer.load_state_dict(saved[1])
        training.eager.load_state_dict(eager[0])
        training.other.load_state_dict(eager[1])
        for _ in range(3):
            seen, expected = training.step(), training.eager_step()
            assert seen.item() == pytest.approx(expected.item(), rel=1e-3)
        training.check()


@pytest.mark.parametrize("way", ["call", "session"])
def test_a_step_whose_answer_is_lost_is_not_run_twice(
    own: opserve.Client, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    training = Training(own)
    channel = LosingChannel(own._connect(), _wire.EXECUTE)
    assert own._sessions is not None
    sessions = LosingSessions(own._sessions)
    with monkeypatch.context() as patch:
        if way == "call":
            patch.setattr(own, "_sessions", None)
            patch.setattr(own, "_connect", lambda: channel)
        else:
            patch.setattr(own, "_sessions", sessions)
        loss = training.step()
        assert loss.item() == pytest.approx(training.eager_step().item(), rel=1e-4)
    assert (channel.lost, sessions.lost) == (([_wire.EXECUTE], 0) if way == "call" else ([], 1))
    training.step()
    training.eager_step()
    training.check()


def test_a_backend_that_is_gone_leaves_nothing_on_the_pool(
    start_daemon: Callable[..., Any],
) -> None:
    daemon = start_daemon()
    with opserve.Client(daemon.target) as client:
        training = Training(client)
        training.step()
        training.backend.synchronize()
        residents = training.backend.residents()
        assert client.server_status().resident_tensors > 0
        del training
        torch._dynamo.reset()
        gc.collect()
        residents.sweep()
        alive = weakref.ref(residents)
        del residents
        gc.collect()
        assert alive() is None
        assert client.server_status().resident_tensors == 0


def test_a_forked_child_is_told_that_it_cannot_wait(own: opserve.Client) -> None:
    training = Training(own)
    gate = Gate(own)
    gate.close()
    loss = training.step()
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        try:
            loss.item()
        except opserve.errors.ClosedError:
            os._exit(0)
        os._exit(1)
    gate.open()
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert loss.item() == pytest.approx(training.eager_step().item(), rel=1e-4)


def test_threads_train_models_of_their_own(own: opserve.Client) -> None:
    backend = opserve.torch.backend(own, strict=True)
    failures: list[BaseException] = []
    trainings = []
    for seed in range(2):
        torch.manual_seed(seed)
        model = Net()
        trainings.append((model, copy.deepcopy(model)))

    def train(model: nn.Module, run: Any, optimizer: Any) -> None:
        try:
            for number in range(8):
                one_step(run, optimizer, number, 1)
        except BaseException as error:  # noqa: BLE001  (told below)
            failures.append(error)

    threads = []
    for model, _ in trainings:
        run = torch.compile(model, backend=backend)
        optimizer = optim.AdamW(model.parameters(), lr=1e-2, backend=backend)
        one_step(run, optimizer, 0, 1).item()  # torch compiles in one thread at a time
        threads.append(threading.Thread(target=train, args=(model, run, optimizer)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert not failures
    for model, eager in trainings:
        other = torch.optim.AdamW(eager.parameters(), lr=1e-2)
        one_step(eager, other, 0, 1)
        train(eager, eager, other)
        for one, expected in zip(model.parameters(), eager.parameters()):
            torch.testing.assert_close(one.clone(), expected, rtol=1e-3, atol=1e-4)


def test_an_optimizer_takes_the_backend_of_its_parameters(
    own: opserve.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("OPSERVE_TARGET", f"unix:{tmp_path}/nowhere")
    backend = opserve.torch.backend(own, strict=True)
    model = Net()
    eager = copy.deepcopy(model)
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    run = torch.compile(model, backend=backend)
    other = torch.optim.AdamW(eager.parameters(), lr=1e-2)
    for number in range(3):
        one_step(run, optimizer, number, 1)
        one_step(eager, other, number, 1)
    assert optimizer._backend() is backend
    for one, expected in zip(model.parameters(), eager.parameters()):
        torch.testing.assert_close(one.clone(), expected, rtol=1e-3, atol=1e-4)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="ahead=-1; expected 0 or more"):
        opserve.torch.backend(ahead=-1)
