"""checkpoint_every: faults at each moment of a training's calls change no loss."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional

import opserve
import opserve.torch
import opserve.torch.optim
import pytest
import torch
from optim_helpers import fresh, take_calls  # noqa: F401
from torch import nn
from torch.nn import functional as F

# When a fault happens: before a call, within its request, before its answer, within its answer,
# after it.
PLACES = ("before", "up", "sent", "down", "after")

# Bytes that pass before a fault within a request, which begins with 100 bytes of headers or more,
# and within an answer.
UP, DOWN = 150, 30


class Proxy:
    """Passes bytes between clients and the Unix socket of a daemon, until a chosen byte."""

    def __init__(self, daemon: Any) -> None:
        self.daemon = daemon
        self.path = f"{daemon.socket}.proxy"
        self._lock = threading.Lock()  # guards all that follows
        self._sockets: list[socket.socket] = []
        self._fault: Optional[tuple[str, int, Callable[[], None]]] = None
        self._is_calm = threading.Event()  # no fault happens now
        self._is_calm.set()
        self._listener: Optional[socket.socket] = None
        self.open()

    def open(self) -> None:
        if os.path.exists(self.path):
            os.unlink(self.path)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Refuses connections from now on, and ends those that there are."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.cut()

    def cut(self) -> None:
        """Ends all connections."""
        with self._lock:
            for one in self._sockets:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # the other side has ended it
            self._sockets.clear()

    def arm(self, direction: str, count: int, fault: Callable[[], None]) -> None:
        """Calls `fault` when `count` further bytes have passed, and one more has come."""
        with self._lock:
            self._fault = (direction, count, fault)

    def disarm(self) -> bool:
        """Whether there was a fault to come. Waits for the end of one that happens now.

        The client may have gone on since the fault's beginning: daemons end before their callers
        of `stop` know it.
        """
        with self._lock:
            was_armed, self._fault = self._fault is not None, None
        assert self._is_calm.wait(120)
        return was_armed

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self.daemon.socket))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._sockets += [client, server]
            for pair in ((client, server, "up"), (server, client, "down")):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        try:
            while data := source.recv(1 << 16):
                count, fault = self._due(direction, len(data))
                try:
                    sink.sendall(data[:count])
                finally:  # also if the other side has gone
                    if fault is not None:
                        self._happen(fault)
        except OSError:
            pass  # the connection has ended
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _happen(self, fault: Callable[[], None]) -> None:
        try:
            fault()
        finally:
            self._is_calm.set()

    def _due(self, direction: str, size: int) -> tuple[int, Optional[Callable[[], None]]]:
        """How many of `size` bytes pass, and the fault after them."""
        with self._lock:
            if self._fault is None or self._fault[0] != direction:
                return size, None
            _, left, fault = self._fault
            if size <= left:
                self._fault = (direction, left - size, fault)
                return size, None
            self._fault = None
            self._is_calm.clear()
            return left, fault


@dataclasses.dataclass(frozen=True)
class Point:
    """A moment for a fault.

    Attributes:
        phase: the kind of call.
        number: which one of this kind in a step, from 1.
        place: one of PLACES.
        then: a further fault, in the recovery from this one.
    """

    phase: str
    number: int
    place: str
    then: Optional[Point] = None


# Calls of a step, in their order, which each have all kinds of faults.
_PHASES = (
    ("upload", 1),  # of the buffer that has changed here
    ("execute", 1),  # the forward pass
    ("execute", 2),  # the backward pass
    ("renew", 1),  # of the leases, which in a longer training comes at any moment
    ("download", 1),  # a gradient
    ("execute", 3),  # clips the gradients
    ("execute", 4),  # the optimizer
    ("snapshot", 1),
    ("download", 2),  # a parameter
    ("release", 1),
)
# Programs are prepared in the first step only.
POINTS = [Point("prepare", 2, "up")] + [
    Point(phase, number, place) for phase, number in _PHASES for place in PLACES
]
# A recovery prepares programs, uploads the snapshot and runs programs again.
TWICE = [
    Point("execute", 2, "before", Point(phase, number, place))
    for phase, number in (("prepare", 1), ("upload", 1), ("upload", 4), ("execute", 2))
    for place in ("up", "sent", "down")
] + [
    Point(phase, number, "before", Point(then, 1, "sent"))
    for phase, number in (("download", 1), ("execute", 3), ("download", 2))
    for then in ("upload", "execute")
]

_METHODS = {
    "/Execute": "execute",
    "/Prepare": "prepare",
    "/Release": "release",
    "/Renew": "renew",
    "/ReleasePrograms": "programs",
}


class Faults:
    """Makes one fault in each step of a client's training."""

    def __init__(
        self, client: opserve.Client, points: list[Point], fault: Callable[[Point], None],
        proxy: Callable[[], Proxy],
    ) -> None:
        self.points = collections.deque(points)
        self.done: list[tuple[int, Point]] = []
        self._fault = fault
        self._proxy = proxy
        self._step = -1
        self._armed: Optional[Point] = None
        self._seen = 0
        for name in ("_call", "upload", "download", "snapshot"):
            setattr(client, name, self._wrapped(name, getattr(client, name)))
        take_calls(client, client._call)

    def begin(self, step: int) -> None:
        self._step = step
        if self._armed is None and self.points:
            self._arm(self.points.popleft())
        self._seen = 0

    def _arm(self, point: Optional[Point]) -> None:
        self._armed, self._seen = point, 0

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            phase = name
            if name == "_call":
                phase = _METHODS.get("/" + args[0].rpartition("/")[2], "")
            point = self._armed
            if point is None or point.phase != phase:
                return real(*args, **kwargs)
            self._seen += 1
            if self._seen != point.number:
                return real(*args, **kwargs)
            return self._with_fault(point, lambda: real(*args, **kwargs))

        return call

    def _with_fault(self, point: Point, call: Callable[[], Any]) -> Any:
        def happen() -> None:
            self.done.append((self._step, point))
            self._fault(point)

        self._arm(point.then)
        proxy = self._proxy()  # after a fault it may be another one
        if point.place == "before":
            happen()
        elif point.place == "up":
            proxy.arm("up", UP, happen)
        elif point.place in ("sent", "down"):
            proxy.arm("down", DOWN if point.place == "down" else 0, happen)
        try:
            return call()
        finally:
            if point.place == "after" or proxy.disarm():
                happen()  # a short answer is no longer than what passes before the fault


class Model(nn.Module):
    """Has dropout, statistics that change on the pool, and a buffer that changes here."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(20, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5)
        )
        self.register_buffer("shift", torch.zeros(64, 20))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x + self.shift)


def train(
    backend: opserve.torch.Backend, steps: int, begin: Callable[[int], None]
) -> list[Any]:
    """Of each step the loss, norms of gradients and of a parameter; at last the whole state."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model()
    run = torch.compile(model, backend=backend)
    optimizer = opserve.torch.optim.AdamW(model.parameters(), lr=1e-2, backend=backend)
    weight = model.layers[0].weight
    found: list[Any] = []
    for step in range(steps):
        begin(step)
        model.shift.fill_(step / steps)
        x, classes = torch.randn(64, 20), torch.randint(5, (64,))
        optimizer.zero_grad()
        loss = F.cross_entropy(run(x), classes)
        loss.backward()
        backend.residents().renew()
        of_weight = weight.grad.norm().item()
        of_all = opserve.torch.optim.clip_grad_norm_(model.parameters(), 1.0).item()
        optimizer.step()
        found.append((loss.item(), of_weight, of_all, weight.norm().item()))
    begin(steps)
    state = [*model.state_dict().values()]
    for one in optimizer.state_dict()["state"].values():
        state += one.values()
    return found + [one.tolist() for one in state]


@pytest.fixture(scope="module")
def undisturbed(daemon: Any) -> Callable[[int], list[Any]]:
    """Gives what a training of some steps finds without faults."""

    @functools.lru_cache
    def find(steps: int) -> list[Any]:
        with opserve.Client(daemon.target) as client:
            return train(opserve.torch.backend(client, strict=True), steps, lambda step: None)

    return find


@pytest.fixture
def proxies(start_daemon: Callable[..., Any]) -> Iterator[list[Proxy]]:
    """Of two daemons."""
    both = [Proxy(start_daemon()) for _ in range(2)]
    yield both
    for one in both:
        one.close()


# A lost connection; a daemon that is killed and started again; one that is killed, whose place the
# other daemon takes.
@pytest.mark.parametrize("points", [POINTS, TWICE], ids=["once", "twice"])
@pytest.mark.parametrize("kind", ["cut", "restart", "move"])
def test_a_fault_changes_no_loss(
    undisturbed: Callable[[int], list[Any]], proxies: list[Proxy], kind: str, points: list[Point]
) -> None:
    # A snapshot is taken in each third step.
    steps = len(points) + 2 * sum(one.phase == "snapshot" for one in points) + 1
    serving, spare = proxies
    spare.close()
    spare.daemon.stop(signal.SIGKILL)

    def fault(point: Point) -> None:
        nonlocal serving, spare
        # In a recovery from a fault, which a cut does not need.
        is_kill = kind != "cut" or point.then is not None
        if not is_kill:
            serving.cut()
            return
        if kind == "move":
            spare.daemon.start()
            spare.open()
            serving.daemon.stop(signal.SIGKILL)
            serving.close()
            serving, spare = spare, serving
            return
        serving.daemon.stop(signal.SIGKILL)
        serving.daemon.start()
        serving.cut()

    target = ",".join(f"unix:{one.path}" for one in proxies)
    with opserve.Client(target, balance=False) as client:
        faults = Faults(client, points, fault, lambda: serving)
        backend = opserve.torch.backend(client, strict=True, checkpoint_every=3)

        seen = train(backend, steps, faults.begin)

        expected = itertools.chain(points, (one.then for one in points))
        assert len(faults.done) == sum(one is not None for one in expected)
        right = undisturbed(steps)
        wrong = [step for step in range(steps) if seen[step] != right[step]]
        assert not wrong, [one for one in faults.done if one[0] <= wrong[0]][-2:]
        assert seen == right
        checkpoints = backend.residents().checkpoints
        assert checkpoints is not None
        assert (checkpoints.restored > 0) == (kind != "cut" or points is TWICE)


def test_a_client_whose_calls_go_round_is_refused(tmp_path: Any) -> None:
    with opserve.Client(f"unix:{tmp_path}/a,unix:{tmp_path}/b") as client:
        with pytest.raises(ValueError, match="go round the daemons at .*balance=False"):
            opserve.torch.backend(client)
